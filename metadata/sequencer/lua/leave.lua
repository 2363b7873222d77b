-- PURPOSE  A broker goes: nobody has to wait for its heartbeat to age.
-- ARGV     1 node id, 2 incarnation
-- RETURNS  packed {'ok'}
-- INVARIANTS  Only its own entry goes; a successor's stays. The others are told.

local keys = keys_by_name(KEYS)
local mine = redis.call('HGET', keys.brokers, ARGV[1])
if mine and cmsgpack.unpack(mine).incarnation == ARGV[2] then
  redis.call('HDEL', keys.brokers, ARGV[1])
  announce_change(keys)
end
return cmsgpack.pack({'ok'})
