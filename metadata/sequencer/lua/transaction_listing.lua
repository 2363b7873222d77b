-- How transactional ids are shown to administrators. Needs transaction_records.lua.

-- RETURNS Kafka's word for the state of an id. An entry that is open shows as the state it leads to.
local function transaction_state(r)
  local entry = r.next
  if entry and entry.kind == 'end' then
    return entry.record.outcome == 'committed' and 'PrepareCommit' or 'PrepareAbort'
  end
  if entry and entry.kind == 'init' and r.ongoing then return 'PrepareAbort' end
  if r.ongoing then return 'Ongoing' end
  if r.outcome == 'none' then return 'Empty' end
  return r.outcome == 'committed' and 'CompleteCommit' or 'CompleteAbort'
end

-- Is the id's first init visible?
local function is_shown(r) return r.producer ~= '' end

-- RETURNS [id, producer id, producer epoch, state, start of the transaction (ms; 0: none), serial, version, producer id and
-- epoch of the owner]. The first pair began the transaction.
local function listed_transaction(field, r)
  local producer, epoch = transaction_pair(r)
  return {txn_id(field), producer, epoch, transaction_state(r), r.since, r.serial, r.version, r.producer, r.epoch}
end
