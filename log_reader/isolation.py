"""isolation.level: which batches a reader of committed transactions alone is shown.

Outcomes are learnt from the control batches, of which footers say where they stand: a GET for each.
Invariant: nothing at or behind the first batch of a transaction without an end is shown (Kafka's
last stable offset), and no batch of an aborted one. What stands in tiers is held against it by the
tasks (`log_reader.fetch`): brokers put no transactions there yet.
"""

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from bucketlog.log_format.batch import CONTROL, TRANSACTIONAL, read_header
from bucketlog.log_format.checkpoint import StoredBatch
from bucketlog.log_format.errors import CorruptObjectError, InvalidDataError
from bucketlog.log_format.model import TopicIdPartition
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.bucket import Span, SyncBucket
from bucketlog.tiered_storage.log_cut import ReadablePartition
from bucketlog.tiered_storage.segment import check_batch
from bucketlog.tiered_storage.tier_reader import get_part
from bucketlog.tiered_storage.transaction_outcomes import Transactions, marker_kind

REQUESTS_IN_FLIGHT = 16


class CommittedReader:
    """Asked again and again, it reads each control batch once."""

    def __init__(self, bucket: SyncBucket) -> None:
        self._bucket = bucket
        self._kinds: dict[StoredBatch, int | None] = {}

    def only(
        self, parts: Mapping[TopicIdPartition, ReadablePartition]
    ) -> dict[TopicIdPartition, ReadablePartition]:
        """`parts` without batches of aborted transactions, up to the last stable offset. Raises
        `CorruptObjectError` and the bucket's errors."""
        markers = [
            batch
            for part in parts.values()
            for batch in part.batches
            if batch.row.attributes & CONTROL
        ]
        missing = [marker for marker in markers if marker not in self._kinds]
        known = {marker: self._kinds[marker] for marker in markers if marker in self._kinds}
        if missing:
            with ThreadPoolExecutor(min(REQUESTS_IN_FLIGHT, len(missing))) as pool:
                found = pool.map(lambda marker: _kind(self._bucket, marker), missing)
                known.update(zip(missing, found, strict=True))
        self._kinds = known
        return {partition: stable(part, known) for partition, part in parts.items()}


def stable(part: ReadablePartition, kinds: Mapping[StoredBatch, int | None]) -> ReadablePartition:
    """Pure. `kinds` are those of all control batches of the partition."""
    if not any(batch.row.attributes & (CONTROL | TRANSACTIONAL) for batch in part.batches):
        return part
    transactions = Transactions()
    for batch in part.batches:
        row = batch.row
        if row.attributes & CONTROL:
            transactions.on_marker(row.producer_id, row.base_offset, kinds[batch])
        elif row.attributes & TRANSACTIONAL:
            transactions.on_batch(row.producer_id, row.base_offset)
    outcomes = transactions.outcomes(part.end_offset)
    shown = _before(part.batches, outcomes.stable_end)
    return replace(
        part,
        batches=tuple(batch for batch in shown if not outcomes.is_aborted(batch.row)),
        end_offset=outcomes.stable_end,
    )


def _before(batches: Iterable[StoredBatch], end: int) -> Iterable[StoredBatch]:
    return (batch for batch in batches if batch.row.base_offset < end)


def _kind(bucket: SyncBucket, marker: StoredBatch) -> int | None:
    key = keys.segment(marker.segment)
    row = marker.row
    data = get_part(bucket, key, Span(row.position, row.length))
    check_batch(key, data, row)
    try:
        return marker_kind(data, read_header(data))
    except InvalidDataError as error:
        raise CorruptObjectError(key, row.position, error.message) from error
