"""The part of `segment verify` that checks transactions.

It compares markers with the facts of their segments, and says which batches of log segments must be
in tiers.

Invariant: tiers leave out batches of aborted transactions and markers, but no committed batches
(docs/format/tier.md). Below the checkpoint with which the check begins, segments may be missing, so
the outcome of a transaction is not known there.
"""

from collections.abc import Iterable
from enum import Enum

from bucketlog.log_format.batch import CONTROL, OF_TRANSACTION
from bucketlog.log_format.control_batch import decode_marker
from bucketlog.log_format.errors import CorruptObjectError, InvalidDataError
from bucketlog.log_format.model import BatchIndex, Buffer, SegmentIndex, TopicIdPartition
from bucketlog.log_format.transactions import AbortedBatches, PartitionTransactions
from bucketlog.metadata.transactions import note_batch, outcomes_in


class InTier(Enum):
    """Whether a batch of a log segment must be in the tier, byte for byte."""

    KEPT = "kept"
    LEFT_OUT = "left out"
    UNKNOWN = "unknown"


def check_markers(key: str, index: SegmentIndex, data: Buffer) -> None:
    """Check the markers of a segment. `data` is the whole segment, whose batches are sound. Raises
    `CorruptObjectError`."""
    view = memoryview(data)
    outcomes: dict[int, bool] | None = None
    for part in index.partitions:
        for row in part.batches:
            if not row.attributes & CONTROL:
                continue
            try:
                marker = decode_marker(view[row.position : row.position + row.length])
                outcomes = outcomes_in(index) if outcomes is None else outcomes
            except InvalidDataError as error:
                raise CorruptObjectError(key, row.position, error.message) from error
            committed = outcomes.get(row.producer_id)
            if committed is None:
                reason = "no fact of the segment says how its transaction ended"
            elif committed != marker.committed:
                reason = "the fact of its transaction says otherwise"
            else:
                continue
            raise CorruptObjectError(
                key,
                row.position,
                f"the marker of producer {row.producer_id} at offset {row.base_offset}: {reason}",
            )


class TransactionEnds:
    """The outcomes of transactions. `before`: the transactions at the checkpoint with which the
    check begins."""

    def __init__(
        self,
        before: dict[TopicIdPartition, PartitionTransactions],
        after: Iterable[SegmentIndex],
    ) -> None:
        """`after`: the committed segments after the checkpoint, in ticket order. They must fold."""
        self._transactions = before
        for index in after:
            outcomes = outcomes_in(index)
            for part in index.partitions:
                for row in part.batches:
                    if row.attributes & OF_TRANSACTION:
                        found = before.setdefault(part.partition, PartitionTransactions())
                        note_batch(found, row, outcomes)
        self._aborted = {
            partition: AbortedBatches(list(found.aborted())) for partition, found in before.items()
        }

    def in_tier(self, partition: TopicIdPartition, row: BatchIndex, *, is_after: bool) -> InTier:
        """`is_after`: the batch is in a segment after the checkpoint."""
        if not row.attributes & OF_TRANSACTION:
            return InTier.KEPT
        if not is_after:
            return InTier.UNKNOWN
        if row.attributes & CONTROL or row in self._aborted[partition]:
            return InTier.LEFT_OUT
        opened = self._transactions[partition].open.get(row.producer_id)
        if opened is not None and row.base_offset >= opened.first_offset:
            return InTier.UNKNOWN
        return InTier.KEPT
