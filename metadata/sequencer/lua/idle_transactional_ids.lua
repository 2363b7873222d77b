-- PURPOSE  Transactional ids that may be forgotten. Each call checks a part of them, from a cursor on.
-- ARGV     1 epoch, 2 cursor ('0': start), 3 approximate number to check, 4 not updated since (ms)
-- RETURNS  packed {'ok', next cursor ('0': all were checked), [id, …]} | {'lost', reason}
-- INVARIANTS  Changes nothing: `reserve` decides again.

local keys = keys_by_name(KEYS)
local _, problem = check_epoch(keys, tonumber(ARGV[1]))
if problem then return cmsgpack.pack(problem) end
local found = redis.call('HSCAN', keys.txns, ARGV[2], 'COUNT', ARGV[3])
local idle = {}
for i = 1, #found[2], 2 do
  local field = found[2][i]
  if field ~= '' and is_idle_id(cmsgpack.unpack(found[2][i + 1]), tonumber(ARGV[4])) then
    idle[#idle + 1] = txn_id(field)
  end
end
return cmsgpack.pack({'ok', found[1], idle})
