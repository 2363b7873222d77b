-- PURPOSE  A broker joins, or says that it and its writer live; it learns who else does.
-- ARGV     1 node id or '' (any), 2 incarnation, 3 now (ms), 4 packed address {host, port, zone},
--          5 writer or '', 6 session timeout (ms), 7 '1' if it serves clients,
--          8 role timeout (ms): who is silent for so long is not said to serve
-- RETURNS  packed {'ok', node id, [[node id, incarnation, serves, host, port, zone], …], now (ms)}
--          | {'taken', node id, incarnation, milliseconds since its heartbeat}
-- INVARIANTS  A node id belongs to one incarnation until that is silent for the session timeout; an
--          incarnation has one node id. Needs no epoch: brokers find each other before there is one.
--          A writer that is not registered is not made here. What is not bucketlog's in `brokers` goes,
--          since no epoch clears it; such a writer is left to the scripts of its epoch.
--          A heartbeat of a time that is yet to come is of a clock that was set back, or of another
--          server's: it ages from now on.

local keys = keys_by_name(KEYS)
local incarnation, now = ARGV[2], tonumber(ARGV[3])
local timeout, role_timeout = tonumber(ARGV[6]), tonumber(ARGV[8])
local wanted = tonumber(ARGV[1])

-- RETURNS the broker, or nil for what is none.
local function broker_of(packed)
  local is_packed, broker = pcall(cmsgpack.unpack, packed)
  local is_one = is_packed and type(broker) == 'table' and type(broker.incarnation) == 'string' and
    type(broker.heartbeat) == 'number' and type(broker.address) == 'table'
  return is_one and broker or nil
end

local brokers, own = {}, nil
local all = redis.pcall('HGETALL', keys.brokers)
if all.err then
  redis.call('UNLINK', keys.brokers)
  all = {}
end
for i = 1, #all, 2 do
  local id, broker = tonumber(all[i]), broker_of(all[i + 1])
  if broker and broker.heartbeat > now + timeout then
    broker.heartbeat = now
    store_records(keys.brokers, {[all[i]] = broker})
  end
  if not id or not broker then redis.call('HDEL', keys.brokers, all[i])
  elseif broker.incarnation == incarnation then own = id
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
local is_sound, writers = pcall(load_records, keys.writers, {ARGV[5]})
local writer = is_sound and ARGV[5] ~= '' and writers[ARGV[5]]
if type(writer) == 'table' then
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
