-- PURPOSE  Reserve offsets for a segment: the next of its writer's chain.
-- ARGV     1 epoch, 2 writer, 3 seq, 4 request id, 5 now (ms), 6 packed request:
--          {topics: [[name, topic id], …],
--           parts: [[row in topics, partition, [[records, producer id or '', producer epoch, first sequence, counter of the id,
--                   row in txns or nothing], …]], …],
--           of a placed batch without a producer id: [offsets, '', -1, -1, base offset that it must get]
--           control: [[verb, name, topic id, partitions] | ['offsets', group, term] | ['tiers'] | ['security'] | ['shares'] | entry of a transactional id, …],
--           and, where transactional ids are concerned, txns: [[id, version], …], limits: {partitions, groups, offset_rows, ids}}
--          entries of a transactional id (transaction_rules.lua):
--           ['init', id, expected producer or '', its epoch, timeout (ms), version, fresh producer id, two_phase, keep the open transaction]
--           ['end', id, producer, epoch, commit, version, by, serial or -1, fresh producer id]
--           ['txn_offsets', id, producer, epoch, version, group, term, offset rows] | ['forget_id', id, not updated since (ms)]
--          the counter is -1 for a producer id of an earlier epoch, and above all counters for an id of a later epoch
--          7 limit of producer rows: at the limit, a producer that is new to a partition is refused
-- RETURNS  packed {status, …}:
--          {'ok', ticket, low ticket, [hw stamp per part], [[status, base offset or expected sequence] per batch, per part], [status per control]}
--          {'none', …same places…}   nothing was accepted: no ticket, the seq is not used
--          stamp: of a partition that gets batches the lowest open base offset, else `next`, both
--          before; of one that wanted none the high watermark shown; -1 where there is nothing
--          {'fenced' | 'unknown' | 'seq' | 'lost', reason}
--          per batch:   ok | duplicate | forgotten_duplicate | open | wait | out_of_order | unknown_producer | reused_sequence | fenced | unknown_topic | offset_limit
--                        | too_many_producers | unassigned_producer | mapping | abortable | prepared | invalid_state
--                        | too_many_partitions | misplaced (with the partition's end in the place of the base offset)
--          per control: ok | wait | exists | unknown_topic | invalid_partitions | not_coordinator; of a transactional
--                        id {status, …}
-- INVARIANTS  Everything is worked out before anything is written (Lua is not atomic on error).
--          A repeat with the same request id gets the stored answer. A segment depends on *every*
--          earlier open one that touches one of its partitions, topics or groups, and on the previous of the
--          chain: it is blocked by each such list in which it is not the first. A topic entry touches
--          all partitions of the topic; a deletion only those with open tickets, because nothing is
--          reserved behind it. A partition that wanted no batches gets a stamp alone: it is
--          not touched. Control entries of a segment come before its batches, as in the fold; markers come
--          after all changes of topics.
--          A group's entry is accepted only from the coordinator that took the group last; it is
--          built on no other entry, hence never waits. Entries about tiers have one key in common, and
--          so have entries about security, and entries about share groups. They are always accepted: the fold decides what they come to. A producer that is new to a partition
--          must have an id of an earlier epoch, or an id that this epoch has assigned.
--          A placed batch (of a mirror) gets the base offset that it must have, or none. It is accepted only at the partition's
--          end, where all that this writer has not reserved is visible or void. The end is that of the last visible batch if
--          nothing is open: void reservations at the end are reserved again, as in a new epoch.

local MAX_OFFSET = 9007199254740991
local MARKERS_ROOM = 1000000   -- offsets at the end of a partition that batches of transactions leave for markers
local keys = keys_by_name(KEYS)
local epoch, writer, seq = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3])
local request_id, now, want = ARGV[4], tonumber(ARGV[5]), cmsgpack.unpack(ARGV[6])

