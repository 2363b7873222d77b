"""Splitting log segments by partition, and joining partition segments. Pure.

Invariants: a batch is checked against its row in the footer before it is copied. What was found
equals what the plan counted, batch by batch and byte by byte: damage is never passed on, and
nothing is left out in silence. Only markers and batches of aborted transactions are left out. The
last batch of a partition's part stays, emptied, since a consumer's position must get there. Batches
are copied out of a log segment's bytes: otherwise, each small batch would keep a whole object in
memory. The plan's window bounds the memory.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from bucketlog.log_format.batch import CONTROL, read_header
from bucketlog.log_format.errors import CorruptObjectError, InvalidDataError
from bucketlog.log_format.model import (
    BatchIndex,
    Buffer,
    SegmentId,
    TierObject,
    TierRow,
    TopicIdPartition,
)
from bucketlog.log_format.rewriting import left_out_batch
from bucketlog.log_format.transactions import AbortedBatches
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.partition_segment import (
    HEADER,
    FinishedSegment,
    PartitionSegmentWriter,
    decode_index,
)
from bucketlog.tiered_storage.segment import HEADER as LOG_SEGMENT_HEADER
from bucketlog.tiered_storage.segment import check_batch, decode_footer
from bucketlog.tiered_storage.tier_plan import PartitionRange, SplitPlan

BATCHES_AT_ONCE = 500
"""Checked and copied in about two milliseconds."""


class SplitPartition(NamedTuple):
    """The part of a partition in a split: objects that hold offsets from `start` on, before
    `end`."""

    partition: TopicIdPartition
    start: int
    end: int
    segments: list[FinishedSegment]


class Split:
    """Takes the log segments of a plan one after another, then gives the partition segments."""

    def __init__(
        self,
        plan: SplitPlan,
        *,
        new_name: Callable[[], str],
        segment_bytes_target: int,
        written_ms: int,
    ) -> None:
        self._expected = [each.segment for each in reversed(plan.segments)]
        self._parts = {
            partition: _Part(partition, wanted, new_name, segment_bytes_target, written_ms)
            for partition, wanted in plan.ranges.items()
        }

    def take(self, segment: SegmentId, data: Buffer) -> Iterator[None]:
        """Take the whole object of the next log segment. This is done when the iteration ends,
        which pauses every `BATCHES_AT_ONCE` batches. Raises `CorruptObjectError`, and
        `InvalidDataError` if it is not the plan's next."""
        if not self._expected or self._expected.pop() != segment:
            raise InvalidDataError(f"{keys.segment(segment)} is not the next segment to split")
        key = keys.segment(segment)
        if bytes(memoryview(data)[: len(LOG_SEGMENT_HEADER)]) != LOG_SEGMENT_HEADER:
            raise CorruptObjectError(key, 0, "the header is not a segment's")
        index = decode_footer(key, data, len(data))
        if isinstance(index, int) or index.segment != segment:
            raise CorruptObjectError(key, 0, "its footer is another segment's, or cut short")
        view = memoryview(data)
        since = 0
        for listed in index.partitions:
            part = self._parts.get(listed.partition)
            rows = part.wanted_of(listed.batches) if part is not None else ()
            for at in range(0, len(rows), BATCHES_AT_ONCE):
                some = rows[at : at + BATCHES_AT_ONCE]
                for row in some:
                    check_batch(key, view[row.position : row.position + row.length], row)
                if part is not None:
                    part.append(view, some)
                since += len(some)
                if since >= BATCHES_AT_ONCE:
                    since = 0
                    yield

    def finish(self) -> Iterator[SplitPartition]:
        """Return the finished partitions, one by one, without keeping them. Raises
        `InvalidDataError` if something of the plan was missing."""
        if self._expected:
            raise InvalidDataError(f"{len(self._expected)} segments were not taken")
        for part in self._parts.values():
            part.check()
        while self._parts:
            yield self._parts.pop(next(iter(self._parts))).finish()


