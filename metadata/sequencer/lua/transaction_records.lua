-- Transactional ids in the hash `txns`, field 'i:<id>':
--   producer (text; '' until the id's first init is visible), epoch, last_producer, last_epoch ('' and -1: none),
--   outcome ('none' | 'committed' | 'aborted') and by ('' | 'client' | 'server' | 'init') of the last transaction,
--   serial: how many of its transactions have ended; version, timeout (ms), two_phase, updated (ms)
--   txn_producer, txn_epoch: the pair that began the ongoing transaction, if an init has kept it; else '' and -1
--   next: false, or the id's one open entry: {ticket, kind ('init' | 'keep' | 'end' | 'forget'), and the fields as it makes them}
--   ongoing, since (ms), forgiving, part_count, name_bytes, groups, offset_rows, offsets: the transaction that has not ended
-- `offsets`: its open entries with offsets, as open_lists.lua.
-- The partitions are in the hash `txn_parts`, in the same field: 'topic name/topic id:partition;' each. This list may be
-- long, so a script reads it at most once, and only if necessary.
-- `name_bytes`: the size of this list and of the names in `groups`. Field 'total' of `txn_parts` is the sum of all ids.
-- `forgiving`: no end or init of the id has been answered since the epoch's activation. While set, clients of version 1
-- may write to partitions that they added before, because only the last sequencer knew them.
-- INVARIANT  While `next` is set, nothing else of the id is accepted; a void entry only clears it.

local NO_EPOCH = -1
local LAST_EPOCH = 32766   -- the next epoch is that of another producer id
local NEVER = 4503599627370496   -- 2^52 ms; with its start added, the deadline of a transaction with two-phase commit

local function txn_field(id) return 'i:' .. id end

local function txn_id(field) return field:sub(3) end

local function new_transactional_id()
  return {producer = '', epoch = NO_EPOCH, last_producer = '', last_epoch = NO_EPOCH, outcome = 'none', by = '',
    serial = 0, version = 1, timeout = 0, two_phase = false, updated = 0, txn_producer = '', txn_epoch = NO_EPOCH,
    next = false, ongoing = false, since = 0, forgiving = false, part_count = 0, name_bytes = 0, groups = {},
    offset_rows = 0, offsets = ''}
end

local function is_owner(r, producer, epoch)
  return r.producer == producer and r.epoch == epoch
end

local function is_last(r, producer, epoch)
  return r.last_epoch ~= NO_EPOCH and r.last_producer == producer and r.last_epoch == epoch
end

-- Records that earlier releases stored have no `txn_producer`.
local function is_kept(r) return (r.txn_producer or '') ~= '' end

-- RETURNS the pair in the batches and markers of the id's transaction.
local function transaction_pair(r)
  if is_kept(r) then return r.txn_producer, r.txn_epoch end
  return r.producer, r.epoch
end

-- RETURNS the status for a pair that is neither the owner of the id nor the last one. As in Kafka, only a producer id of the
-- transactional id is fenced.
local function stranger_problem(r, producer)
  return (producer == r.producer or producer == r.last_producer or producer == r.txn_producer) and 'fenced' or 'mapping'
end

-- RETURNS nil, or the status that says why this pair may not write in a transaction of the id now. The owner of a kept
-- transaction can only end it.
local function owner_problem(r, producer, epoch)
  if not r then return 'mapping' end
  if r.next then return 'wait' end
  if is_kept(r) and is_owner(r, producer, epoch) then return 'prepared' end
  if is_owner(r, producer, epoch) then return nil end
  return is_last(r, producer, epoch) and r.by == 'server' and 'abortable' or stranger_problem(r, producer)
end

local function part_of(topic_name, field) return topic_name .. '/' .. field .. ';' end

local TOTAL = 'total'
local name_bytes_more = 0

local function count_names(r, bytes)
  r.name_bytes = r.name_bytes + bytes
  name_bytes_more = name_bytes_more + bytes
end

local function store_total(keys)
  if name_bytes_more ~= 0 then redis.call('HINCRBY', keys.txn_parts, TOTAL, string.format('%d', name_bytes_more)) end
  name_bytes_more = 0
end

-- Whether the names in all transactions have reached their limit.
local function are_names_full(keys, limits)
  return tonumber(redis.call('HGET', keys.txn_parts, TOTAL) or 0) + name_bytes_more >= limits.name_bytes
end

-- Lists that this script has read: field -> {text, known (part -> true), added: [part, …]}.
local part_lists = {}

local function part_list(keys, field, r)
  local list = part_lists[field]
  if not list then
    list = {text = r.part_count > 0 and redis.call('HGET', keys.txn_parts, field) or '', known = {}, added = {}}
    for part in list.text:gmatch('[^;]+;') do list.known[part] = true end
    part_lists[field] = list
  end
  return list
end

local function has_part(keys, field, r, part)
  return part_list(keys, field, r).known[part] == true
end

local function add_part(keys, field, r, part)
  local list = part_list(keys, field, r)
  list.known[part] = true
  list.added[#list.added + 1] = part
  r.part_count = r.part_count + 1
  count_names(r, #part)
end

local function store_part_lists(keys)
  for _, field in ipairs(sorted_keys(part_lists)) do
    local list = part_lists[field]
    if #list.added > 0 then redis.call('HSET', keys.txn_parts, field, list.text .. table.concat(list.added)) end
  end
end

local function add_group(r, group)
  r.groups[#r.groups + 1] = group
  count_names(r, #group)
end

local function has_group(r, group)
  for _, each in ipairs(r.groups) do
    if each == group then return true end
  end
  return false
end

-- RETURNS when a transaction that began at `since` is to be aborted.
local function deadline_of(r, since)
  if r.two_phase then return NEVER + since end
  return since + r.timeout
end

local function store_deadline(keys, field, deadline)
  redis.call('ZADD', keys.txn_deadlines, string.format('%.0f', deadline), field)
end

-- A transaction is ongoing from here on. `deadlines`: field -> when it is to be aborted.
local function begin_transaction(r, field, now, deadlines)
  if r.ongoing then return end
  r.ongoing, r.since = true, now
  deadlines[field] = deadline_of(r, now)
end

local function store_transactions(keys, records, deadlines)
  store_records(keys.txns, records)
  store_part_lists(keys)
  store_total(keys)
  for _, field in ipairs(sorted_keys(deadlines)) do store_deadline(keys, field, deadlines[field]) end
end

-- The transaction continues, with the changes of the init: the owner, the timeout of later transactions, two-phase commit.
local function keep_transaction(keys, field, r, record)
  for name, value in pairs(record) do r[name] = value end
  r.forgiving = false
  if r.two_phase then store_deadline(keys, field, deadline_of(r, r.since)) end
end

-- The ticket's entries become visible or void. `fields`: the ids that have an entry with it.
local function settle_transactions(keys, ticket, fields, visible)
  local records = load_records(keys.txns, fields)
  for field, r in pairs(records) do
    r.offsets = without(r.offsets, ticket)
    local entry = r.next
    if entry and entry.ticket == ticket then
      r.next = false
      if visible and entry.kind == 'keep' then
        keep_transaction(keys, field, r, entry.record)
      elseif visible then
        redis.call('ZREM', keys.txn_deadlines, field)
        redis.call('HDEL', keys.txn_parts, field)
        count_names(r, -r.name_bytes)
        for name, value in pairs(entry.record) do r[name] = value end
        r.txn_producer, r.txn_epoch = '', NO_EPOCH
        r.ongoing, r.since, r.forgiving = false, 0, false
        r.part_count, r.groups, r.offset_rows, r.offsets = 0, {}, 0, ''
      end
      if r.producer == '' or visible and entry.kind == 'forget' then records[field] = false end
    end
  end
  store_records(keys.txns, records)
  store_total(keys)
end
