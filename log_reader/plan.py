"""From the offsets to read and where batches are to what each Spark task reads. Pure.

Invariants: every batch that overlaps a wanted range is in exactly one task; pieces are in log
order within a task and over the tasks (tiers first, then log segments by ticket), so that each
partition's offsets ascend. A piece of a log segment is one range GET; one of a tier's object as
many as its bytes need. What is in the tier is not known batch by batch: its objects are cut
at the rows of their sparse indexes, which only those need that are cut (`objects_to_cut`).
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple, TypeAlias

from bucketlog.log_format.batch import CONTROL
from bucketlog.log_format.checkpoint import StoredBatch
from bucketlog.log_format.model import (
    BatchIndex,
    SegmentId,
    Ticket,
    TierObject,
    TierRow,
    TopicIdPartition,
)
from bucketlog.log_format.wrapped_key import WrappedKey
from bucketlog.log_reader.ranges import OffsetRange
from bucketlog.tiered_storage.bucket import Span
from bucketlog.tiered_storage.log_cut import ReadablePartition
from bucketlog.tiered_storage.partition_segment import PartitionSegmentIndex
from bucketlog.tiered_storage.tier_reader import GET_BYTES, batches_span

UNCUT_BYTES = 1024 * 1024
"""An object up to this size is read whole where only a part of it is needed: that is one GET."""
UNEVEN = 1.25
"""An object larger than this multiple of a task's share is cut to make tasks even."""


class Run(NamedTuple):
    """Batches of one partition, one after another in their segment.

    Only records `start` ≤ offset < `end` are needed (the edges may cut batches). `data_keys` are
    those of an encrypted topic.
    """

    topic: str
    partition: int
    start: int
    end: int
    rows: tuple[BatchIndex, ...]
    data_keys: tuple[WrappedKey, ...] = ()


class Piece(NamedTuple):
    """Runs one after another in one segment: one range GET."""

    segment: SegmentId
    runs: tuple[Run, ...]

    @property
    def position(self) -> int:
        return self.runs[0].rows[0].position

    @property
    def length(self) -> int:
        last = self.runs[-1].rows[-1]
        return last.position + last.length - self.position


class TierPiece(NamedTuple):
    """Batches of one partition, one after another in an object of its tier: the bytes of `span`.

    Only records `start` ≤ offset < `end` are needed. `data_keys` are those of an encrypted topic.
    """

    topic: str
    partition: TopicIdPartition
    row: TierRow
    span: Span
    start: int
    end: int
    data_keys: tuple[WrappedKey, ...] = ()


TaskPiece: TypeAlias = Piece | TierPiece
Indexes: TypeAlias = Mapping[TierObject, PartitionSegmentIndex]


