-- PURPOSE  Is the epoch's state still there, on the server it is bound to?
-- ARGV     1 epoch
-- RETURNS  packed {'ok'} | {'lost', reason}
-- INVARIANTS  Changes nothing.

local keys = keys_by_name(KEYS)
local _, problem = check_epoch(keys, tonumber(ARGV[1]))
return cmsgpack.pack(problem or {'ok'})
