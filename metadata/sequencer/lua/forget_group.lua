-- PURPOSE  A group is no more: let go of what is stored of it.
-- ARGV     1 epoch, 2 group, 3 term
-- RETURNS  packed {'ok'} | {'not_coordinator'} | {'lost', reason}
-- INVARIANTS  Only by the coordinator that took the group last; a group that is forgotten already is
--          'ok'. Open tickets stay until they are settled: a later taking depends on them still.

local keys = keys_by_name(KEYS)
local group = group_field(ARGV[2])
local _, problem = check_epoch(keys, tonumber(ARGV[1]))
if problem then return cmsgpack.pack(problem) end
local record = load_records(keys.groups, {group})[group]
if not record or record.term == NO_TERM then return cmsgpack.pack({'ok'}) end
if not coordinates(record, tonumber(ARGV[3])) then return cmsgpack.pack({'not_coordinator'}) end
redis.call('HDEL', keys.group_snapshots, group)
store_records(keys.groups, {[group] = record.open ~= '' and nobodys(record.open)})
return cmsgpack.pack({'ok'})
