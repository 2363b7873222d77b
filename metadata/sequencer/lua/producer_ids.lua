-- PURPOSE  Hand out a block of producer id counters of this epoch (id = epoch << 40 | counter).
-- ARGV     1 epoch, 2 how many
-- RETURNS  packed {'ok', first counter} | {'lost', reason}
-- INVARIANTS  A counter is handed out once an epoch; a lost answer wastes a block, no more.

local keys = keys_by_name(KEYS)
local meta, problem = check_epoch(keys, tonumber(ARGV[1]))
if problem then return cmsgpack.pack(problem) end
redis.call('HINCRBY', keys.meta, 'producer', ARGV[2])
return cmsgpack.pack({'ok', meta.producer})
