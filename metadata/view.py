"""The view: a broker's folded state in memory, with where each batch stands in the bucket.

Pure: segments in, facts and touched partitions out. Invariants: the high watermark is the end of
the last visible batch, so it never rests on a void tail and never goes back; rows of a partition
are in offset order, so every look-up is a bisection. Batches that stand in the partition's tier, or
end at or before its log start, have no rows.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

from bucketlog.checkpoint import Checkpoint
from bucketlog.errors import InvalidDataError
from bucketlog.model import (
    NO_TIMESTAMP,
    BatchIndex,
    SegmentId,
    SegmentIndex,
    TopicId,
    TopicPartition,
    WaitingSegment,
)
from metadata.checkpoint import restored
from metadata.facts import (
    Fact,
    LogStartOf,
    LogStartsMoved,
    SwapOf,
    TiersSwapped,
    TopicDeleted,
    topic_id_of,
)
from metadata.fold import CommittedOffset, LogState, Topic
from metadata.tier import Tier
from metadata.waiting import WaitingSegments

COMPARED_AT_ONCE = 2_000
"""Batches: half a millisecond."""


class StoredRange(NamedTuple):
    """Whole batches that stand side by side in one segment object."""

    segment: SegmentId
    position: int
    length: int


class Stretch(NamedTuple):
    """Ranges that are read one after the other, up to offset `end`; at `middle` half of the
    batches lie behind."""

    ranges: list[StoredRange]
    middle: int
    end: int


class Change(NamedTuple):
    """What one segment changed."""

    facts: list[Fact]
    partitions: list[TopicPartition]


class PartitionLog:
    """One partition: its tier, and its batches in log segments, column by column: 48 bytes a batch
    and a shared reference. Nobody but the fold changes the tier."""

    __slots__ = (
        "_bases",
        "_begin",
        "_end",
        "_lengths",
        "_max_timestamps",
        "_nexts",
        "_positions",
        "_segments",
        "_timestamps",
        "tier",
    )

    def __init__(self, tier: Tier | None = None) -> None:
        self.tier = Tier() if tier is None else tier
        self._begin = 0
        """Batches that end at or before it have no rows."""
        self._end = 0
        self._bases = array("q")
        self._nexts = array("q")
        self._positions = array("q")
        self._lengths = array("q")
        self._timestamps = array("q")
        self._max_timestamps = array("q")
        """The highest timestamp up to and with each batch: never falls, hence bisectable."""
        self._segments: list[SegmentId] = []

    @property
    def high_watermark(self) -> int:
        return self._end

    @property
    def next_offsets(self) -> Sequence[int]:
        """Of each batch that has a row."""
        return self._nexts

    @property
    def lengths(self) -> Sequence[int]:
        return self._lengths

    @property
    def max_timestamps(self) -> Sequence[int]:
        return self._timestamps

    @property
    def segments(self) -> Sequence[SegmentId]:
        """Where each batch that has a row stands."""
        return self._segments

    @property
    def batches_from(self) -> int:
        """Batches that end at or before it have no rows: they stand in the tier, or are gone."""
        return self._begin

    def become(self, other: "PartitionLog") -> None:
        """Hold what `other` holds, and share it."""
        for column in self.__slots__:
            setattr(self, column, getattr(other, column))

    @classmethod
    def of_checkpoint(
        cls, checkpoint: Checkpoint, partition: TopicPartition, tier: Tier, begin: int
    ) -> "PartitionLog":
        """The checkpoint has no batches that end at or before `begin`."""
        log = cls(tier)
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
        """As `begins_with`, some batches at a time. This log may go on in between."""
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
        """Where the first batch stands that comes after those of `other` here."""
        count = len(other._bases) - bisect_right(other._nexts, self._begin)
        return self._segments[count] if count < len(self._segments) else None

    def append(self, segment: SegmentId, row: BatchIndex) -> None:
        highest = self._max_timestamps[-1] if self._max_timestamps else NO_TIMESTAMP
        self._end = row.next_offset
        self._bases.append(row.base_offset)
        self._nexts.append(row.next_offset)
        self._positions.append(row.position)
        self._lengths.append(row.length)
        self._timestamps.append(row.max_timestamp)
        self._max_timestamps.append(max(highest, row.max_timestamp))
        self._segments.append(segment)

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

    def ranges(self, offset: int, max_bytes: int, *, at_least_one: bool) -> list[StoredRange]:
        """The batches from the one that holds `offset` (or the next one above it) on.

        Up to `max_bytes` in all; the first batch whatever its size where `at_least_one` (KIP-74).
        """
        row = bisect_right(self._nexts, offset)
        return self._ranges(row, max_bytes, at_least_one=at_least_one)[0]

    def stretch(self, offset: int, max_bytes: int) -> Stretch:
        """What whoever reads on from `offset` wants within its next `max_bytes`."""
        row = bisect_right(self._nexts, offset)
        ranges, end = self._ranges(row, max_bytes, at_least_one=True)
        if row == end:
            return Stretch([], offset, offset)
        return Stretch(ranges, self._nexts[(row + end) // 2], self._nexts[end - 1])

    def _ranges(
        self, row: int, max_bytes: int, *, at_least_one: bool
    ) -> tuple[list[StoredRange], int]:
        """And the row after them."""
        ranges: list[StoredRange] = []
        total = 0
        while row < len(self._bases):
            length = self._lengths[row]
            if total + length > max_bytes and (ranges or not at_least_one):
                break
            segment, position = self._segments[row], self._positions[row]
            last = ranges[-1] if ranges else None
            if (
                last is not None
                and last.segment == segment
                and last.position + last.length == position
            ):
                ranges[-1] = StoredRange(segment, last.position, last.length + length)
            else:
                ranges.append(StoredRange(segment, position, length))
            total += length
            row += 1
        return ranges, row

    def available_bytes(self, offset: int, limit: int) -> int:
        """Bytes of batches from `offset` on, counted up to `limit`."""
        row = bisect_right(self._nexts, offset)
        total = 0
        while row < len(self._bases) and total < limit:
            total += self._lengths[row]
            row += 1
        return total

    def first_since(self, timestamp_ms: int) -> StoredRange | None:
        """The first batch with a timestamp of at least `timestamp_ms`."""
        row = bisect_left(self._max_timestamps, timestamp_ms)
        return self._range(row) if row < len(self._bases) else None

    def with_max_timestamp(self) -> tuple[int, StoredRange] | None:
        """The highest timestamp and the first batch that has it (KIP-734)."""
        if not self._bases:
            return None
        highest = self._max_timestamps[-1]
        return highest, self._range(bisect_left(self._max_timestamps, highest))

    def _range(self, row: int) -> StoredRange:
        return StoredRange(self._segments[row], self._positions[row], self._lengths[row])


class View:
    """Topics and partitions as the visible segments make them."""

    def __init__(self) -> None:
        self._state = LogState(keep_producers=False)
        self._logs: dict[TopicPartition, PartitionLog] = {}
        self.waiting = WaitingSegments()

    def apply(self, index: SegmentIndex) -> Change:
        """Fold one visible segment. Raises `InvalidDataError`."""
        facts = self._state.apply(index)
        for fact in facts:
            if isinstance(fact, TopicDeleted):
                self._forget(topic_id_of(fact))
            elif isinstance(fact, TiersSwapped):
                self._begin(fact.swaps)
            elif isinstance(fact, LogStartsMoved):
                self._begin(fact.partitions)
        touched = []
        size = 0
        for part in index.partitions:
            if part.batches:
                log = self._logs.get(part.partition) or self._new_log(part.partition)
                for row in part.batches:
                    log.append(index.segment, row)
                    size += row.length
                touched.append(part.partition)
        if touched:
            self.waiting.append(WaitingSegment(index.segment, size, index.created_ms))
        return Change(facts, touched)

    def logs(self) -> Mapping[TopicPartition, PartitionLog]:
        """Of partitions that have or had batches: not to be held over an await."""
        return self._logs

    def _new_log(self, partition: TopicPartition) -> PartitionLog:
        state = self._state.partitions[partition]
        log = self._logs[partition] = PartitionLog(state.tier)
        log.begin_at(state.batches_from)
        return log

    def _begin(self, named: Iterable[SwapOf | LogStartOf]) -> None:
        """An entry about these partitions was folded."""
        for topic_id, number, *_ in named:
            partition = TopicPartition(TopicId(topic_id.bytes), number)
            log = self._logs.get(partition)
            if log is not None:
                log.begin_at(self._state.partitions[partition].batches_from)
        self.waiting.forget_before({log.segments[0] for log in self._logs.values() if log.segments})

    @classmethod
    def of(cls, segments: Iterable[SegmentIndex], checkpoint: Checkpoint | None = None) -> "View":
        """With the visible segments after `checkpoint` in ticket order. Raises `InvalidDataError`.
        It takes long where the log is: a thread may do it, and then the view `become` it."""
        fresh = cls()
        fresh._state = restored(checkpoint, keep_producers=False)
        if checkpoint is not None:
            for partition in checkpoint.partitions:
                state = fresh._state.partitions[partition]
                fresh._logs[partition] = PartitionLog.of_checkpoint(
                    checkpoint, partition, state.tier, state.batches_from
                )
            fresh.waiting = WaitingSegments.of_checkpoint(checkpoint)
        for index in segments:
            fresh.apply(index)
        return fresh

    def become(self, fresh: "View") -> None:
        """Show what `fresh` shows, which nobody else uses. Whoever holds a partition's log sees it
        grow. Raises `InvalidDataError` where less would be shown than before, and stays as it
        is then."""
        for partition, held in self._logs.items():
            found = fresh.log(partition)
            if found is not None and found.high_watermark < held.high_watermark:
                raise InvalidDataError(
                    f"{partition} was shown up to offset {held.high_watermark}, and now ends at "
                    f"{found.high_watermark}",
                    remedy="objects are missing in the bucket: restore them",
                )
        for partition in self._logs.keys() & fresh._logs.keys():
            held = self._logs[partition]
            held.become(fresh._logs[partition])
            fresh._logs[partition] = held
        self._state, self._logs, self.waiting = fresh._state, fresh._logs, fresh.waiting

    def _forget(self, topic_id: TopicId) -> None:
        for partition in [key for key in self._logs if key.topic_id == topic_id]:
            del self._logs[partition]

    def topics(self) -> list[Topic]:
        return list(self._state.topics.values())

    def topic(self, name: str) -> Topic | None:
        topic_id = self._state.names.get(name)
        return None if topic_id is None else self._state.topics[topic_id]

    def topic_name(self, topic_id: TopicId) -> str | None:
        topic = self._state.topics.get(topic_id)
        return None if topic is None else topic.name

    def topic_by_id(self, topic_id: TopicId) -> Topic | None:
        return self._state.topics.get(topic_id)

    def log(self, partition: TopicPartition) -> PartitionLog | None:
        """None where the partition does not exist; its log may be empty."""
        topic = self._state.topics.get(partition.topic_id)
        if topic is None or not 0 <= partition.partition < topic.partitions:
            return None
        return self._logs.get(partition) or self._new_log(partition)

    def log_start(self, partition: TopicPartition) -> int:
        return self._state.partitions[partition].log_start

    def groups(self) -> list[str]:
        """The groups that have committed offsets."""
        return list(self._state.groups)

    def offsets(self, group: str) -> Mapping[TopicPartition, CommittedOffset]:
        """A group's committed offsets as they are now: not to be held over an await."""
        return self._state.groups.get(group, {})