local meta, problem = check_epoch(keys, epoch)
if problem then return cmsgpack.pack(problem) end
local me = load_records(keys.writers, {writer})[writer]
if not me then return cmsgpack.pack({'unknown', 'writer ' .. writer .. ' is not registered'}) end
if me.fenced >= 0 then return cmsgpack.pack({'fenced', 'writer ' .. writer .. ' was sealed'}) end
if seq ~= me.next then
  local ticket = seq >= me.first and ticket_of(me.open, seq)
  local stored = ticket and redis.call('HGET', keys.reservations, string.format('%d', ticket))
  local reservation = stored and cmsgpack.unpack(stored)
  if reservation and reservation.request == request_id then return reservation.answer end
  return cmsgpack.pack({'seq', 'the next of the chain is ' .. string.format('%d', me.next)})
end

local ticket = meta.ticket
local blocked = me.open == '' and 0 or 1

-- Is this ticket pending at another writer? Its fate is open, and nothing may be built on it.
local foreign = {}
local function pending_elsewhere(other)
  if other < 0 or other == ticket then return false end
  if foreign[other] == nil then
    local holder = redis.call('HGET', keys.holders, string.format('%d', other))
    foreign[other] = holder and holder:sub(1, 1) == 'p' and holder:sub(2) ~= writer or false
  end
  return foreign[other]
end

