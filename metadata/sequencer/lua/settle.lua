-- Settling: a reservation becomes visible or void, and whoever it blocked moves on.
-- INVARIANTS: visible only when decided and the lowest open ticket of its chain and of every
-- partition, topic and group key it touches, so after all its dependencies are settled; a partition's
-- visible end never passes an open reservation; producer and topic state of a void reservation is
-- rolled back to before it; what becomes visible is appended to the stream once, numbered without a gap.
-- `freed`: ticket -> in how many of the things touched it has become the lowest.

local VISIBLE = -1   -- stands in the place of a ticket once its reservation is visible
local PRODUCER_BATCHES_KEPT = 5

local function free(freed, ticket)
  if ticket then freed[ticket] = (freed[ticket] or 0) + 1 end
end

local function settle_chain(keys, ticket, reservation, freed)
  local writer = load_records(keys.writers, {reservation.writer})[reservation.writer]
  local next_one
  writer.open, next_one = without(writer.open, ticket)
  free(freed, next_one)
  store_records(keys.writers, {[reservation.writer] = writer})
end

-- A topic entry touches all partitions of the topic: `topic_parts` says which. A deletion touches
-- only those that had open tickets: `touched`.
local function settle_partitions(keys, ticket, reservation, visible, freed)
  local fields = {}
  for _, part in ipairs(reservation.parts) do fields[#fields + 1] = part[1] end
  for _, range in ipairs(reservation.topic_parts) do
    for p = 0, range[2] - 1 do fields[#fields + 1] = partition_field(range[1], p) end
  end
  for _, field in ipairs(reservation.touched or {}) do fields[#fields + 1] = field end
  local records = load_records(keys.partitions, fields)   -- absent: not made yet, or deleted
  for _, record in pairs(records) do
    local next_one
    record.open, next_one = without(record.open, ticket)
    free(freed, next_one)
  end
  for _, part in ipairs(reservation.parts) do
    if visible and records[part[1]] then records[part[1]].visible_end = part[2] + part[3] end
  end
  store_records(keys.partitions, records)
end

-- A producer's batches are rows {ticket or VISIBLE, epoch, first, last, base, time (ms)}, oldest first.
local function settle_producers(keys, ticket, reservation, visible)
  local records = load_records(keys.producers, reservation.producers)
  local dirty = {}
  for _, field in ipairs(reservation.producers) do
    local kept, shown = {}, 0
    for _, row in ipairs(records[field] or {}) do
      if row[1] == ticket then
        if visible then row[1] = VISIBLE; kept[#kept + 1] = row end
      else
        kept[#kept + 1] = row
      end
    end
    for _, row in ipairs(kept) do
      if row[1] == VISIBLE then shown = shown + 1 end
    end
    while shown > PRODUCER_BATCHES_KEPT and kept[1][1] == VISIBLE do
      table.remove(kept, 1)
      shown = shown - 1
    end
    dirty[field] = #kept > 0 and kept or false
  end
  store_records(keys.producers, dirty)
end

-- Partitions `from` to `to` of a topic come into being: later open entries of it touch them, too.
-- A deletion does not, because nothing is reserved behind it. All get the same record.
local function add_partitions(keys, version, from, to, later)
  local open, last = '', nil
  for _, entry in ipairs(later) do
    if entry[1] ~= version[1] and entry[1] ~= last and entry[2] == version[2] and not entry[4] then
      if last then
        redis.call('HINCRBY', keys.blocked, string.format('%d', entry[1]), to - from + 1)
      end
      last = entry[1]
      open = open .. string.format('%d:', last) .. NO_BASE .. ','
    end
  end
  local set, packed = {}, cmsgpack.pack({next = 0, visible_end = 0, log_start = 0, open = open})
  for p = from, to do
    set[#set + 1] = partition_field(version[2], p)
    set[#set + 1] = packed
  end
  store_packed(keys.partitions, set)
end

local function delete_partitions(keys, topic_id, count)
  local gone = {}
  for p = 0, count - 1 do gone[p + 1] = partition_field(topic_id, p) end
  delete_fields(keys.partitions, gone)
end

local function first_open(versions)
  for _, version in ipairs(versions) do
    if version[1] ~= VISIBLE then return version[1] end
  end
  return nil
end

-- A topic's key holds versions {ticket or VISIBLE, topic id, partitions, deleted}, oldest first.
local function settle_topics(keys, ticket, reservation, visible, freed)
  local records = load_records(keys.topics, reservation.topics)
  local dirty = {}
  for _, name in ipairs(reservation.topics) do
    local kept, versions = {}, records[name] or {}
    local was_first = first_open(versions) == ticket
    for i, version in ipairs(versions) do
      if version[1] ~= ticket then
        kept[#kept + 1] = version
      elseif visible then
        local before = kept[#kept]
        local had = before and before[2] == version[2] and not before[4] and before[3] or 0
        if version[4] then
          delete_partitions(keys, version[2], had)
          kept = {}
        else
          add_partitions(keys, version, had, version[3] - 1, {unpack(versions, i + 1)})
          version[1] = VISIBLE
          kept = {version}
        end
      end
    end
    if was_first then free(freed, first_open(kept)) end
    dirty[name] = #kept > 0 and kept or false
  end
  store_records(keys.topics, dirty)
end

-- Whoever was forgotten is kept for what was open, and goes with it.
local function settle_groups(keys, ticket, reservation, freed)
  local records = load_records(keys.groups, reservation.groups)
  for group, record in pairs(records) do
    local next_one
    record.open, next_one = without(record.open, ticket)
    free(freed, next_one)
    if record.term == NO_TERM and record.open == '' then records[group] = false end
  end
  store_records(keys.groups, records)
end

-- An entry's `end`: the bytes of all indexes of this epoch, up to and including its own.
local function append_to_stream(keys, meta, epoch, name, reservation, stream)
  meta.visible = meta.visible + 1
  local index, size = unpack(cmsgpack.unpack(redis.call('HGET', keys.indexes, name)))
  meta.stream_end = meta.stream_end + #index
  redis.call('XADD', keys.visible, 'MAXLEN', '~', stream.segments_max,
    string.format('%d-%d', epoch, meta.visible),
    'writer', reservation.writer, 'seq', string.format('%d', reservation.seq), 'ticket', name,
    'size', size, 'index', index, 'end', string.format('%d', meta.stream_end))
end

-- Drops the oldest entries until the indexes have at most `bytes_max` bytes; the newest entry stays.
-- `meta.stream_start` is at most where the oldest entry begins, because MAXLEN drops entries, too.
local function trim_stream(keys, meta, bytes_max)
  while meta.stream_end - meta.stream_start > bytes_max do
    local oldest = redis.call('XRANGE', keys.visible, '-', '+', 'COUNT', 1)[1]
    local fields = {}
    for i = 1, oldest and #oldest[2] or 0, 2 do fields[oldest[2][i]] = oldest[2][i + 1] end
    local ending = tonumber(fields['end'] or '')
    if not ending or not fields.index then return end  -- a damaged entry: its readers will report it
    meta.stream_start = ending - #fields.index
    if meta.stream_end - meta.stream_start <= bytes_max or ending == meta.stream_end then return end
    redis.call('XDEL', keys.visible, oldest[1])
    meta.stream_start = ending
  end
end

-- Settle `work`, rows {ticket, visible or not}, in this order, then all that it makes visible.
-- `stream`: the limits {segments_max, bytes_max} of the stream.
-- Advances and stores `meta.visible`.
local function settle(keys, meta, epoch, work, stream)
  local at = 1
  while work[at] do
    local ticket, visible = unpack(work[at])
    local name = string.format('%d', ticket)
    local reservation = cmsgpack.unpack(redis.call('HGET', keys.reservations, name))
    local freed = {}
    settle_chain(keys, ticket, reservation, freed)
    settle_partitions(keys, ticket, reservation, visible, freed)
    settle_producers(keys, ticket, reservation, visible)
    settle_topics(keys, ticket, reservation, visible, freed)
    settle_groups(keys, ticket, reservation, freed)
    if reservation.txns then settle_transactions(keys, ticket, reservation.txns, visible) end
    if visible then append_to_stream(keys, meta, epoch, name, reservation, stream) end
    for _, key in ipairs({'reservations', 'holders', 'indexes', 'blocked'}) do
      redis.call('HDEL', keys[key], name)
    end
    redis.call('ZREM', keys.open, name)
    for _, later in ipairs(sorted_keys(freed)) do
      local later_name = string.format('%d', later)
      local left = redis.call('HINCRBY', keys.blocked, later_name, -freed[later])
      local decided = redis.call('HGET', keys.holders, later_name):sub(1, 1) == 'd'
      if left == 0 and decided then work[#work + 1] = {later, true} end
    end
    at = at + 1
  end
  trim_stream(keys, meta, stream.bytes_max)
  redis.call('HSET', keys.meta, 'visible', string.format('%d', meta.visible),
    'stream_start', string.format('%d', meta.stream_start), 'stream_end', string.format('%d', meta.stream_end))
end
