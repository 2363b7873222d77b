"""Rules about transactions, broken."""

from tests.simulation.source_changes import Change, Mutant, one

TRANSACTION_MUTANTS: dict[str, Mutant] = {
    "txn-check": one(
        "only the pair that owns a transactional id may write",
        "transaction_records.lua",
        "if is_owner(r, producer, epoch) then return nil end",
        "if true then return nil end",
    ),
    "txn-open": Mutant(
        "while an entry of an id is open, nothing else of it is accepted",
        [
            Change("transaction_records.lua", "if r.next then return 'wait' end", ""),
            Change(
                "transaction_rules.lua",
                "if r.next then return {'wait'} end\n  local answer",
                "local answer",
            ),
        ],
    ),
    "txn-init-aborts": one(
        "an init aborts what is open",
        "transaction_rules.lua",
        "if r.ongoing then\n    local places = judge_markers(ctx, r, false)",
        "if false then\n    local places = judge_markers(ctx, r, false)",
    ),
    "txn-init-raises": one(
        "an init raises the epoch",
        "transaction_rules.lua",
        "record.producer, record.epoch = raised(r, candidate)\n  set_next(ctx, field, r, 'init'",
        "record.producer, record.epoch = r.producer, r.epoch\n  set_next(ctx, field, r, 'init'",
    ),
    "txn-marker-depends": one(
        "a marker depends on all that is open in its partition",
        "reserve.lua",
        "touch(field, base)\n  return base, lowest or base",
        "partitions_dirty[field] = record\n  return base, lowest or base",
    ),
    "txn-rollback": one(
        "a void entry of an id changes nothing",
        "transaction_records.lua",
        "if visible then\n        redis.call('ZREM'",
        "if true then\n        redis.call('ZREM'",
    ),
    "txn-carry": one(
        "an epoch begins with the transactions that the log shows open",
        "bucketlog.metadata.sequencer.staging:_is_ongoing",
        "return transactional_id in transactions.pending or",
        "return False and",
    ),
    "txn-deadline": one(
        "open transactions have deadlines again after an activation",
        "bucketlog.metadata.sequencer.staging:staged_deadlines",
        "if not owner.two_phase and _is_ongoing(state, each, owner)",
        "if False",
    ),
    "txn-newest": one(
        "only the newest epoch tells what is final",
        "bucketlog.stateless_broker.produce.pending_facts:settle_refused",
        "elif status in FINAL and not is_newest:",
        "elif False:",
    ),
    "txn-one-epoch": one(
        "an end of version 1 is of one epoch",
        "bucketlog.stateless_broker.produce.pending_facts:_is_of_one_epoch",
        "return wanted.serial != ANY_SERIAL",
        "return False",
    ),
    "txn-aborted-list": one(
        "readers are told which transactions are aborted",
        "bucketlog.log_format.transactions:PartitionTransactions.aborted_in",
        "if first < end:",
        "if False:",
    ),
    "txn-stable-end": one(
        "read_committed ends at the last stable offset",
        "bucketlog.log_format.transactions:PartitionTransactions.stable_end",
        "high_watermark if first is None else min(high_watermark, max(first.first_offset, start))",
        "high_watermark",
    ),
    "txn-pending-offsets": one(
        "a stable fetch waits for pending offsets",
        "bucketlog.metadata.view:View.pending_offsets",
        "return set(self._state.transactions.held(group))",
        "return set()",
    ),
}
