-- PURPOSE  A broker becomes a group's coordinator, whoever was it before.
-- ARGV     1 epoch, 2 group, 3 incarnation of the broker, 4 limit of groups, or '' for no limit
--          (the group has committed offsets)
-- RETURNS  packed {'ok', term, revision, [open ticket, …], snapshot or nil} | {'full', groups}
--          | {'lost', reason}
-- INVARIANTS  Each taking has a term of its own, higher than all before: a repeat fences the first.
--          What is stored stays as it is; what earlier coordinators have reserved stays reserved.

local keys = keys_by_name(KEYS)
local group = group_field(ARGV[2])
local meta, problem = check_epoch(keys, tonumber(ARGV[1]))
if problem then return cmsgpack.pack(problem) end

local record = load_records(keys.groups, {group})[group]
local groups = redis.call('HLEN', keys.groups) - 1  -- a field is the hash's own
if not record and ARGV[4] ~= '' and groups >= tonumber(ARGV[4]) then
  return cmsgpack.pack({'full', groups})
end
record = record
  or {revision = 0, state = '', protocol_type = '', open = ''}
record.term, record.owner = meta.group_term + 1, ARGV[3]
redis.call('HSET', keys.meta, 'group_term', string.format('%d', record.term))
store_records(keys.groups, {[group] = record})
-- A snapshot is stored packed: Lua would pack its bytes as text.
return '\149' .. cmsgpack.pack('ok', record.term, record.revision, tickets_of(record.open)) ..
  (redis.call('HGET', keys.group_snapshots, group) or '\192')
