-- PURPOSE  Which epoch is active on this very server?
-- RETURNS  packed {'ok', epoch} | {'none'}
-- INVARIANTS  Changes nothing. An epoch counts only where its state is whole.

local keys = keys_by_name(KEYS)
local epoch = tonumber(redis.pcall('HGET', keys.meta, 'epoch') or '')
if not epoch or not check_epoch(keys, epoch) then return cmsgpack.pack({'none'}) end
return cmsgpack.pack({'ok', epoch})
