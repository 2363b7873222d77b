-- PURPOSE  A segment's object is in the bucket: it is decided; visible once its dependencies are settled.
-- ARGV     1 epoch, 2 writer, 3 seq, 4 now (ms), 5 index (footer and trailer, for the views),
--          6 the object's size (bytes), 7 segments kept in the stream
-- RETURNS  packed {status, …}: {'visible'} | {'decided'} | {'already'} | {'void'}
--          | {'early', reason} | {'unknown', reason} | {'lost', reason}
-- INVARIANTS  In chain order: refused unless seq is the writer's first pending one. 'void' from the
--          fence on, 'already' below the first pending, 'unknown' from next on or for a missing writer
--          (the sequencer lost state: a new epoch is needed).

local keys = keys_by_name(KEYS)
local epoch, writer, seq, now = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])

local meta, problem = check_epoch(keys, epoch)
if problem then return cmsgpack.pack(problem) end
local me = load_records(keys.writers, {writer})[writer]
if not me then return cmsgpack.pack({'unknown', 'writer ' .. writer .. ' is not registered'}) end
if me.fenced >= 0 and seq >= me.fenced then return cmsgpack.pack({'void'}) end
if seq < me.first then return cmsgpack.pack({'already'}) end
if seq >= me.next then
  return cmsgpack.pack({'unknown', 'the next of the chain is ' .. string.format('%d', me.next)})
end
if seq ~= me.first then
  return cmsgpack.pack({'early', 'the first pending is ' .. string.format('%d', me.first)})
end
local ticket = me.pending[1]
local name = string.format('%d', ticket)
local waits = redis.call('HGET', keys.waits, name)
if not waits or redis.call('HEXISTS', keys.reservations, name) == 0 then
  return cmsgpack.pack({'unknown', 'the reservation of ticket ' .. name .. ' is gone'})
end

table.remove(me.pending, 1)
me.first = seq + 1
me.heartbeat = now
store_records(keys.writers, {[writer] = me})
redis.call('HSET', keys.holders, name, 'd' .. writer)
redis.call('HSET', keys.indexes, name, cmsgpack.pack({ARGV[5], ARGV[6]}))
if #cmsgpack.unpack(waits) > 0 then return cmsgpack.pack({'decided'}) end
settle(keys, meta, epoch, ticket, 'visible', ARGV[7])
redis.call('HSET', keys.meta, 'visible', string.format('%d', meta.visible))
return cmsgpack.pack({'visible'})
