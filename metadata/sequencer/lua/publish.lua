-- PURPOSE  A segment's object is in the bucket: it is decided; visible once its dependencies are settled.
-- ARGV     1 epoch, 2 writer, 3 seq, 4 index (footer and trailer, for the views),
--          5 the object's size (bytes), 6 segments kept in the stream, 7 limit of the bytes of their indexes
-- RETURNS  packed {status, …}: {'visible', its number in the stream} | {'decided'} | {'already'}
--          | {'void', fenced seq} | {'early', reason} | {'unknown', reason} | {'lost', reason}
-- INVARIANTS  In chain order: refused unless seq is the writer's first pending one. 'void' from the
--          fence on, 'already' below the first pending, 'unknown' from next on or for a missing writer
--          (the sequencer lost state: a new epoch is needed). Anybody may ask on a writer's behalf:
--          it says nothing about the writer's life.

local keys = keys_by_name(KEYS)
local epoch, writer, seq = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3])

local meta, problem = check_epoch(keys, epoch)
if problem then return cmsgpack.pack(problem) end
local me = load_records(keys.writers, {writer})[writer]
if not me then return cmsgpack.pack({'unknown', 'writer ' .. writer .. ' is not registered'}) end
if me.fenced >= 0 and seq >= me.fenced then return cmsgpack.pack({'void', me.fenced}) end
if seq < me.first then return cmsgpack.pack({'already'}) end
if seq >= me.next then
  return cmsgpack.pack({'unknown', 'the next of the chain is ' .. string.format('%d', me.next)})
end
if seq ~= me.first then
  return cmsgpack.pack({'early', 'the first pending is ' .. string.format('%d', me.first)})
end
local ticket = ticket_of(me.open, seq)
local name = string.format('%d', ticket)
local blocked = redis.call('HGET', keys.blocked, name)
if not blocked or redis.call('HEXISTS', keys.reservations, name) == 0 then
  return cmsgpack.pack({'unknown', 'the reservation of ticket ' .. name .. ' is gone'})
end

me.first = seq + 1
store_records(keys.writers, {[writer] = me})
redis.call('HSET', keys.holders, name, 'd' .. writer)
redis.call('HSET', keys.indexes, name, cmsgpack.pack({ARGV[4], ARGV[5]}))
if blocked ~= '0' then return cmsgpack.pack({'decided'}) end
local number = meta.visible + 1   -- of this segment: what it makes visible comes after it
settle(keys, meta, epoch, {{ticket, true}}, {segments_max = ARGV[6], bytes_max = tonumber(ARGV[7])})
return cmsgpack.pack({'visible', number})
