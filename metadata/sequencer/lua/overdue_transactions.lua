-- PURPOSE  List transactions whose timeout has passed, so that brokers abort them. Also find the start of the oldest
--          transaction with two-phase commit.
-- ARGV     1 epoch, 2 now (ms), 3 maximum number of transactions
-- RETURNS  packed {'ok', [[id, producer id, producer epoch, version, serial], …], start (ms) of the oldest transaction with
--          two-phase commit, or -1} | {'lost', reason}; producer id and epoch are the owner's
-- INVARIANTS  Changes nothing. An end that is under way is left out.

local keys = keys_by_name(KEYS)
local _, problem = check_epoch(keys, tonumber(ARGV[1]))
if problem then return cmsgpack.pack(problem) end
local fields = redis.call('ZRANGEBYSCORE', keys.txn_deadlines, '-inf', ARGV[2], 'LIMIT', 0, ARGV[3])
local records, overdue = load_records(keys.txns, fields), {}
for _, field in ipairs(fields) do
  local r = records[field]
  if r and r.ongoing and not r.next then
    overdue[#overdue + 1] = {txn_id(field), r.producer, r.epoch, r.version, r.serial}
  end
end
local never = string.format('%.0f', NEVER)
local oldest = redis.call('ZRANGEBYSCORE', keys.txn_deadlines, never, '(+inf', 'WITHSCORES', 'LIMIT', 0, 1)
return cmsgpack.pack({'ok', overdue, oldest[2] and tonumber(oldest[2]) - NEVER or -1})
