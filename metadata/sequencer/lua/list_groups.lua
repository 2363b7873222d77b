-- PURPOSE  Which groups have a coordinator?
-- ARGV     1 epoch
-- RETURNS  packed {'ok', [[group, state, protocol type, owner], …]} | {'lost', reason}
-- INVARIANTS  Changes nothing. Sorted.

local keys = keys_by_name(KEYS)
local _, problem = check_epoch(keys, tonumber(ARGV[1]))
if problem then return cmsgpack.pack(problem) end
local all, found, rows = redis.call('HGETALL', keys.groups), {}, {}
for i = 1, #all, 2 do
  local record = all[i] ~= '' and cmsgpack.unpack(all[i + 1])
  if record and record.term ~= NO_TERM then found[group_of(all[i])] = record end
end
for i, group in ipairs(sorted_keys(found)) do
  local record = found[group]
  rows[i] = {group, record.state, record.protocol_type, record.owner}
end
return cmsgpack.pack({'ok', rows})
