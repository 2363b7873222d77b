-- Transactional ids in the hash `txns`, field 'i:<id>':
--   producer (text; '' until the id's first init is visible), epoch, last_producer, last_epoch ('' and -1: none),
--   outcome ('none' | 'committed' | 'aborted') and by ('' | 'client' | 'server' | 'init') of the last transaction,
--   serial: how many of its transactions have ended; version, timeout (ms), two_phase, updated (ms)
--   next: false, or the id's one open entry: {ticket, kind ('init' | 'end' | 'forget'), and the fields as it makes them}
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

local function txn_field(id) return 'i:' .. id end

local function txn_id(field) return field:sub(3) end

local function new_transactional_id()
  return {producer = '', epoch = NO_EPOCH, last_producer = '', last_epoch = NO_EPOCH, outcome = 'none', by = '',
    serial = 0, version = 1, timeout = 0, two_phase = false, updated = 0, next = false, ongoing = false, since = 0,
    forgiving = false, part_count = 0, name_bytes = 0, groups = {}, offset_rows = 0, offsets = ''}
end

local function is_owner(r, producer, epoch)
  return r.producer == producer and r.epoch == epoch
end

local function is_last(r, producer, epoch)
  return r.last_epoch ~= NO_EPOCH and r.last_producer == producer and r.last_epoch == epoch
end

-- RETURNS nil, or why this pair may not write in a transaction of the id now.
local function owner_problem(r, producer, epoch)
  if not r then return 'mapping' end
  if r.next then return 'wait' end
  if is_owner(r, producer, epoch) then return nil end
  return is_last(r, producer, epoch) and r.by == 'server' and 'abortable' or 'fenced'
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

-- A transaction is ongoing from here on. `deadlines`: field -> when it is to be aborted.
local function begin_transaction(r, field, now, deadlines)
  if r.ongoing then return end
  r.ongoing, r.since = true, now
  if not r.two_phase then deadlines[field] = now + r.timeout end
end

local function store_transactions(keys, records, deadlines)
  store_records(keys.txns, records)
  store_part_lists(keys)
  store_total(keys)
  for _, field in ipairs(sorted_keys(deadlines)) do
    redis.call('ZADD', keys.txn_deadlines, string.format('%.0f', deadlines[field]), field)
  end
end

-- The ticket's entries become visible or void. `fields`: the ids that have an entry with it.
local function settle_transactions(keys, ticket, fields, visible)
  local records = load_records(keys.txns, fields)
  for field, r in pairs(records) do
    r.offsets = without(r.offsets, ticket)
    local entry = r.next
    if entry and entry.ticket == ticket then
      r.next = false
      if visible then
        redis.call('ZREM', keys.txn_deadlines, field)
        redis.call('HDEL', keys.txn_parts, field)
        count_names(r, -r.name_bytes)
        for name, value in pairs(entry.record) do r[name] = value end
        r.ongoing, r.since, r.forgiving = false, 0, false
        r.part_count, r.groups, r.offset_rows, r.offsets = 0, {}, 0, ''
      end
      if r.producer == '' or visible and entry.kind == 'forget' then records[field] = false end
    end
  end
  store_records(keys.txns, records)
  store_total(keys)
end
