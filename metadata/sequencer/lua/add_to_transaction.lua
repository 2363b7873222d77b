-- PURPOSE  Add partitions and groups to a producer's transaction (clients of version 1), or look whether they are in it.
-- ARGV     1 epoch, 2 now (ms), 3 packed {id, producer, producer epoch, parts: [[topic name, topic id, partition], …],
--          groups: [group, …], verify_only, limits: {partitions, groups}}
-- RETURNS  packed {'ok' | 'mapping' | 'wait' | 'fenced' | 'abortable' | 'prepared' | 'invalid_state' | 'too_many'}
--          | {'lost', reason}
-- INVARIANTS  All or nothing. Nothing of it is in the log: what is acknowledged of a transaction is its batches and
--          its offsets. `invalid_state`: verified partitions are not all in the transaction.

local keys = keys_by_name(KEYS)
local now, want = tonumber(ARGV[2]), cmsgpack.unpack(ARGV[3])
local _, problem = check_epoch(keys, tonumber(ARGV[1]))
if problem then return cmsgpack.pack(problem) end

local field = txn_field(want.id)
local r = load_records(keys.txns, {field})[field]
local refusal = owner_problem(r, want.producer, want.producer_epoch)
if refusal then return cmsgpack.pack({refusal}) end

local new_parts, new_groups = {}, {}
for _, part in ipairs(want.parts) do
  local name = part_of(part[1], partition_field(part[2], part[3]))
  if not has_part(keys, field, r, name) then new_parts[#new_parts + 1] = name end
end
for _, group in ipairs(want.groups) do
  if not has_group(r, group) then new_groups[#new_groups + 1] = group end
end
if want.verify_only then
  local whole = r.ongoing and #new_parts == 0 and #new_groups == 0
  return cmsgpack.pack({whole and 'ok' or 'invalid_state'})
end
if r.part_count + #new_parts > want.limits.partitions or #r.groups + #new_groups > want.limits.groups then
  return cmsgpack.pack({'too_many'})
end
if #new_parts + #new_groups > 0 and are_names_full(keys, want.limits) then return cmsgpack.pack({'too_many'}) end
local deadlines = {}
begin_transaction(r, field, now, deadlines)
for _, name in ipairs(new_parts) do
  if not has_part(keys, field, r, name) then add_part(keys, field, r, name) end
end
for _, group in ipairs(new_groups) do add_group(r, group) end
store_transactions(keys, {[field] = r}, deadlines)
return cmsgpack.pack({'ok'})
