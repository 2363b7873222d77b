-- PURPOSE  A seal stands in the bucket: void the writer's reservation there and all its later ones.
-- ARGV     1 epoch, 2 writer, 3 seq, 4 segments kept in the stream, 5 limit of the bytes of their indexes
-- RETURNS  packed {'fenced', seq} | {'refused', the writer's first pending seq}
--          | {'unknown', reason} | {'lost', reason}
-- INVARIANTS  Refused unless seq is the writer's first pending one, or its next if none is pending:
--          what is below was decided, and a segment in the bucket is never voided. A fenced writer
--          stays fenced at that seq; a repeat answers the same.

local keys = keys_by_name(KEYS)
local epoch, writer, seq = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3])

local meta, problem = check_epoch(keys, epoch)
if problem then return cmsgpack.pack(problem) end
local me = load_records(keys.writers, {writer})[writer]
if not me then return cmsgpack.pack({'unknown', 'writer ' .. writer .. ' is not registered'}) end
if seq ~= me.first then return cmsgpack.pack({'refused', me.first}) end

if me.fenced < 0 then
  local work = {}
  for ticket, at in me.open:gmatch('(%d+):(%d+):%d+,') do
    if tonumber(at) >= seq then table.insert(work, 1, {tonumber(ticket), false}) end
  end
  me.fenced, me.next = seq, seq
  store_records(keys.writers, {[writer] = me})
  settle(keys, meta, epoch, work, {segments_max = ARGV[4], bytes_max = tonumber(ARGV[5])})
end
return cmsgpack.pack({'fenced', me.fenced})
