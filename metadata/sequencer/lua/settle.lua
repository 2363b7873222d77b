-- Settling: a reservation becomes visible or void, and whoever waited for it moves on.
-- INVARIANTS: visible only after all dependencies are visible or void; a partition's visible end
-- never passes an open reservation; producer and topic state of a void reservation is rolled back
-- to before it; what becomes visible is appended to the stream once, numbered without a gap.

local VISIBLE = -1   -- stands in the place of a ticket once its reservation is visible
local PRODUCER_BATCHES_KEPT = 5

local function settle_partitions(keys, ticket, reservation, visible)
  local fields = {}
  for i, part in ipairs(reservation.parts) do fields[i] = part[1] end
  local records = load_records(keys.partitions, fields)
  local dirty = {}
  for _, part in ipairs(reservation.parts) do
    local record = records[part[1]]
    if record then   -- absent: its topic's deletion became visible
      local open = {}
      for i = 1, #record.open, 2 do
        if record.open[i] ~= ticket then
          open[#open + 1] = record.open[i]
          open[#open + 1] = record.open[i + 1]
        end
      end
      record.open = open
      if visible then record.visible_end = part[2] + part[3] end
      dirty[part[1]] = record
    end
  end
  store_records(keys.partitions, dirty)
end

-- A producer's batches are rows {ticket or VISIBLE, epoch, first, last, base}, oldest first.
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

-- A topic's key holds versions {ticket or VISIBLE, topic id, partitions, deleted}, oldest first.
local function settle_topics(keys, ticket, reservation, visible)
  local records = load_records(keys.topics, reservation.topics)
  local dirty, partitions = {}, {}
  for _, name in ipairs(reservation.topics) do
    local kept = {}
    for _, version in ipairs(records[name] or {}) do
      if version[1] ~= ticket then
        kept[#kept + 1] = version
      elseif visible then
        local before = kept[#kept]
        local had = before and before[2] == version[2] and not before[4] and before[3] or 0
        if version[4] then
          for p = 0, had - 1 do partitions[partition_field(version[2], p)] = false end
          kept = {}
        else
          for p = had, version[3] - 1 do
            partitions[partition_field(version[2], p)] =
              {next = 0, visible_end = 0, log_start = 0, open = {}}
          end
          version[1] = VISIBLE
          kept = {version}
        end
      end
    end
    dirty[name] = #kept > 0 and kept or false
  end
  store_records(keys.topics, dirty)
  store_records(keys.partitions, partitions)
end

-- RETURNS the tickets that became visible. `meta.visible` is advanced; the caller stores it.
local function settle(keys, meta, epoch, first, outcome, stream_max)
  local work, shown = {{first, outcome}}, {}
  while #work > 0 do
    local ticket, fate = unpack(table.remove(work, 1))
    local name = string.format('%d', ticket)
    local reservation = cmsgpack.unpack(redis.call('HGET', keys.reservations, name))
    local visible = fate == 'visible'
    settle_partitions(keys, ticket, reservation, visible)
    settle_producers(keys, ticket, reservation, visible)
    settle_topics(keys, ticket, reservation, visible)
    if visible then
      meta.visible = meta.visible + 1
      local index, size = unpack(cmsgpack.unpack(redis.call('HGET', keys.indexes, name)))
      redis.call('XADD', keys.visible, 'MAXLEN', '~', stream_max,
        string.format('%d-%d', epoch, meta.visible),
        'writer', reservation.writer, 'seq', string.format('%d', reservation.seq), 'ticket', name,
        'size', size, 'index', index)
      shown[#shown + 1] = ticket
    end
    local dependents = redis.call('HGET', keys.dependents, name)
    for _, key in ipairs({'reservations', 'holders', 'indexes', 'waits', 'dependents'}) do
      redis.call('HDEL', keys[key], name)
    end
    redis.call('ZREM', keys.open, name)
    for _, later in ipairs(dependents and cmsgpack.unpack(dependents) or {}) do
      local later_name = string.format('%d', later)
      local waits = redis.call('HGET', keys.waits, later_name)
      if waits then
        local left = {}
        for _, dependency in ipairs(cmsgpack.unpack(waits)) do
          if dependency ~= ticket then left[#left + 1] = dependency end
        end
        redis.call('HSET', keys.waits, later_name, cmsgpack.pack(left))
        local decided = redis.call('HGET', keys.holders, later_name):sub(1, 1) == 'd'
        if #left == 0 and decided then work[#work + 1] = {later, 'visible'} end
      end
    end
  end
  return shown
end
