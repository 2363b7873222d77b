-- PURPOSE  A writer of this epoch may reserve from now on (its registration is in the bucket).
-- ARGV     1 epoch, 2 writer, 3 now (ms)
-- RETURNS  packed {'ok'} | {'lost', reason}
-- INVARIANTS  A repeat changes nothing.

local keys = keys_by_name(KEYS)
local _, problem = check_epoch(keys, tonumber(ARGV[1]))
if problem then return cmsgpack.pack(problem) end
if redis.call('HEXISTS', keys.writers, ARGV[2]) == 0 then
  store_records(keys.writers, {[ARGV[2]] = {
    first = 0, next = 0, fenced = -1, heartbeat = tonumber(ARGV[3]), open = ''}})
end
return cmsgpack.pack({'ok'})
