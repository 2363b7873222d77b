-- PURPOSE  Which groups are there?
-- ARGV     1 epoch
-- RETURNS  packed {'ok', [group, record, …]} | {'lost', reason}; forgotten groups are among them
-- INVARIANTS  Changes nothing. In no order. Records leave as they are stored: to unpack and pack
--          thousands of them here would hold up whoever reserves.

local keys = keys_by_name(KEYS)
local _, problem = check_epoch(keys, tonumber(ARGV[1]))
if problem then return cmsgpack.pack(problem) end
local all, parts = redis.call('HGETALL', keys.groups), {}
for i = 1, #all, 2 do
  local group = group_of(all[i])
  if group then
    parts[#parts + 1] = cmsgpack.pack(group)
    parts[#parts + 1] = all[i + 1]
  end
end
return '\146' .. cmsgpack.pack('ok') .. struct.pack('>BI4', 221, #parts) .. table.concat(parts)
