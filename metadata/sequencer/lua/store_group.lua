-- PURPOSE  Keep a group for its next coordinator.
-- ARGV     1 epoch, 2 group, 3 term, 4 revision, 5 state, 6 protocol type, 7 packed snapshot
-- RETURNS  packed {'ok'} | {'not_coordinator'} | {'older', stored revision} | {'lost', reason}
-- INVARIANTS  Only by the coordinator that took the group last. Revisions never go back: a call that
--          was overtaken changes nothing. A repeat changes nothing.

local keys = keys_by_name(KEYS)
local group, revision = group_field(ARGV[2]), tonumber(ARGV[4])
local _, problem = check_epoch(keys, tonumber(ARGV[1]))
if problem then return cmsgpack.pack(problem) end
local record = load_records(keys.groups, {group})[group]
if not coordinates(record, tonumber(ARGV[3])) then return cmsgpack.pack({'not_coordinator'}) end
if revision < record.revision then return cmsgpack.pack({'older', record.revision}) end
record.revision, record.state, record.protocol_type = revision, ARGV[5], ARGV[6]
store_records(keys.groups, {[group] = record})
redis.call('HSET', keys.group_snapshots, group, ARGV[7])
return cmsgpack.pack({'ok'})
