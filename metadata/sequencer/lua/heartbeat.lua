-- PURPOSE  A broker joins, or says that it and its writer live; it learns who else does.
-- ARGV     1 node id or '' (any), 2 incarnation, 3 now (ms), 4 packed address {host, port, zone},
--          5 writer or '', 6 session timeout (ms),
--          7 '1' if the broker serves clients, '2' if the broker has withdrawn, else '0',
--          8 role timeout (ms): a broker that is silent for this long is reported as neither
--          serving nor withdrawn,
--          9 '1' if the broker cannot write and others should close its writer's chain,
--          10 for how long a lifeline may be missed (ms); 0: nobody looks
--          11 packed listeners [[name, host, port], …]
-- RETURNS  packed {'ok', node id,
--                  [[node id, incarnation, serves, host, port, zone, listeners, withdrawn], …],
--                  now (ms), is the own lifeline held?,
--                  when to ask again because another lifeline is missed (ms) or -1,
--                  was the broker known before?}
--          | {'taken', node id, incarnation, milliseconds since its heartbeat}
-- INVARIANTS  A node id belongs to one incarnation until that is silent for the session timeout; an
--          incarnation has one node id. Needs no epoch: brokers find each other before there is one.
--          A writer that is not registered is not made here. What is not bucketlog's in `brokers` goes,
--          since no epoch clears it; such a writer is left to the scripts of its epoch.
--          A heartbeat of a time that is yet to come is of a clock that was set back, or of another
--          server's: it ages from now on. A broker counts as dead, and its writer as overdue, once its
--          lifeline was missed for so long without a heartbeat of its own; only where this very server
--          saw the lifeline at the last heartbeat. `address` keeps its three parts, which brokers of a
--          release without listeners read; such a broker has no `listeners`. All brokers are told when members or roles change.

local keys = keys_by_name(KEYS)
local incarnation, now = ARGV[2], tonumber(ARGV[3])
local timeout, role_timeout = tonumber(ARGV[6]), tonumber(ARGV[8])
local wanted, grace = tonumber(ARGV[1]), tonumber(ARGV[10])
local run_id = identity()

-- RETURNS the broker, or nil for what is none.
local function broker_of(packed)
  local is_packed, broker = pcall(cmsgpack.unpack, packed)
  local is_one = is_packed and type(broker) == 'table' and type(broker.incarnation) == 'string' and
    type(broker.heartbeat) == 'number' and type(broker.address) == 'table'
  return is_one and broker or nil
end

-- 0: the writer is overdue at once
local function set_heartbeat(name, heartbeat)
  local is_sound, writers = pcall(load_records, keys.writers, {name})
  local writer = is_sound and name ~= '' and writers[name]
  if type(writer) == 'table' then
    writer.heartbeat = heartbeat
    store_records(keys.writers, {[name] = writer})
  end
end

local look_again = -1

-- RETURNS whether the broker's process has ended, by its lifeline.
local function has_ended(id, broker)
  if grace == 0 or broker.lifeline ~= run_id then return false end
  local missed = type(broker.missed) == 'number' and broker.missed <= now and broker.missed or nil
  local since = is_lifeline_held(keys, broker.incarnation) == false and (missed or now) or nil
  if since and now - since >= grace then return true end
  if since then
    local left = math.max(1, since + grace - now)
    look_again = look_again < 0 and left or math.min(look_again, left)
  end
  if since ~= broker.missed then
    broker.missed = since
    store_records(keys.brokers, {[id] = broker})
  end
  return false
end

local brokers, own, before, has_changed = {}, nil, nil, false
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
  elseif broker.incarnation == incarnation then own, before = id, broker
  elseif now - broker.heartbeat >= timeout then redis.call('HDEL', keys.brokers, all[i])
  elseif has_ended(all[i], broker) then
    redis.call('HDEL', keys.brokers, all[i])
    if type(broker.writer) == 'string' then set_heartbeat(broker.writer, 0) end
    has_changed = true
  else brokers[id] = broker
  end
end
if not wanted then
  wanted = own or 0
  while brokers[wanted] do wanted = wanted + 1 end
end
local holder = brokers[wanted]
if holder then
  if has_changed then announce_change(keys) end
  return cmsgpack.pack({'taken', wanted, holder.incarnation, now - holder.heartbeat})
end
if own and own ~= wanted then redis.call('HDEL', keys.brokers, string.format('%d', own)) end
local is_held = is_lifeline_held(keys, incarnation) == true
brokers[wanted] = {
  incarnation = incarnation, heartbeat = now, serves = ARGV[7] == '1', withdrawn = ARGV[7] == '2',
  address = cmsgpack.unpack(ARGV[4]),
  listeners = cmsgpack.unpack(ARGV[11]), writer = ARGV[5], lifeline = is_held and run_id}
store_records(keys.brokers, {[string.format('%d', wanted)] = brokers[wanted]})
set_heartbeat(ARGV[5], ARGV[9] == '1' and 0 or now)
if has_changed or not before or before.serves ~= brokers[wanted].serves then announce_change(keys) end
local members = {}
for i, id in ipairs(sorted_keys(brokers)) do
  local broker = brokers[id]
  local is_heard = now - broker.heartbeat < role_timeout
  local row = {id, broker.incarnation, broker.serves and is_heard, unpack(broker.address)}
  row[#row + 1] = type(broker.listeners) == 'table' and broker.listeners or {}
  row[#row + 1] = broker.withdrawn == true and is_heard
  members[i] = row
end
return cmsgpack.pack({'ok', wanted, members, now, is_held, look_again, before ~= nil})
