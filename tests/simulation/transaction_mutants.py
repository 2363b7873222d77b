"""Rules about transactions, broken."""

from tests.simulation.source_changes import Mutant, one

TRANSACTION_MUTANTS: dict[str, Mutant] = {
    "txn-check": one(
        "only the pair that owns a transactional id may write",
        "transaction_records.lua",
        "if is_owner(r, producer, epoch) then return nil end",
        "if true then return nil end",
    ),
    "txn-init-aborts": one(
        "an init aborts what is open",
        "transaction_rules.lua",
        "if r.ongoing then\n    local places = judge_markers(ctx, field, r, false)",
        "if false then\n    local places = judge_markers(ctx, field, r, false)",
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
    "txn-carry": one(
        "an epoch begins with the transactions that the log shows open",
        "bucketlog.metadata.sequencer.staging:_is_ongoing",
        "return transactional_id in transactions.pending or",
        "return False and",
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
}
