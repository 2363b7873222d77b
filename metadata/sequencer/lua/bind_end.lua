-- PURPOSE  Bind an EndTxn of a version 1 client to the transaction that is ongoing when the request arrives.
-- ARGV     1 epoch, 2 id, 3 producer id, 4 producer epoch, 5 commit ('1' or '0')
-- RETURNS  packed {'bound', serial} | {'done', producer id, producer epoch} | {'wait' | 'mapping' | 'fenced' | 'abortable' |
--          'invalid_state'} | {'lost', reason}
-- INVARIANTS  A request without a transaction to end is answered from this state at once. Later, it could end the next
--          transaction, which has the same producer epoch. The answer also clears `forgiving`. Otherwise, a late batch or
--          offset of the ended transaction would begin a transaction that no client ends.

local keys = keys_by_name(KEYS)
local _, problem = check_epoch(keys, tonumber(ARGV[1]))
if problem then return cmsgpack.pack(problem) end
local field, producer, epoch, commit = txn_field(ARGV[2]), ARGV[3], tonumber(ARGV[4]), ARGV[5] == '1'
local r = load_records(keys.txns, {field})[field]
if not r then return cmsgpack.pack({'mapping'}) end
if r.ongoing and is_owner(r, producer, epoch) then return cmsgpack.pack({'bound', r.serial}) end
if r.next then return cmsgpack.pack({'wait'}) end
local answer = end_answer(r, producer, epoch, commit, 1, 'client', -1)
if r.forgiving and answer[1] == 'done' and is_owner(r, producer, epoch) then
  r.forgiving = false
  store_records(keys.txns, {[field] = r})
end
return cmsgpack.pack(answer)
