-- PURPOSE  A broker joins, or says that it lives.
-- ARGV     1 node id, 2 incarnation, 3 now (ms), 4 packed address, 5 session timeout (ms)
-- RETURNS  packed {'ok'} | {'other', incarnation, milliseconds since its heartbeat}
-- INVARIANTS  Refused while another incarnation's heartbeat is younger than the session timeout,
--          whatever its node id: one live broker on a cluster.

local keys = keys_by_name(KEYS)
local incarnation, now = ARGV[2], tonumber(ARGV[3])
local all = redis.call('HGETALL', keys.brokers)
for i = 1, #all, 2 do
  local broker = cmsgpack.unpack(all[i + 1])
  local age = now - broker.heartbeat
  if broker.incarnation ~= incarnation then
    if age < tonumber(ARGV[5]) then return cmsgpack.pack({'other', broker.incarnation, age}) end
    redis.call('HDEL', keys.brokers, all[i])
  end
end
redis.call('HSET', keys.brokers, ARGV[1], cmsgpack.pack(
  {incarnation = incarnation, heartbeat = now, address = ARGV[4]}))
return cmsgpack.pack({'ok'})
