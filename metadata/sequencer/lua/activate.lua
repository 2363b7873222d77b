-- PURPOSE  Make the staged state the sequencer's, for a new epoch bound to this server's identity.
-- KEYS     as everywhere, then what is staged, in the order of STAGED
-- ARGV     1 epoch, 2 nonce, 3 run_id, 4 replid, then the size of each staged key
-- RETURNS  packed {'ok'} | {'refused', reason}
-- INVARIANTS  Only on the server that the epoch was claimed for, only with its unused nonce, only
--          upwards, only with the whole stage: an activation that comes late or twice changes nothing.

local keys = keys_by_name(KEYS)
local epoch = tonumber(ARGV[1])
local run_id, replid, role = identity()
if role ~= 'master' then return cmsgpack.pack({'refused', 'the server is a ' .. tostring(role)}) end
if run_id ~= ARGV[3] or replid ~= ARGV[4] then
  return cmsgpack.pack({'refused', 'the server is not the one that the epoch was claimed for'})
end
local current = tonumber(redis.pcall('HGET', keys.meta, 'epoch') or '')  -- nil where it is damaged, too
if current and current >= epoch then
  return cmsgpack.pack({'refused', 'the server is at epoch ' .. string.format('%d', current) .. ' already'})
end
if redis.call('SISMEMBER', keys.nonces, ARGV[2]) == 0 then
  return cmsgpack.pack({'refused', 'the nonce was used or is unknown'})
end
local staged = {}
for i, what in ipairs(STAGED) do
  staged[what] = KEYS[#KEY_NAMES + i]
  local size = SORTED_SETS[what] and #redis.call('ZRANGE', staged[what], 0, -1) or redis.call('HLEN', staged[what])
  if size ~= tonumber(ARGV[4 + i]) then
    return cmsgpack.pack({'refused', 'the staged ' .. what .. ' are not whole'})
  end
end

for _, name in ipairs(KEY_NAMES) do
  if name ~= 'brokers' then redis.call('UNLINK', keys[name]) end
end
for what, key in pairs(staged) do
  if redis.call('EXISTS', key) == 1 then redis.call('RENAME', key, keys[what]) end
end
for _, name in ipairs(ALWAYS_THERE) do
  if SORTED_SETS[name] then redis.call('ZADD', keys[name], '+inf', '')
  else redis.call('HSET', keys[name], '', '') end
end
redis.call('HSET', keys.meta, 'epoch', ARGV[1], 'run_id', run_id, 'replid', replid,
  'ticket', '0', 'visible', '0', 'producer', '0', 'group_term', '0', 'stream_start', '0', 'stream_end', '0')
return cmsgpack.pack({'ok'})
