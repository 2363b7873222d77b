-- PURPOSE  Where is the epoch, at one moment: for a broker that joins.
-- ARGV     1 epoch
-- RETURNS  packed {'ok', last visible number, next ticket, [open ticket, …]} | {'lost', reason}
-- INVARIANTS  Changes nothing. Visible at that moment is every committed segment of the bucket with a
--          ticket below the next one that is not open.

local keys = keys_by_name(KEYS)
local meta, problem = check_epoch(keys, tonumber(ARGV[1]))
if problem then return cmsgpack.pack(problem) end
local open = {}
for i, ticket in ipairs(redis.call('ZRANGEBYSCORE', keys.open, 0, '(+inf')) do open[i] = tonumber(ticket) end
return cmsgpack.pack({'ok', meta.visible, meta.ticket, open})
