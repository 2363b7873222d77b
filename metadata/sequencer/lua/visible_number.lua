-- PURPOSE  The number of the last visible segment.
-- ARGV     1 epoch
-- RETURNS  packed {'ok', number} | {'lost', reason}
-- INVARIANTS  Changes nothing.

local keys = keys_by_name(KEYS)
local meta, problem = check_epoch(keys, tonumber(ARGV[1]))
return cmsgpack.pack(problem or {'ok', meta.visible})