class TaskLimits(NamedTuple):
    """`min_partitions` None: as many tasks as `max_partition_bytes` gives."""

    max_partition_bytes: int
    min_partitions: int | None = None

    def share(self, total_bytes: int) -> int:
        """Number of bytes that a task reads."""
        count = max(-(-total_bytes // self.max_partition_bytes), self.min_partitions or 1)
        return -(-total_bytes // count)


class _PlannedBatch(NamedTuple):
    """One batch of the plan, with where it is. Sorted as they are they are in log order: no
    two have one ticket and one position."""

    ticket: Ticket
    position: int
    segment: SegmentId
    range: OffsetRange
    row: BatchIndex
    data_keys: tuple[WrappedKey, ...]


def wanted_rows(
    ranges: Iterable[OffsetRange], readable: Mapping[TopicIdPartition, ReadablePartition]
) -> Iterator[tuple[OffsetRange, TierRow]]:
    """The rows of tiers that overlap the ranges, in the order of reading."""
    for wanted in ranges:
        for row in readable[wanted.partition].rows:
            if row.start < wanted.end and row.end > wanted.start:
                yield wanted, row


def objects_to_cut(
    ranges: Sequence[OffsetRange],
    readable: Mapping[TopicIdPartition, ReadablePartition],
    limits: TaskLimits,
) -> list[tuple[TopicIdPartition, TierRow]]:
    """The objects whose indexes `plan_tasks` can use. The tiers hold no manifests any more."""
    rows = list(wanted_rows(ranges, readable))
    if not rows:
        return []
    total = sum(row.batch_bytes for _, row in rows)
    share = limits.share(total + sum(b.row.length for b in _wanted(ranges, readable)))
    return [
        (wanted.partition, row)
        for wanted, row in rows
        if row.batch_bytes > UNEVEN * share
        or (row.batch_bytes > UNCUT_BYTES and not _is_whole(row, wanted))
    ]


def _is_whole(row: TierRow, wanted: OffsetRange) -> bool:
    return wanted.start <= row.start and row.end <= wanted.end


def plan_tasks(
    ranges: Sequence[OffsetRange],
    readable: Mapping[TopicIdPartition, ReadablePartition],
    limits: TaskLimits,
    indexes: Indexes,
) -> list[tuple[TaskPiece, ...]]:
    """Tasks of about equal bytes; empty where there is nothing to read. `indexes` are those of
    `objects_to_cut`."""
    stretches = [
        _stretch(
            wanted,
            row,
            indexes.get(TierObject.of(wanted.partition, row)),
            readable[wanted.partition].data_keys,
        )
        for wanted, row in wanted_rows(ranges, readable)
    ]
    batches = sorted(_wanted(ranges, readable))
    total = sum(piece.span.length for piece in stretches)
    total += sum(batch.row.length for batch in batches)
    tasks = _Tasks(limits.share(total))
    for piece in stretches:
        tasks.add_stretch(piece, indexes.get(TierObject.of(piece.partition, piece.row)))
    for batch in batches:
        tasks.add_batch(batch)
    return tasks.finish()


class _Tasks:
    """Filled one after another, each until its share is reached."""

    def __init__(self, share: int) -> None:
        self._share = share
        self._tasks: list[tuple[TaskPiece, ...]] = []
        self._stretches: list[TierPiece] = []
        self._batches: list[_PlannedBatch] = []
        self._done = 0

    def add_stretch(self, piece: TierPiece, index: PartitionSegmentIndex | None) -> None:
        rest: TierPiece | None = piece
        while rest is not None:
            room = self._share - self._done % self._share
            head, rest = _cut(rest, room, index)
            self._stretches.append(head)
            self._took(head.span.length)

    def add_batch(self, batch: _PlannedBatch) -> None:
        self._batches.append(batch)
        self._took(batch.row.length)

    def _took(self, size_bytes: int) -> None:
        self._done += size_bytes
        if self._done >= self._share * (len(self._tasks) + 1):
            self._close()

    def _close(self) -> None:
        self._tasks.append((*self._stretches, *_pieces(self._batches)))
        self._stretches, self._batches = [], []

    def finish(self) -> list[tuple[TaskPiece, ...]]:
        if self._stretches or self._batches:
            self._close()
        return self._tasks


def _stretch(
    wanted: OffsetRange,
    row: TierRow,
    index: PartitionSegmentIndex | None,
    data_keys: tuple[WrappedKey, ...],
) -> TierPiece:
    """What is needed of an object: without an index all of it, else from the row of the index that
    holds the first offset to the first one beyond the last."""
    whole = batches_span(row)
    start, end = whole.start, whole.start + whole.length
    if index is not None:
        blocks = index.blocks
        if wanted.start > row.start:
            start = blocks.position_of(wanted.start)
        at = bisect_left(blocks.base_offsets, wanted.end)
        if at < len(blocks):
            end = max(blocks.positions[at], start)
    span = Span(start, end - start)
    return TierPiece(wanted.topic, wanted.partition, row, span, wanted.start, wanted.end, data_keys)


def _cut(
    piece: TierPiece, room: int, index: PartitionSegmentIndex | None
) -> tuple[TierPiece, TierPiece | None]:
    start, length = piece.span.start, piece.span.length
    if index is None or length <= room:
        return piece, None
    head = index.boundary(start + room) - start
    if head >= length:
        return piece, None
    return (
        piece._replace(span=Span(start, head)),
        piece._replace(span=Span(start + head, length - head)),
    )


def count_records(
    ranges: Sequence[OffsetRange],
    readable: Mapping[TopicIdPartition, ReadablePartition],
    indexes: Indexes,
) -> int | None:
    """How many records the ranges hold, by footers and indexes (those of all `wanted_rows`); None
    where an edge cuts a batch or an object."""
    count = 0
    for wanted, row in wanted_rows(ranges, readable):
        if not _is_whole(row, wanted):
            return None
        count += indexes[TierObject.of(wanted.partition, row)].records
    for batch in _wanted(ranges, readable):
        wanted, found = batch.range, batch.row
        if found.base_offset < wanted.start or found.next_offset > wanted.end:
            return None
        count += 0 if found.attributes & CONTROL else found.record_count
    return count


def _wanted(
    ranges: Iterable[OffsetRange],
    readable: Mapping[TopicIdPartition, ReadablePartition],
) -> Iterator[_PlannedBatch]:
    for wanted in ranges:
        part = readable[wanted.partition]
        batches = part.batches  # in offset order
        first = bisect_right(batches, wanted.start, key=_next_offset)
        for segment, ticket, row in islice(batches, first, None):
            if row.base_offset >= wanted.end:
                break
            yield _PlannedBatch(ticket, row.position, segment, wanted, row, part.data_keys)


def _next_offset(batch: StoredBatch) -> int:
    return batch.row.next_offset


def _pieces(batches: Sequence[_PlannedBatch]) -> Iterator[Piece]:
    """Cut where a segment ends, at bytes that are not wanted, and at `GET_BYTES`."""
    pending: list[_PlannedBatch] = []
    start = end = 0
    for batch in batches:
        _, position, segment, _, row, _ = batch
        next_end = position + row.length
        if pending and (
            position != end or segment != pending[0].segment or next_end - start > GET_BYTES
        ):
            yield _piece(pending)
            pending = []
        if not pending:
            start = position
        end = next_end
        pending.append(batch)
    if pending:
        yield _piece(pending)


def _piece(batches: Sequence[_PlannedBatch]) -> Piece:
    runs = []
    first, rows = batches[0], [batches[0].row]
    for batch in batches[1:]:
        if batch.range is first.range:
            rows.append(batch.row)
        else:
            runs.append(_run(first, rows))
            first, rows = batch, [batch.row]
    runs.append(_run(first, rows))
    return Piece(batches[0].segment, tuple(runs))


def _run(first: _PlannedBatch, rows: Sequence[BatchIndex]) -> Run:
    topic, partition, start, end = first.range
    return Run(topic, partition.partition, start, end, tuple(rows), first.data_keys)


def offsets_of(piece: TaskPiece) -> int:
    """Return the number of offsets of a piece, which has at most this number of records."""
    if isinstance(piece, TierPiece):
        return piece.end - piece.start
    return sum(row.next_offset - row.base_offset for run in piece.runs for row in run.rows)