class _Part:
    """A partition's part of a split, while it is written."""

    def __init__(
        self,
        partition: TopicIdPartition,
        wanted: PartitionRange,
        new_name: Callable[[], str],
        segment_bytes_target: int,
        written_ms: int,
    ) -> None:
        self._partition = partition
        self._wanted = wanted
        self._aborted = AbortedBatches(wanted.aborted)
        self._new_name = new_name
        self._target = segment_bytes_target
        self._written_ms = written_ms
        self._writer = PartitionSegmentWriter(partition, wanted.start)
        self._finished: list[FinishedSegment] = []
        self._batches = 0
        self._bytes = 0

    def wanted_of(self, rows: Sequence[BatchIndex]) -> Sequence[BatchIndex]:
        wanted = self._wanted
        return [row for row in rows if wanted.batches_from < row.next_offset <= wanted.end]

    def append(self, data: memoryview, rows: Sequence[BatchIndex]) -> None:
        """Append batches whose `rows` are side by side in `data`."""
        start = rows[0].position
        for row in rows:
            self._batches += 1
            self._bytes += row.length
            is_left_out = bool(row.attributes & CONTROL) or row in self._aborted
            if is_left_out or self._writer.batch_bytes >= self._target:
                self._copy(data[start : row.position])
                start = row.position
            if is_left_out:
                start += row.length
                if row.next_offset == self._wanted.end:
                    self._append_empty(data, row)
                continue
            if self._writer.batch_bytes >= self._target:
                self._close(row.base_offset)
            self._describe(row, row.length, row.record_count)
        self._copy(data[start : rows[-1].position + rows[-1].length])

    def _append_empty(self, data: memoryview, row: BatchIndex) -> None:
        batch = left_out_batch(read_header(data, row.position))
        self._describe(row, len(batch), 0)
        self._copy(memoryview(batch))

    def _describe(self, row: BatchIndex, length: int, records: int) -> None:
        self._writer.describe(row.base_offset, row.next_offset, length, records, row.max_timestamp)

    def _copy(self, run: memoryview) -> None:
        if len(run):
            self._writer.append(bytes(run))

    def _close(self, end: int) -> None:
        self._finished.append(self._writer.finish(end, self._new_name(), self._written_ms))
        self._writer = PartitionSegmentWriter(self._partition, end)

    def check(self) -> None:
        wanted = self._wanted
        if (self._batches, self._bytes) != (wanted.batches, wanted.batch_bytes):
            raise InvalidDataError(
                f"{self._partition} has {self._batches} batches of {self._bytes} bytes in these "
                f"segments, {wanted.batches} of {wanted.batch_bytes} were expected"
            )

    def finish(self) -> SplitPartition:
        self._close(self._wanted.end)
        return SplitPartition(self._partition, self._wanted.start, self._wanted.end, self._finished)


class StoredSegment(NamedTuple):
    """A partition segment as it was read: all of its object's bytes."""

    there: TierObject
    row: TierRow
    data: Buffer


def join_segments(segments: Sequence[StoredSegment], name: str) -> FinishedSegment:
    """Return one partition segment with all batches of neighbours, whose bytes it borrows. It is as
    old as the youngest of them. Raises `CorruptObjectError` and `InvalidDataError`."""
    writer = PartitionSegmentWriter(segments[0].there.partition, segments[0].row.start)
    for there, row, data in segments:
        key = keys.tier_object(there)
        index = decode_index(there, data, len(data))
        if bytes(memoryview(data)[: len(HEADER)]) != HEADER or index.end != row.end:
            raise CorruptObjectError(key, 0, "its header or its end is not what its row says")
        writer.append_segment(key, index, [memoryview(data)[len(HEADER) : index.batches_end]])
    youngest = max(each.row.max_timestamp_ms for each in segments)
    finished = writer.finish(segments[-1].row.end, name, youngest)
    return finished._replace(row=finished.row._replace(max_timestamp_ms=youngest))
