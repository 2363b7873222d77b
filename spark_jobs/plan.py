"""From a snapshot of the log and the options to what each Spark task reads. Pure.

Invariants: every batch that overlaps a wanted range is in exactly one task; pieces stand in log
order within a task and over the tasks, so that each partition's offsets ascend; a piece is one
range GET.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from bucketlog.errors import ConfigurationError
from bucketlog.model import BatchIndex, SegmentId, Ticket, TopicPartition
from bucketlog.wire.batch import CONTROL
from metadata.fold import LogState, Topic
from spark_jobs.options import (
    EARLIEST,
    LATEST,
    Assign,
    Bound,
    ReadOptions,
    Selection,
    Subscribe,
    SubscribePattern,
)
from tiered_storage.log_cut import ReadablePartition

MAX_GET_BYTES = 16 * 1024 * 1024


class OffsetRange(NamedTuple):
    """Records `start` ≤ offset < `end` of one partition."""

    topic: str
    partition: TopicPartition
    start: int
    end: int


class Run(NamedTuple):
    """Batches of one partition, one after another in their segment.

    Only records `start` ≤ offset < `end` are wanted (the edges may cut batches).
    """

    topic: str
    partition: int
    start: int
    end: int
    rows: tuple[BatchIndex, ...]


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


@dataclass(frozen=True, slots=True)
class _Wanted:
    """One batch of the plan, with where it stands."""

    order: tuple[Ticket, int]
    segment: SegmentId
    range: OffsetRange
    row: BatchIndex


def resolve_ranges(
    options: ReadOptions,
    state: LogState,
    readable: Mapping[TopicPartition, ReadablePartition],
) -> list[OffsetRange]:
    """The offsets to read, for every selected partition. Raises `ConfigurationError`."""
    selected = _select(options.selection, state)
    names = {(topic.name, number) for topic, number in selected}
    _check_covers(options.starting, names, "startingOffsets")
    _check_covers(options.ending, names, "endingOffsets")
    ranges = []
    for topic, number in selected:
        partition = TopicPartition(topic.topic_id, number)
        first = state.partitions[partition].log_start
        found = readable.get(partition)
        last = max(first, found.end_offset if found is not None else 0)
        start = _offset(options.starting, topic.name, number, first, last)
        end = _offset(options.ending, topic.name, number, first, last)
        if not first <= start <= last or not first <= end <= last:
            raise ConfigurationError(
                f"offsets {start} to {end} of {topic.name}-{number} cannot be read: "
                f"the bucket holds {first} to {last}",
                remedy="change startingOffsets or endingOffsets, or wait until more is committed",
            )
        if start > end:
            raise ConfigurationError(
                f"{topic.name}-{number}: startingOffsets {start} is after endingOffsets {end}"
            )
        ranges.append(OffsetRange(topic.name, partition, start, end))
    return ranges


def _select(selection: Selection, state: LogState) -> list[tuple[Topic, int]]:
    wanted: dict[str, tuple[int, ...] | None]
    match selection:
        case Subscribe(topics):
            wanted = dict.fromkeys(topics)
        case SubscribePattern(pattern):
            wanted = dict.fromkeys(
                name for name in sorted(state.names) if re.fullmatch(pattern, name)
            )
        case Assign(partitions):
            wanted = dict(partitions)
    selected = []
    for name, numbers in wanted.items():
        if name not in state.names:
            known = ", ".join(sorted(state.names)[:20]) or "none"
            raise ConfigurationError(f"no topic {name!r} in the bucket", remedy=f"it has: {known}")
        topic = state.topics[state.names[name]]
        for number in range(topic.partitions) if numbers is None else sorted(set(numbers)):
            if not 0 <= number < topic.partitions:
                raise ConfigurationError(
                    f"no partition {number} in topic {name!r}", remedy=f"it has {topic.partitions}"
                )
            selected.append((topic, number))
    return selected


def _check_covers(bound: Bound, selected: set[tuple[str, int]], name: str) -> None:
    """As Spark's Kafka source has it: JSON offsets name all selected partitions, and no others."""
    if isinstance(bound, str):
        return
    given = {(topic, number) for topic, numbers in bound.items() for number in numbers}
    for words, differing in (("lacks", selected - given), ("also names", given - selected)):
        if differing:
            listed = ", ".join(f"{topic}-{number}" for topic, number in sorted(differing)[:10])
            raise ConfigurationError(
                f"{name} {words} {listed}",
                remedy="name every selected partition: -2 is earliest, -1 is latest",
            )


