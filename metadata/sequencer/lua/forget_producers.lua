-- PURPOSE  Expire idle producers. Each call checks a part of them, from a cursor on.
-- ARGV     1 epoch, 2 cursor ('0': start), 3 approximate number to check, 4 now (ms), 5 idle time (ms)
-- RETURNS  packed {'ok', next cursor ('0': all were checked), number of expired rows, number of rows that stay} | {'lost', reason}
-- INVARIANTS  A producer with an open batch stays, and so does a row without a time. A time in the
--          future means that the clock was set back: the row stays until the clock has passed it.

local keys = keys_by_name(KEYS)
local _, problem = check_epoch(keys, tonumber(ARGV[1]))
if problem then return cmsgpack.pack(problem) end
local before = tonumber(ARGV[4]) - tonumber(ARGV[5])
local found = redis.call('HSCAN', keys.producers, ARGV[2], 'COUNT', ARGV[3])
local gone, checked = {}, 0
for i = 1, #found[2], 2 do
  local field, rows = found[2][i], found[2][i + 1] ~= '' and cmsgpack.unpack(found[2][i + 1])
  local idle = field ~= '' and rows
  if field ~= '' then checked = checked + 1 end
  for _, row in ipairs(rows or {}) do
    idle = idle and row[1] < 0 and row[6] ~= nil and row[6] < before
  end
  if idle then gone[field] = false end
end
store_records(keys.producers, gone)
local expired = #sorted_keys(gone)
return cmsgpack.pack({'ok', found[1], expired, checked - expired})
