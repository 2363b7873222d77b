"""From the options and the folded log to the offsets to read. Pure."""

import re
from collections.abc import Mapping
from typing import NamedTuple

from bucketlog.errors import ConfigurationError
from bucketlog.model import TopicPartition
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


class OffsetRange(NamedTuple):
    """Records `start` ≤ offset < `end` of one partition."""

    topic: str
    partition: TopicPartition
    start: int
    end: int


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
        last = max(first, readable[partition].end_offset)
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
