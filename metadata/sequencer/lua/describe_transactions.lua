-- PURPOSE  Describe some transactional ids.
-- ARGV     1 epoch, 2 packed ids
-- RETURNS  packed {'ok', [[row of transaction_listing.lua, timeout (ms), parts, last producer id, last producer epoch,
--          outcome], …]} | {'lost', reason}; ids that do not exist are left out. `parts`: as in transaction_records.lua
-- INVARIANTS  Changes nothing.

local keys = keys_by_name(KEYS)
local _, problem = check_epoch(keys, tonumber(ARGV[1]))
if problem then return cmsgpack.pack(problem) end
local fields, described = {}, {}
for i, id in ipairs(cmsgpack.unpack(ARGV[2])) do fields[i] = txn_field(id) end
local records = load_records(keys.txns, fields)
for _, field in ipairs(fields) do
  local r = records[field]
  if r and is_shown(r) then
    local parts = part_list(keys, field, r).text
    described[#described + 1] = {listed_transaction(field, r), r.timeout, parts, r.last_producer, r.last_epoch, r.outcome}
  end
end
return cmsgpack.pack({'ok', described})
