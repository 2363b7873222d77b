-- PURPOSE  A broker joins, or says that it and its writer live; it learns who else does.
-- ARGV     1 node id or '' (any), 2 incarnation, 3 now (ms), 4 packed address {host, port, zone},
--          5 writer or '', 6 session timeout (ms), 7 '1' if it serves clients,
--          8 role timeout (ms): who is silent for so long is not said to serve
-- RETURNS  packed {'ok', node id, [[node id, incarnation, serves, host, port, zone], …], now (ms)}
--          | {'taken', node id, incarnation, milliseconds since its heartbeat}
-- INVARIANTS  A node id belongs to one incarnation until that is silent for the session timeout; an
--          incarnation has one node id. Needs no epoch: brokers find each other before there is one.
--          A writer that is not registered is not made here.

local keys = keys_by_name(KEYS)
local incarnation, now = ARGV[2], tonumber(ARGV[3])
local timeout, role_timeout = tonumber(ARGV[6]), tonumber(ARGV[8])
local wanted = tonumber(ARGV[1])
local brokers, own = {}, nil
local all = redis.call('HGETALL', keys.brokers)
for i = 1, #all, 2 do
  local id, broker = tonumber(all[i]), cmsgpack.unpack(all[i + 1])
  if broker.incarnation == incarnation then own = id
  elseif now - broker.heartbeat >= timeout then redis.call('HDEL', keys.brokers, all[i])
  else brokers[id] = broker
  end
end
if not wanted then
  wanted = own or 0
  while brokers[wanted] do wanted = wanted + 1 end
end
local holder = brokers[wanted]
if holder then
  return cmsgpack.pack({'taken', wanted, holder.incarnation, now - holder.heartbeat})
end
if own and own ~= wanted then redis.call('HDEL', keys.brokers, string.format('%d', own)) end
brokers[wanted] = {
  incarnation = incarnation, heartbeat = now, serves = ARGV[7] == '1', address = cmsgpack.unpack(ARGV[4])}
store_records(keys.brokers, {[string.format('%d', wanted)] = brokers[wanted]})
local writer = ARGV[5] ~= '' and load_records(keys.writers, {ARGV[5]})[ARGV[5]]
if writer then
  writer.heartbeat = now
  store_records(keys.writers, {[ARGV[5]] = writer})
end
local members = {}
for i, id in ipairs(sorted_keys(brokers)) do
  local broker = brokers[id]
  local serves = broker.serves and now - broker.heartbeat < role_timeout
  members[i] = {id, broker.incarnation, serves, unpack(broker.address)}
end
return cmsgpack.pack({'ok', wanted, members, now})
