-- PURPOSE  Make the staged state the sequencer's, for a new epoch bound to this server's identity.
-- KEYS     as everywhere, then the staged topics, partitions and producers
-- ARGV     1 epoch, 2 nonce, 3 run_id, 4 replid, then the number of staged topics, partitions, producers
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
local staged = {topics = KEYS[FIRST_STAGED], partitions = KEYS[FIRST_STAGED + 1], producers = KEYS[FIRST_STAGED + 2]}
for i, what in ipairs({'topics', 'partitions', 'producers'}) do
  if redis.call('HLEN', staged[what]) ~= tonumber(ARGV[4 + i]) then
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
  if name == 'open' then redis.call('ZADD', keys.open, '+inf', '')
  else redis.call('HSET', keys[name], '', '') end
end
redis.call('HSET', keys.meta, 'epoch', ARGV[1], 'run_id', run_id, 'replid', replid,
  'ticket', '0', 'visible', '0', 'producer', '0', 'group_term', '0', 'stream_start', '0', 'stream_end', '0')
return cmsgpack.pack({'ok'})
