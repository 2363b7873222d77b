-- PURPOSE  List the transactional ids. Each call checks a part of them, from a cursor on.
-- ARGV     1 epoch, 2 cursor ('0': start), 3 approximate number to check, 4 packed producer ids
--          (of a kept transaction: the id that began it); empty: all producers
-- RETURNS  packed {'ok', next cursor ('0': all were checked), [row of transaction_listing.lua, …]} | {'lost', reason}
-- INVARIANTS  Changes nothing. An id may come twice, as with HSCAN.

local keys = keys_by_name(KEYS)
local _, problem = check_epoch(keys, tonumber(ARGV[1]))
if problem then return cmsgpack.pack(problem) end
local wanted, is_filtered = {}, false
for _, producer in ipairs(cmsgpack.unpack(ARGV[4])) do wanted[producer], is_filtered = true, true end
local found = redis.call('HSCAN', keys.txns, ARGV[2], 'COUNT', ARGV[3])
local listed = {}
for i = 1, #found[2], 2 do
  local field = found[2][i]
  local r = field ~= '' and cmsgpack.unpack(found[2][i + 1])
  if r and is_shown(r) and (not is_filtered or wanted[(transaction_pair(r))]) then
    listed[#listed + 1] = listed_transaction(field, r)
  end
end
return cmsgpack.pack({'ok', found[1], listed})
