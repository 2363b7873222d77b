"""From the options and the folded log to the offsets to read. Pure."""

import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias
from uuid import UUID

from bucketlog.log_format.errors import ConfigurationError
from bucketlog.log_format.model import TopicIdPartition
from bucketlog.log_reader.bounds import EARLIEST, LATEST, Bound, TimestampBound, named_partitions
from bucketlog.log_reader.options import Assign, ReadOptions, Selection, Subscribe, SubscribePattern
from bucketlog.metadata.fold import LogState, TopicState
from bucketlog.tiered_storage.log_cut import ReadablePartition

logger = logging.getLogger(__name__)

Times: TypeAlias = Mapping[tuple[TopicIdPartition, int], int | None]
"""Of a partition and a timestamp: the first offset at or after it, None where there is none."""


class OffsetRange(NamedTuple):
    """Records `start` ≤ offset < `end` of one partition."""

    topic: str
    partition: TopicIdPartition
    start: int
    end: int


class SelectedPartition(NamedTuple):
    """A partition that is to be read."""

    topic: str
    partition: TopicIdPartition


def select(
    selection: Selection, state: LogState, *, present_only: bool = False
) -> list[SelectedPartition]:
    """Every partition that is selected, topic after topic. What is named and does not exist is
    passed over with `present_only`, else it raises `ConfigurationError`."""
    return [
        SelectedPartition(topic.name, TopicIdPartition(topic.topic_id, number))
        for topic, number in _select(selection, state, present_only)
    ]


def check_topic_ids(topic_ids: Mapping[str, UUID], selected: Iterable[SelectedPartition]) -> None:
    """Raises `ConfigurationError` for a topic that is selected and has another id."""
    found = {topic: UUID(bytes=bytes(partition.topic_id)) for topic, partition in selected}
    for topic, topic_id in topic_ids.items():
        if topic in found and found[topic] != topic_id:
            raise ConfigurationError(
                f"topic {topic!r} has the id {found[topic]}, not {topic_id}: the topic was deleted "
                "and created again",
                remedy="start the read or the ingest again",
            )


def wanted_times(
    bounds: Sequence[Bound | None], selected: Sequence[SelectedPartition]
) -> set[tuple[TopicIdPartition, int]]:
    """What must be looked up by time before `resolve` can be asked. Raises `ConfigurationError`."""
    for bound in bounds:
        if isinstance(bound, TimestampBound):
            _check_covers(bound, selected)
    return {
        (partition, bound.of(topic, partition.partition))
        for bound in bounds
        if isinstance(bound, TimestampBound)
        for topic, partition in selected
    }


def resolve_ranges(
    options: ReadOptions,
    selected: Sequence[SelectedPartition],
    readable: Mapping[TopicIdPartition, ReadablePartition],
    times: Times,
) -> list[OffsetRange]:
    """The offsets to read, for every selected partition. Raises `ConfigurationError`."""
    starting, ending = options.starting or "earliest", options.ending or "latest"
    _check_covers(starting, selected, "starting")
    _check_covers(ending, selected, "ending")
    ranges = []
    for topic, partition in selected:
        part = readable[partition]
        first, last = part.log_start, max(part.log_start, part.end_offset)
        one = SelectedPartition(topic, partition)
        start = resolve(starting, one, part, times)
        end = resolve(ending, one, part, times)
        if not first <= start <= last or not first <= end <= last:
            text = (
                f"offsets {start} to {end} of {topic}-{partition.partition} cannot be read: "
                f"the bucket holds {first} to {last}"
            )
            if options.fail_on_data_loss:
                raise ConfigurationError(
                    text,
                    remedy="change startingOffsets or endingOffsets, wait until more is committed, "
                    "or set failOnDataLoss=false",
                )
            logger.warning("%s: what is there is read (failOnDataLoss=false)", text)
            start, end = min(max(start, first), last), min(max(end, first), last)
        if start > end:
            raise ConfigurationError(
                f"{topic}-{partition.partition}: "
                f"starting offset {start} is after ending offset {end}",
                remedy="swap the two offsets",
            )
        ranges.append(OffsetRange(topic, partition, start, end))
    return ranges


def resolve_starts(
    starting: Bound,
    selected: Sequence[SelectedPartition],
    readable: Mapping[TopicIdPartition, ReadablePartition],
    times: Times,
    report: Callable[[str], None],
) -> list[tuple[SelectedPartition, int]]:
    """Where a streaming query begins. `report` is notified of offsets that the bucket does not
    hold. Raises `ConfigurationError`."""
    _check_covers(starting, selected, "starting")
    starts = []
    for each in selected:
        part = readable[each.partition]
        first, last = part.log_start, max(part.log_start, part.end_offset)
        start = resolve(starting, each, part, times)
        if not first <= start <= last:
            report(
                f"starting offset {start} of {each.topic}-{each.partition.partition}: "
                f"the bucket holds {first} to {last}"
            )
        starts.append((each, min(max(start, first), last)))
    return starts


def resolve(
    bound: Bound, selected: SelectedPartition, part: ReadablePartition, times: Times
) -> int:
    """The chosen offset, within the partition or not. Raises `ConfigurationError`."""
    topic, partition = selected
    last = max(part.log_start, part.end_offset)
    match bound:
        case "earliest":
            return part.log_start
        case "latest":
            return last
        case TimestampBound():
            at_ms = bound.of(topic, partition.partition)
            found = times[partition, at_ms]
            if found is None and not bound.or_latest:
                raise ConfigurationError(
                    f"{topic}-{partition.partition} has no record at or after {at_ms} ms",
                    remedy="give an earlier time, or startingOffsetsByTimestampStrategy=latest",
                )
            return last if found is None else min(found, last)
        case _:
            at = bound[topic][partition.partition]
            return {EARLIEST: part.log_start, LATEST: last}.get(at, at)


def _select(
    selection: Selection, state: LogState, present_only: bool
) -> list[tuple[TopicState, int]]:
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
            if present_only:
                continue
            known = ", ".join(sorted(state.names)[:20]) or "none"
            raise ConfigurationError(f"no topic {name!r} in the bucket", remedy=f"it has: {known}")
        topic = state.topics[state.names[name]]
        for number in range(topic.partitions) if numbers is None else sorted(set(numbers)):
            if not 0 <= number < topic.partitions:
                if present_only:
                    continue
                raise ConfigurationError(
                    f"no partition {number} in topic {name!r}", remedy=f"it has {topic.partitions}"
                )
            selected.append((topic, number))
    return selected


def _check_covers(bound: Bound, selected: Sequence[SelectedPartition], end: str = "given") -> None:
    """As Spark's Kafka source has it: JSON offsets name all selected partitions, and no others."""
    given = named_partitions(bound)
    if given is None:
        return
    wanted = {(topic, partition.partition) for topic, partition in selected}
    for words, differing in (("lack", wanted - given), ("also name", given - wanted)):
        if differing:
            listed = ", ".join(f"{topic}-{number}" for topic, number in sorted(differing)[:10])
            raise ConfigurationError(
                f"{end} offsets or timestamps {words} {listed}",
                remedy="name every selected partition; for offsets -2 is earliest, -1 is latest",
            )
