"""The log of a partition in a view: its tier, and the places of its batches in log segments.

Invariants: rows are in offset order, so every look-up is a bisection. Batches that are in the tier,
or end at or before the log start, have no rows. Only the fold changes the tier.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from bucketlog.log_format.checkpoint import Checkpoint
from bucketlog.log_format.model import (
    MAX_OFFSET,
    NO_TIMESTAMP,
    BatchIndex,
    SegmentId,
    StoredObject,
    TopicIdPartition,
)
from bucketlog.log_format.transactions import PartitionTransactions
from bucketlog.metadata.tier import Tier

COMPARED_AT_ONCE = 2_000
"""Number of batches that are compared in one step, in half a millisecond."""
_NO_ROWS = array("q")
_NO_SEGMENTS: list[SegmentId] = []
"""Columns that all empty logs share, because clients may ask for many empty partitions. They never
change."""


class StoredRange(NamedTuple):
    """Bytes of one object: of a log segment, whole batches that are side by side."""

    object: StoredObject
    position: int
    length: int


class LogColumns(NamedTuple):
    """Batches that are in log segments, and end above `batches_from`, column by column, in offset
    order. Borrowed."""

    tier: Tier
    batches_from: int
    last_stable_offset: int
    transactions: PartitionTransactions
    base_offsets: Sequence[int]
    next_offsets: Sequence[int]
    lengths: Sequence[int]
    timestamps: Sequence[int]
    segments: Sequence[SegmentId]


class Stretch(NamedTuple):
    """Ranges that are read one after the other, up to offset `end`; at `middle` half of the
    batches lie behind."""

    ranges: list[StoredRange]
    middle: int
    end: int


class PartitionLog:
    """Batches in log segments are column by column: 48 bytes each and a shared reference."""

    __slots__ = (
        "__weakref__",
        "_bases",
        "_begin",
        "_end",
        "_lengths",
        "_max_timestamps",
        "_nexts",
        "_positions",
        "_segments",
        "_timestamps",
        "partition",
        "tier",
        "transactions",
    )

    def __init__(
        self,
        partition: TopicIdPartition,
        tier: Tier | None = None,
        transactions: PartitionTransactions | None = None,
    ) -> None:
        self.partition = partition
        self.tier = Tier() if tier is None else tier
        self.transactions = PartitionTransactions() if transactions is None else transactions
        self._begin = 0
        """Batches that end at or before it have no rows."""
        self._end = 0
        self._bases = _NO_ROWS
        self._nexts = _NO_ROWS
        self._positions = _NO_ROWS
        self._lengths = _NO_ROWS
        self._timestamps = _NO_ROWS
        self._max_timestamps = _NO_ROWS
        """The highest timestamp up to and with each batch: never falls, hence bisectable."""
        self._segments = _NO_SEGMENTS

    @property
    def high_watermark(self) -> int:
        return self._end

    @property
    def last_stable_offset(self) -> int:
        """The offset below which all transactions have ended. It never decreases."""
        return self.transactions.stable_end(self._end, self._begin)

    def readable_end(self, *, committed_only: bool) -> int:
        """The offset up to which consumers of this isolation level may read."""
        return self.last_stable_offset if committed_only else self._end

    @property
    def batches(self) -> LogColumns:
        """Batches that have rows. Do not keep them over an await."""
        return LogColumns(
            self.tier,
            self._begin,
            self.last_stable_offset,
            self.transactions,
            self._bases,
            self._nexts,
            self._lengths,
            self._timestamps,
            self._segments,
        )

    @property
    def batches_from(self) -> int:
        """Batches that end at or before it have no rows: they are in the tier, or are gone."""
        return self._begin

    def become(self, other: "PartitionLog") -> None:
        """Hold what `other` holds, and share it."""
        for column in self.__slots__:
            if column != "__weakref__":
                setattr(self, column, getattr(other, column))

    @classmethod
    def of_checkpoint(
        cls,
        checkpoint: Checkpoint,
        partition: TopicIdPartition,
        tier: Tier,
        begin: int,
        transactions: PartitionTransactions | None = None,
    ) -> "PartitionLog":
        """The checkpoint has no batches that end at or before `begin`."""
        log = cls(partition, tier, transactions)
        log._begin = begin
        found = checkpoint.partitions.get(partition)
        if found is not None:
            bases, positions, lengths, _, spans, timestamps, *_ = found.batches.columns
            log._end = found.high_watermark
            log._bases = bases[:]
            log._nexts = array(
                "q", (base + span + 1 for base, span in zip(bases, spans, strict=True))
            )
            log._positions = positions[:]
            log._lengths = array("q", lengths)
            log._timestamps = timestamps[:]
            log._max_timestamps = array("q", accumulate(timestamps, max))
            log._segments = list(checkpoint.segments_of(partition))
        return log

    def begins_with(self, other: "PartitionLog") -> bool:
        """The batches of `other` come first here, as far as they still have rows."""
        return all(self.compared_with(other))

    def compared_with(self, other: "PartitionLog") -> Iterator[bool]:
        """Compare the logs as `begins_with` does, some batches at a time. This log may grow in
        between."""
        start = 0
        while True:
            skipped = bisect_right(other._nexts, self._begin)
            start = max(start, skipped)
            end = min(start + COMPARED_AT_ONCE, len(other._bases))
            if start >= end:
                return
            yield all(
                mine[start - skipped : end - skipped] == others[start:end]
                for mine, others in zip(self._columns(), other._columns(), strict=True)
            )
            start = end

    def _columns(self) -> tuple[Sequence[object], ...]:
        return (
            self._bases,
            self._nexts,
            self._positions,
            self._lengths,
            self._timestamps,
            self._segments,
        )

    def segment_after(self, other: "PartitionLog") -> SegmentId | None:
        """Return the segment of this log's first batch after the batches of `other`; None if there
        is none."""
        count = len(other._bases) - bisect_right(other._nexts, self._begin)
        return self._segments[count] if count < len(self._segments) else None

    def append(self, segment: SegmentId, row: BatchIndex) -> None:
        if self._bases is _NO_ROWS:
            self._begin_columns()
        highest = self._max_timestamps[-1] if self._max_timestamps else NO_TIMESTAMP
        self._end = row.next_offset
        self._bases.append(row.base_offset)
        self._nexts.append(row.next_offset)
        self._positions.append(row.position)
        self._lengths.append(row.length)
        self._timestamps.append(row.max_timestamp)
        self._max_timestamps.append(max(highest, row.max_timestamp))
        self._segments.append(segment)

    def _begin_columns(self) -> None:
        self._bases, self._nexts = array("q"), array("q")
        self._positions, self._lengths = array("q"), array("q")
        self._timestamps, self._max_timestamps = array("q"), array("q")
        self._segments = []

    def begin_at(self, offset: int) -> None:
        """Batches that end at or before it have no rows from now on."""
        if offset <= self._begin:
            return
        self._begin = offset
        count = bisect_right(self._nexts, offset)
        if count:
            for column in (
                self._bases,
                self._nexts,
                self._positions,
                self._lengths,
                self._timestamps,
            ):
                del column[:count]
            del self._segments[:count]
            self._max_timestamps = array("q", accumulate(self._timestamps, max))

    def ranges(
        self, offset: int, max_bytes: int, *, at_least_one: bool, end: int = MAX_OFFSET
    ) -> list[StoredRange]:
        """The batches that end at or before `end`, from the batch that holds `offset` (or the next
        one above it) on.

        Up to `max_bytes` in all. With `at_least_one`, the first batch may be larger (KIP-74).
        """
        row = bisect_right(self._nexts, offset)
        stop = bisect_right(self._nexts, end)
        return self._ranges(row, max_bytes, stop=stop, at_least_one=at_least_one)[0]

    def stretch(
        self, offset: int, max_bytes: int, *, at_least_one: bool = True, end: int = MAX_OFFSET
    ) -> Stretch:
        """The next `max_bytes` for a reader that is at `offset`; parameters as of `ranges`."""
        row = bisect_right(self._nexts, offset)
        stop = bisect_right(self._nexts, end)
        ranges, after = self._ranges(row, max_bytes, stop=stop, at_least_one=at_least_one)
        if row >= after:
            return Stretch([], offset, offset)
        return Stretch(ranges, self._nexts[(row + after) // 2], self._nexts[after - 1])

    def _ranges(
        self, row: int, max_bytes: int, *, stop: int, at_least_one: bool
    ) -> tuple[list[StoredRange], int]:
        """The ranges, and the row after them. `stop` is the first row that is not wanted."""
        ranges: list[StoredRange] = []
        total = 0
        while row < stop:
            length = self._lengths[row]
            if total + length > max_bytes and (ranges or not at_least_one):
                break
            segment, position = self._segments[row], self._positions[row]
            last = ranges[-1] if ranges else None
            if (
                last is not None
                and last.object == segment
                and last.position + last.length == position
            ):
                ranges[-1] = StoredRange(segment, last.position, last.length + length)
            else:
                ranges.append(StoredRange(segment, position, length))
            total += length
            row += 1
        return ranges, row

    def available_bytes(self, offset: int, limit: int, *, end: int = MAX_OFFSET) -> int:
        """Bytes of batches from `offset` on that end at or before `end`, counted up to `limit`."""
        row = bisect_right(self._nexts, offset)
        stop = bisect_right(self._nexts, end)
        total = 0
        while row < stop and total < limit:
            total += self._lengths[row]
            row += 1
        return total

    def first_since(self, timestamp_ms: int, offset: int = 0) -> StoredRange | None:
        """The first batch with a timestamp of at least `timestamp_ms`, of those that hold `offset`
        or come after it."""
        row = bisect_left(self._max_timestamps, timestamp_ms)
        from_offset = bisect_right(self._nexts, offset)
        if from_offset > row:
            row = from_offset
            while row < len(self._bases) and self._timestamps[row] < timestamp_ms:
                row += 1
        return self._range(row) if row < len(self._bases) else None

    def with_max_timestamp(self) -> tuple[int, StoredRange] | None:
        """The highest timestamp and the first batch that has it (KIP-734)."""
        if not self._bases:
            return None
        highest = self._max_timestamps[-1]
        return highest, self._range(bisect_left(self._max_timestamps, highest))

    def _range(self, row: int) -> StoredRange:
        return StoredRange(self._segments[row], self._positions[row], self._lengths[row])
