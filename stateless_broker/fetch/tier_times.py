"""Looking up batches by time in a partition's tier: rows first, then a sparse index, then batches.

Invariant: the answer is as if all batches of the tier were looked at in offset order, beginning
with the one that holds the requested offset. A row's time may be higher than that of any batch in
it, never lower.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import NamedTuple, TypeVar

from bucketlog.log_format.batch import BatchHeader, read_header
from bucketlog.log_format.errors import ObjectNotFoundError
from bucketlog.log_format.model import NO_TIMESTAMP, TierObject, TierRow, TopicIdPartition
from bucketlog.metadata.partition_log import PartitionLog, StoredRange
from bucketlog.stateless_broker.fetch.reading import RangeReader
from bucketlog.stateless_broker.fetch.tier_objects import SegmentRow, TierObjects
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.partition_segment import PartitionSegmentIndex, walk_batches

SCAN_BYTES_MAX = 4 * 1024 * 1024
"""Most bytes of an object that are read at once if an index cannot say which batch to read."""

T = TypeVar("T")


class TimedBatch(NamedTuple):
    """A batch, and the highest timestamp in it."""

    stored: StoredRange
    base_offset: int
    next_offset: int
    max_timestamp: int


class TierTimes:
    def __init__(self, reader: RangeReader, objects: TierObjects) -> None:
        self._reader = reader
        self._objects = objects

    async def first_since(
        self, partition: TopicIdPartition, log: PartitionLog, timestamp_ms: int, offset: int
    ) -> TimedBatch | None:
        """The first batch with a timestamp of at least `timestamp_ms`, of those that hold `offset`
        or come after it. Raises `BucketError`, `CorruptObjectError`, `InvalidDataError`."""
        return await _retry_if_missing(
            lambda: self._first_since(partition, log, timestamp_ms, offset)
        )

    async def highest(
        self, partition: TopicIdPartition, log: PartitionLog, offset: int
    ) -> TimedBatch | None:
        """Return the batch with the highest timestamp (KIP-734), among those that hold `offset` or
        come after it. Of several, the first one; None if none has a timestamp. Raises as
        `first_since`."""
        return await _retry_if_missing(lambda: self._highest(partition, log, offset))

    async def _first_since(
        self, partition: TopicIdPartition, log: PartitionLog, timestamp_ms: int, offset: int
    ) -> TimedBatch | None:
        for row in self._rows(log, offset):
            if row.max_timestamp_ms < timestamp_ms:
                continue
            listed = await self._objects.listed(partition, row) if row.manifest else [row]
            for each in listed:
                if each.max_timestamp_ms < timestamp_ms or each.end <= offset:
                    continue
                found = await self._first_in(partition, each, timestamp_ms, offset)
                if found is not None:
                    return found
        return None

    async def _first_in(
        self, partition: TopicIdPartition, row: TierRow, timestamp_ms: int, offset: int
    ) -> TimedBatch | None:
        segment = SegmentRow(TierObject.of(partition, row), row)
        index = await self._objects.index(segment)
        since, begin = index.begin_since(timestamp_ms), index.begin_at(offset)
        if since is None or begin is None:
            return None
        async for batch in self._batches(segment, index, max(since, begin)):
            if batch.next_offset > offset and batch.max_timestamp >= timestamp_ms:
                return batch
        return None

    async def _highest(
        self, partition: TopicIdPartition, log: PartitionLog, offset: int
    ) -> TimedBatch | None:
        left = self._rows(log, offset)
        best: TimedBatch | None = None
        while left:
            row = max(left, key=lambda row: (row.max_timestamp_ms, -row.start))
            left.remove(row)
            if best is not None and row.max_timestamp_ms < best.max_timestamp:
                break
            if row.manifest:
                listed = await self._objects.listed(partition, row)
                left += [each for each in listed if each.end > offset]
            else:
                best = _later(best, await self._highest_in(partition, row, offset))
        return best

    async def _highest_in(
        self, partition: TopicIdPartition, row: TierRow, offset: int
    ) -> TimedBatch | None:
        segment = SegmentRow(TierObject.of(partition, row), row)
        index = await self._objects.index(segment)
        if offset <= row.start:
            if index.max_timestamp == NO_TIMESTAMP:
                return None
            return await self._first_in(partition, row, index.max_timestamp, offset)
        best: TimedBatch | None = None
        begin = index.begin_at(offset)
        if begin is not None:
            async for batch in self._batches(segment, index, begin):
                if batch.next_offset > offset and batch.max_timestamp != NO_TIMESTAMP:
                    best = _later(best, batch)
        return best

    @staticmethod
    def _rows(log: PartitionLog, offset: int) -> list[TierRow]:
        return log.tier.rows[log.tier.row_at(offset) :]

    async def _batches(
        self, segment: SegmentRow, index: PartitionSegmentIndex, position: int
    ) -> AsyncIterator[TimedBatch]:
        """Return the batches from the one that begins at `position` on. Reads one block, then ever
        larger ranges."""
        key, length = keys.object_key(segment.there), 1
        while position < segment.end:
            end = index.boundary(min(position + length, segment.end))
            data = await self._reader.read_aside(
                StoredRange(segment.there, position, end - position)
            )
            for placed in walk_batches(key, data, position):
                header = read_header(data, placed.position - position)
                yield _timed(segment, header, placed.position)
            length = min(max(end - position, length) * 4, SCAN_BYTES_MAX)
            position = end


def _timed(segment: SegmentRow, header: BatchHeader, position: int) -> TimedBatch:
    return TimedBatch(
        StoredRange(segment.there, position, header.size_bytes),
        header.base_offset,
        header.next_offset,
        header.max_timestamp,
    )


def _later(one: TimedBatch | None, other: TimedBatch | None) -> TimedBatch | None:
    """Return the place with the higher timestamp; of equal ones, the lower offset."""
    if one is None or other is None:
        return one or other
    return max(one, other, key=lambda batch: (batch.max_timestamp, -batch.base_offset))


async def _retry_if_missing(look_up: Callable[[], Awaitable[T]]) -> T:
    """An object may be gone because something else is in its place by now."""
    try:
        return await look_up()
    except ObjectNotFoundError:
        return await look_up()
