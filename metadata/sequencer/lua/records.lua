-- Packed records in hashes: read many fields in one call, write many in one call.
-- Lua's unpack is limited, hence the chunks.

local CHUNK = 1000

-- RETURNS a table field -> packed record (absent fields are absent).
local function load_packed(key, fields)
  local found = {}
  for start = 1, #fields, CHUNK do
    local stop = math.min(start + CHUNK - 1, #fields)
    local values = redis.call('HMGET', key, unpack(fields, start, stop))
    for i = start, stop do
      local value = values[i - start + 1]
      if value then found[fields[i]] = value end
    end
  end
  return found
end

-- RETURNS a table field -> record (absent fields are absent).
local function load_records(key, fields)
  local found = load_packed(key, fields)
  for field, packed in pairs(found) do found[field] = cmsgpack.unpack(packed) end
  return found
end

local function delete_fields(key, gone)
  for start = 1, #gone, CHUNK do
    redis.call('HDEL', key, unpack(gone, start, math.min(start + CHUNK - 1, #gone)))
  end
end

-- `set`: fields and packed records in turn.
local function store_packed(key, set)
  for start = 1, #set, CHUNK do
    redis.call('HSET', key, unpack(set, start, math.min(start + CHUNK - 1, #set)))
  end
end

-- `records`: field -> record to store, or false to delete.
local function store_records(key, records)
  local set, gone = {}, {}
  for field, record in pairs(records) do
    if record then
      set[#set + 1] = field
      set[#set + 1] = cmsgpack.pack(record)
    else
      gone[#gone + 1] = field
    end
  end
  store_packed(key, set)
  delete_fields(key, gone)
end

-- Runs through a Lua table in a fixed order: scripts must give the same result every time.
local function sorted_keys(record)
  local names = {}
  for name in pairs(record) do names[#names + 1] = name end
  table.sort(names)
  return names
end

-- Topics and partitions as they are named in the hashes.
local function partition_field(topic_id, partition)
  return topic_id .. ':' .. string.format('%d', partition)
end
