"""isolation.level: which batches a `read_committed` reader gets. Pure.

The outcome of a transaction is in the footer of the segment that has its markers, and in
checkpoints: no object is read to find it. Invariants: a reader gets no batch at or above the first
batch of a transaction that has not ended (Kafka's last stable offset), and no batch of an aborted
transaction. A marker counts only in the readable part of its partition (`tiered_storage.log_cut`),
so that what a reader got never changes. Tiers hold no records of open or aborted transactions
(docs/format/tier.md).
"""

from collections.abc import Mapping
from dataclasses import replace

from bucketlog.log_format.batch import OF_TRANSACTION
from bucketlog.log_format.model import PartitionTier, TopicIdPartition
from bucketlog.log_format.transactions import AbortedBatches, PartitionTransactions
from bucketlog.metadata.fold import LogState
from bucketlog.metadata.transactions import note_batch, outcomes_in
from bucketlog.tiered_storage.log_cut import LogSnapshot, ReadablePartition

_NONE = PartitionTransactions()

PartitionsInTransactions = dict[TopicIdPartition, PartitionTransactions]


def transactions_of(state: LogState) -> PartitionsInTransactions:
    """Copies of the transactions of each partition that has any."""
    return {
        partition: entry.transactions.copy()
        for partition, entry in state.partitions.items()
        if entry.transactions
    }


def committed_only(
    snapshot: LogSnapshot,
    before: PartitionsInTransactions,
    parts: Mapping[TopicIdPartition, ReadablePartition],
    tiers: Mapping[TopicIdPartition, PartitionTier],
) -> dict[TopicIdPartition, ReadablePartition]:
    """`parts` without batches of aborted transactions, up to the last stable offset. `before` are
    the transactions at the snapshot's checkpoint; the call changes them. Raises
    `InvalidDataError`."""
    for index in snapshot.segments:
        outcomes: dict[int, bool] | None = None
        for listed in index.partitions:
            part = parts.get(listed.partition)
            if part is None:
                continue
            for row in listed.batches:
                if row.attributes & OF_TRANSACTION and row.next_offset <= part.end_offset:
                    outcomes = outcomes_in(index) if outcomes is None else outcomes
                    found = before.setdefault(listed.partition, PartitionTransactions())
                    note_batch(found, row, outcomes)
    return {
        partition: _stable(part, before.get(partition, _NONE), tiers[partition].batches_from)
        for partition, part in parts.items()
    }


def _stable(
    part: ReadablePartition, transactions: PartitionTransactions, start: int
) -> ReadablePartition:
    if not transactions:
        return part
    end = transactions.stable_end(part.end_offset, start)
    aborted = AbortedBatches(list(transactions.aborted()))
    return replace(
        part,
        batches=tuple(
            batch
            for batch in part.batches
            if batch.row.next_offset <= end and batch.row not in aborted
        ),
        end_offset=end,
    )