local topic_names = {}
for i, topic in ipairs(want.topics) do topic_names[i] = topic[1] end
local topics = load_records(keys.topics, topic_names)
local partition_fields, producer_fields = {}, {}
for _, part in ipairs(want.parts) do
  local field = partition_field(want.topics[part[1] + 1][2], part[2])
  partition_fields[#partition_fields + 1] = field
  for _, batch in ipairs(part[3]) do
    if batch[2] ~= '' then producer_fields[#producer_fields + 1] = batch[2] .. ':' .. field end
  end
end
local partitions = load_records(keys.partitions, partition_fields)
local producers = load_records(keys.producers, producer_fields)

-- This segment comes last in the partition's list; `base` is nil for a topic entry.
local partitions_dirty, before, bases = {}, {}, {}
local function touch(field, base)
  local record = partitions[field]
  if not before[field] then
    before[field] = record.open
    if record.open ~= '' then blocked = blocked + 1 end
  end
  bases[field] = bases[field] or base
  record.open = before[field] ..
    string.format('%d:', ticket) .. (bases[field] and string.format('%d', bases[field]) or NO_BASE) .. ','
  partitions_dirty[field] = record
end

-- Offsets of markers; batches of the partition come after them.
local marked = {}
local function take_marker(field)
  local record = partitions[field]
  local base = record.next
  record.next = base + 1
  marked[field] = marked[field] or base
  local lowest = lowest_base(record.open)
  touch(field, base)
  return base, lowest or base
end

-- Control entries -------------------------------------------------------------------------------
local control_answers, topics_dirty, topic_parts, touched = {}, {}, {}, {}

-- RETURNS fields of the topic's partitions, and the packed records of those not loaded yet.
local function packed_partitions(topic_id, count)
  local fields, missing = {}, {}
  for p = 0, count - 1 do
    local field = partition_field(topic_id, p)
    fields[#fields + 1] = field
    if not partitions[field] then missing[#missing + 1] = field end
  end
  return fields, load_packed(keys.partitions, missing)
end

local function touch_topic(verb, name, topic_id, count)
  local versions = topics[name] or {}
  local newest = versions[#versions]
  if newest and newest[1] >= 0 and not topics_dirty[name] then blocked = blocked + 1 end
  local fields, packed = packed_partitions(topic_id, count)
  for _, field in ipairs(fields) do
    local found = packed[field]
    if found and not (verb == 'delete' and has_empty_list(found)) then
      partitions[field] = cmsgpack.unpack(found)
    end
    if partitions[field] and not (verb == 'delete' and partitions[field].open == '') then
      touch(field, nil)
      if verb == 'delete' then touched[#touched + 1] = field end
    end
  end
  if count > 0 and verb ~= 'delete' then topic_parts[#topic_parts + 1] = {topic_id, count} end
end

local function change_topic(verb, name, topic_id, count)
  local versions = topics[name] or {}
  local current = versions[#versions]
  local live = current and not current[4]
  local status = 'ok'
  if current and pending_elsewhere(current[1]) then status = 'wait'
  elseif verb == 'create' then
    if live then status = 'exists' end
  elseif not live or current[2] ~= topic_id then status = 'unknown_topic'
  elseif verb == 'grow' and count <= current[3] then status = 'invalid_partitions'
  end
  if status == 'ok' then
    touch_topic(verb, name, topic_id, live and current[3] or 0)
    if verb == 'configure' then count = current[3] end
    versions[#versions + 1] = {ticket, topic_id, verb == 'delete' and 0 or count, verb == 'delete'}
    topics[name] = versions
    topics_dirty[name] = versions
  end
  return status
end

local COMMON_FIELDS = {tiers = TIERS_FIELD, security = SECURITY_FIELD, shares = SHARES_FIELD}
local group_names, groups_dirty = {}, {}
for _, entry in ipairs(want.control) do
  if entry[1] == 'offsets' then group_names[#group_names + 1] = group_field(entry[2]) end
  if entry[1] == 'txn_offsets' then group_names[#group_names + 1] = group_field(entry[6]) end
  if COMMON_FIELDS[entry[1]] then group_names[#group_names + 1] = COMMON_FIELDS[entry[1]] end
end
local groups = load_records(keys.groups, group_names)

local function enter(field, record)
  if not groups_dirty[field] then
    blocked = blocked + (record.open == '' and 0 or 1)
    record.open = record.open .. string.format('%d:', ticket) .. NO_BASE .. ','
    groups_dirty[field] = record
  end
  return 'ok'
end

local function enter_offsets(group, term)
  local record = groups[group]
  return coordinates(record, term) and enter(group, record) or 'not_coordinator'
end

-- What transaction_rules.lua works on; nil where no transactional id is concerned.
local function transaction_context()
  local fields, ids_left = {}, 0
  for _, txn in ipairs(want.txns) do fields[#fields + 1] = txn_field(txn[1]) end
  for _, entry in ipairs(want.control) do
    if TRANSACTION_ENTRIES[entry[1]] then fields[#fields + 1] = txn_field(entry[2]) end
    if entry[1] == 'init' then ids_left = want.limits.ids - redis.call('HLEN', keys.txns) + 1 end
  end
  return {keys = keys, ticket = ticket, now = now, limits = want.limits, txns = load_records(keys.txns, fields),
    txns_dirty = {}, deadlines = {}, entered = {}, topics = topics, partitions = partitions, groups = groups,
    markers_left = want.limits.partitions, ids_left = ids_left, listed_left = LISTED,
    pending_elsewhere = pending_elsewhere, take_marker = take_marker, enter = enter}
end
local txn_context = want.txns and transaction_context()

local of_transactions = {}
for i, entry in ipairs(want.control) do
  if TRANSACTION_ENTRIES[entry[1]] then
    of_transactions[#of_transactions + 1] = i
  elseif entry[1] == 'offsets' then
    control_answers[i] = enter_offsets(group_field(entry[2]), entry[3])
  elseif COMMON_FIELDS[entry[1]] then
    local field = COMMON_FIELDS[entry[1]]
    groups[field] = groups[field] or nobodys('')
    control_answers[i] = enter(field, groups[field])
  else
    control_answers[i] = change_topic(unpack(entry))
  end
end
for _, i in ipairs(of_transactions) do
  local entry = want.control[i]
  control_answers[i] = TRANSACTION_ENTRIES[entry[1]](txn_context, entry)
end

-- Batches ---------------------------------------------------------------------------------------
local producers_dirty, waiting = {}, {}
local rows_left = tonumber(ARGV[7]) - redis.call('HLEN', keys.producers) + 1  -- a field is the hash's own

-- Whether the producer's batch `row` belongs to a transaction before the one that is open or begins. `r`: the record of the
-- producer's transactional id, or nil. Rows that earlier releases staged have no serial; for these, the answer is false.
local function is_of_earlier(r, row)
  return r and row[7] and row[7] ~= r.serial
end

-- Whether `sequence` is before `other`. Sequences wrap at 2^31.
local function is_behind(sequence, other)
  return sequence ~= other and (other - sequence) % 2147483648 < 1073741824
end

-- RETURNS status and, for 'duplicate' and 'open', the batch's base offset; for 'out_of_order' and
-- 'unknown_producer', the sequence that the producer's next batch has to begin with.
-- `txn` and `part` are nil outside of transactions.
-- INVARIANT  The sequences of an epoch begin at 0 without gaps. So a batch before all remembered ones is in the log, and visible.
-- INVARIANT  A batch is never a duplicate of a batch of an earlier transaction. librdkafka may drop an unanswered record in an
-- abort, and give its sequence to a second record. As a duplicate, the second record would be acknowledged and lost.
local function check_producer(field, producer, producer_epoch, first, last, counter, txn, part)
  if waiting[field] then return 'wait' end
  local rows = producers[field] or {}
  local newest = rows[#rows]
  local r = txn and txn_context.txns[txn_field(txn[1])]
  if r and not is_owner(r, producer, producer_epoch) then r = nil end
  if newest and producer_epoch == newest[2] then
    local oldest
    for _, row in ipairs(rows) do
      if row[2] == producer_epoch then
        if row[3] == first and row[4] == last then
          if is_of_earlier(r, row) then return 'reused_sequence' end
          return row[1] < 0 and 'duplicate' or 'open', row[5]
        end
        oldest = oldest or row
      end
    end
    local following = (newest[4] + 1) % 2147483648
    local is_old = oldest and first <= last and last < oldest[3] and is_behind(first, following) and is_behind(last, following)
    if is_old and not txn then return 'forgotten_duplicate' end
  end
  local problem = txn and member_problem(txn_context, txn, producer, producer_epoch, part, newest)
  if problem then
    waiting[field] = problem == 'wait' or nil
    return problem
  end
  if not newest then
    if counter >= meta.producer then return 'unassigned_producer' end
    if rows_left <= 0 then return 'too_many_producers' end
    if first ~= 0 then return 'unknown_producer', 0 end
    return 'ok'
  end
  if pending_elsewhere(newest[1]) then
    waiting[field] = true
    return 'wait'
  end
  if producer_epoch < newest[2] then return 'fenced' end
  local expected = producer_epoch == newest[2] and (newest[4] + 1) % 2147483648 or 0
  if first ~= expected then
    if producer_epoch == newest[2] and is_behind(first, expected) and is_of_earlier(r, newest) then return 'reused_sequence' end
    return 'out_of_order', expected
  end
  return 'ok'
end

-- Whether the partition's end is certain for this writer: 'ok' or 'wait'. What another writer has reserved may become void, and
-- then a batch behind it would leave a gap. What this writer has reserved becomes void only together with what follows.
local function end_status(record)
  for _, other in ipairs(tickets_of(record.open)) do
    local holder = other ~= ticket and redis.call('HGET', keys.holders, string.format('%d', other))
    if holder and holder:sub(2) ~= writer then return 'wait' end
  end
  return 'ok'
end

local function check_place(record, at, end_state)
  if end_state ~= 'ok' then return end_state end
  if at == record.next then return 'ok' end
  if record.open ~= '' then return 'wait' end
  return 'misplaced', record.next
end

local function topic_status(topic)
  local versions = topics[topic[1]] or {}
  local current = versions[#versions]
  if current and pending_elsewhere(current[1]) then return 'wait' end
  if not current or current[4] or current[2] ~= topic[2] then return 'unknown_topic' end
  return 'ok'
end

local stamps, batch_answers, reserved, stamps_alone = {}, {}, {}, 0
for i, part in ipairs(want.parts) do
  local topic = want.topics[part[1] + 1]
  local field = partition_fields[i]
  local record = partitions[field]
  local status = topic_status(topic)
  if status == 'ok' and not record then status = 'unknown_topic' end
  local answers, base, end_state = {}, record and record.next, nil
  for j, batch in ipairs(part[3]) do
    local records, producer, producer_epoch, first, counter, txn_row = unpack(batch)
    local answer, offset = status, nil
    local txn = txn_row and want.txns[txn_row]
    local member_of = txn and part_of(topic[1], field)
    if status == 'ok' and producer ~= '' then
      answer, offset = check_producer(producer .. ':' .. field, producer, producer_epoch, first,
        (first + records - 1) % 2147483648, counter, txn, member_of)
    elseif status == 'ok' and counter then
      end_state = end_state or end_status(record)
      if record.open == '' and record.next == base then
        record.next = record.visible_end
        base = record.next
      end
      answer, offset = check_place(record, counter, end_state)
    end
    if answer == 'ok' and record.next + records + (txn and MARKERS_ROOM or 0) > MAX_OFFSET then answer = 'offset_limit' end
    if answer == 'ok' then
      offset = record.next
      record.next = record.next + records
      if producer ~= '' then
        local name = producer .. ':' .. field
        local rows = producers[name] or {}
        if #rows == 0 then rows_left = rows_left - 1 end
        local serial = txn and join(txn_context, txn, member_of, rows[#rows]) or nil
        rows[#rows + 1] = {ticket, producer_epoch, first, (first + records - 1) % 2147483648, offset, now, serial}
        producers[name] = rows
        producers_dirty[name] = rows
      end
    end
    answers[j] = {answer, offset or -1}
  end
  batch_answers[i] = answers
  stamps[i] = -1
  if record and record.next > base then
    stamps[i] = lowest_base(record.open) or base
    touch(field, base)
    reserved[#reserved + 1] = {field, base, record.next - base}
    marked[field] = nil
  elseif record and #part[3] == 0 then
    stamps[i] = record.visible_end
    stamps_alone = stamps_alone + 1
  end
end

for _, field in ipairs(sorted_keys(marked)) do
  reserved[#reserved + 1] = {field, marked[field], partitions[field].next - marked[field]}
end
local topics_touched, groups_touched = sorted_keys(topics_dirty), sorted_keys(groups_dirty)
local txns_entered = sorted_keys(txn_context and txn_context.entered or {})
if #reserved + #txns_entered == 0 and #topics_touched == 0 and #groups_touched == 0 and stamps_alone == 0 then
  return cmsgpack.pack({'none', -1, -1, stamps, batch_answers, control_answers})
end

-- All is known: write ---------------------------------------------------------------------------
local name = string.format('%d', ticket)
local lowest = redis.call('ZRANGE', keys.open, 0, 0)[1]
local answer = cmsgpack.pack(
  {'ok', ticket, lowest ~= '' and tonumber(lowest) or ticket, stamps, batch_answers, control_answers})
me.next = seq + 1
me.open = me.open .. string.format('%d:%d:%d,', ticket, seq, now)
me.heartbeat = now
redis.call('HSET', keys.meta, 'ticket', string.format('%d', ticket + 1))
redis.call('HSET', keys.reservations, name, cmsgpack.pack({
  writer = writer, seq = seq, parts = reserved, producers = sorted_keys(producers_dirty),
  topics = topics_touched, topic_parts = topic_parts, touched = touched, groups = groups_touched, txns = txn_context and txns_entered,
  request = request_id, answer = answer}))
redis.call('HSET', keys.holders, name, 'p' .. writer)
redis.call('HSET', keys.blocked, name, string.format('%d', blocked))
redis.call('ZADD', keys.open, ticket, name)
store_records(keys.writers, {[writer] = me})
store_records(keys.partitions, partitions_dirty)
store_records(keys.producers, producers_dirty)
store_records(keys.topics, topics_dirty)
store_records(keys.groups, groups_dirty)
if txn_context then store_transactions(keys, txn_context.txns_dirty, txn_context.deadlines) end
return answer