def _offset(bound: Bound, topic: str, number: int, first: int, last: int) -> int:
    match bound:
        case "earliest":
            return first
        case "latest":
            return last
        case _:
            at = bound[topic][number]
            return {EARLIEST: first, LATEST: last}.get(at, at)


def plan_tasks(
    ranges: Iterable[OffsetRange],
    readable: Mapping[TopicPartition, ReadablePartition],
    *,
    max_partition_bytes: int,
    min_partitions: int | None,
) -> list[tuple[Piece, ...]]:
    """Tasks of about equal bytes; empty where there is nothing to read."""
    wanted = sorted(_wanted(ranges, readable), key=lambda batch: batch.order)
    total = sum(batch.row.length for batch in wanted)
    if not total:
        return []
    count = max(-(-total // max_partition_bytes), min_partitions or 1)
    share = -(-total // count)
    tasks: list[tuple[Piece, ...]] = []
    mine: list[_Wanted] = []
    done = 0
    for batch in wanted:
        mine.append(batch)
        done += batch.row.length
        if done >= share * (len(tasks) + 1):
            tasks.append(tuple(_pieces(mine)))
            mine = []
    if mine:
        tasks.append(tuple(_pieces(mine)))
    return tasks


def count_records(
    ranges: Iterable[OffsetRange], readable: Mapping[TopicPartition, ReadablePartition]
) -> int | None:
    """How many records the ranges hold, by the footers; None where an edge cuts a batch."""
    count = 0
    for wanted in ranges:
        found = readable.get(wanted.partition)
        for _, _, row in found.batches if found is not None else ():
            if row.base_offset < wanted.end and row.next_offset > wanted.start:
                if row.base_offset < wanted.start or row.next_offset > wanted.end:
                    return None
                count += 0 if row.attributes & CONTROL else row.record_count
    return count


def _wanted(
    ranges: Iterable[OffsetRange],
    readable: Mapping[TopicPartition, ReadablePartition],
) -> Iterator[_Wanted]:
    for wanted in ranges:
        found = readable.get(wanted.partition)
        for segment, ticket, row in found.batches if found is not None else ():
            if row.base_offset < wanted.end and row.next_offset > wanted.start:
                yield _Wanted((ticket, row.position), segment, wanted, row)


def _pieces(batches: Sequence[_Wanted]) -> Iterator[Piece]:
    """Cut where a segment ends, at bytes that are not wanted, and at `MAX_GET_BYTES`."""
    pending: list[_Wanted] = []
    for batch in batches:
        if pending:
            last = pending[-1]
            start = pending[0].row.position
            if (
                batch.segment != last.segment
                or batch.row.position != last.row.position + last.row.length
                or batch.row.position + batch.row.length - start > MAX_GET_BYTES
            ):
                yield _piece(pending)
                pending = []
        pending.append(batch)
    if pending:
        yield _piece(pending)


def _piece(batches: Sequence[_Wanted]) -> Piece:
    return Piece(
        batches[0].segment,
        tuple(
            Run(
                wanted.topic,
                wanted.partition.partition,
                wanted.start,
                wanted.end,
                tuple(batch.row for batch in group),
            )
            for wanted, group in groupby(batches, key=lambda batch: batch.range)
        ),
    )
