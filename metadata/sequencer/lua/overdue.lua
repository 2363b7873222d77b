-- PURPOSE  Which writers should be sealed?
-- ARGV     1 epoch, 2 now (ms), 3 silence allowed (ms), 4 age allowed to a pending reservation (ms)
-- RETURNS  packed {'ok', [[writer, first pending or next seq, 'silent' | 'stuck'], …], rows of producers} | {'lost', reason}
-- INVARIANTS  Changes nothing. Unfenced writers only, sorted. A time that is yet to come, by as much, is
--          of a clock that was set back since: it would not age for as long as that.

local keys = keys_by_name(KEYS)
local _, problem = check_epoch(keys, tonumber(ARGV[1]))
if problem then return cmsgpack.pack(problem) end
local now, silent_ms, pending_ms = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local all, found, rows = redis.call('HGETALL', keys.writers), {}, {}
for i = 1, #all, 2 do
  local name, writer = all[i], all[i + 1] ~= '' and cmsgpack.unpack(all[i + 1])
  if writer and writer.fenced < 0 then
    local since = reserved_at(writer.open, writer.first)
    if math.abs(now - writer.heartbeat) > silent_ms then found[name] = {name, writer.first, 'silent'}
    elseif since and math.abs(now - since) > pending_ms then found[name] = {name, writer.first, 'stuck'}
    end
  end
end
for i, name in ipairs(sorted_keys(found)) do rows[i] = found[name] end
local producers = redis.call('HLEN', keys.producers)  -- a field is the hash's own
return cmsgpack.pack({'ok', rows, math.max(0, producers - 1)})
