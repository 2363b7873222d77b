"""How far a streaming query has come, as Spark keeps it in its checkpoint. Pure.

Invariants: what a query has passed it never reads again, and what it has not passed it reads or
reports as lost; so progress never goes back, and every gap between it and the log is reported.
Topics go by their ids: one that was deleted and created again is another topic.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias
from uuid import UUID

from pydantic import BaseModel, NonNegativeInt, ValidationError

from bucketlog.log_format.errors import ConfigurationError
from bucketlog.log_format.model import TopicId, TopicIdPartition
from bucketlog.log_reader.ranges import OffsetRange, SelectedPartition
from bucketlog.tiered_storage.log_cut import ReadablePartition

FORMAT_VERSION = 1

Report: TypeAlias = Callable[[str], None]
"""Told of each loss; raises where that must end the query."""


class TopicProgress(NamedTuple):
    """`offsets`: of each partition the first offset that is still to be read."""

    topic_id: TopicId
    offsets: Mapping[int, int]


class _StoredTopic(BaseModel):
    id: UUID
    offsets: dict[NonNegativeInt, NonNegativeInt]


class _StoredProgress(BaseModel):
    version: Literal[1]
    topics: dict[str, _StoredTopic]
    began: dict[str, _StoredTopic] | None = None


@dataclass(frozen=True, slots=True)
class StreamProgress:
    """By topic name. Two that are equal have equal JSON: Spark compares the text.

    `began`: of the end of a query's first batch, where that batch begins. Spark keeps ends alone,
    and asks for the beginning anew where the first batch must be run again.
    """

    topics: Mapping[str, TopicProgress]
    began: Mapping[str, TopicProgress] | None = None

    @classmethod
    def at(cls, places: Iterable[tuple[SelectedPartition, int]]) -> "StreamProgress":
        topics: dict[str, TopicProgress] = {}
        offsets: dict[str, dict[int, int]] = {}
        for (topic, partition), offset in places:
            offsets.setdefault(topic, {})[partition.partition] = offset
            topics[topic] = TopicProgress(partition.topic_id, offsets[topic])
        return cls(topics)

    def of(self, selected: SelectedPartition) -> int | None:
        """Return the offset of a partition; None for an unknown partition, or one of an earlier
        topic of this name."""
        topic, partition = selected
        known = self.topics.get(topic)
        if known is None or known.topic_id != partition.topic_id:
            return None
        return known.offsets.get(partition.partition)

    def is_within(self, selected: Sequence[SelectedPartition], parts: "Parts") -> bool:
        """Whether the log was as far as this when it was looked at."""
        known = set(selected)
        return all(
            each in known and offset <= end_of(parts[each.partition])
            for each, offset in self.places()
        )

    def capped(self, other: "StreamProgress") -> "StreamProgress":
        """`other`, as far as this goes."""
        found = StreamProgress.at(
            (each, min(offset, last))
            for each, offset in other.places()
            if (last := self.of(each)) is not None
        )
        return other if found.topics == other.topics else found

    def places(self) -> Iterator[tuple[SelectedPartition, int]]:
        for name, topic in self.topics.items():
            for number, offset in topic.offsets.items():
                yield SelectedPartition(name, TopicIdPartition(topic.topic_id, number)), offset

    def to_json(self) -> dict[str, Any]:
        found = {"version": FORMAT_VERSION, "topics": _to_json(self.topics)}
        return found if self.began is None else {**found, "began": _to_json(self.began)}

    @classmethod
    def from_json(cls, found: Any) -> "StreamProgress":
        """Raises `ConfigurationError`."""
        try:
            stored = _StoredProgress.model_validate(
                json.loads(found) if isinstance(found, str) else found
            )
        except (ValueError, ValidationError) as error:
            raise ConfigurationError(
                f"{found!r} is not progress of this source: {error}",
                remedy="the query's checkpoint is another source's, or a newer bucketlog's: give "
                "the query its own checkpointLocation",
            ) from error
        return cls(
            _from_stored(stored.topics),
            None if stored.began is None else _from_stored(stored.began),
        )


def _to_json(topics: Mapping[str, TopicProgress]) -> dict[str, Any]:
    return {
        name: {
            "id": str(UUID(bytes=topic.topic_id)),
            "offsets": {str(number): topic.offsets[number] for number in sorted(topic.offsets)},
        }
        for name, topic in sorted(topics.items())
    }


def _from_stored(topics: Mapping[str, _StoredTopic]) -> dict[str, TopicProgress]:
    return {
        name: TopicProgress(TopicId(topic.id.bytes), topic.offsets)
        for name, topic in topics.items()
    }


Parts: TypeAlias = Mapping[TopicIdPartition, ReadablePartition]


def end_of(part: ReadablePartition) -> int:
    return max(part.log_start, part.end_offset)


def advanced(
    current: StreamProgress,
    selected: Sequence[SelectedPartition],
    parts: Parts,
    most_offsets: int | None,
) -> StreamProgress:
    """To the end of the log, or by `most_offsets`, shared among partitions by what they hold (as
    Spark's Kafka source does). Partitions that are gone are left out, new ones are begun."""
    begins = {each: current.of(each) for each in selected}
    starts = {
        each: parts[each.partition].log_start if begin is None else begin
        for each, begin in begins.items()
    }
    ends = {each: max(starts[each], end_of(parts[each.partition])) for each in selected}
    waiting = sum(ends[each] - starts[each] for each in selected)
    if most_offsets is not None and waiting > most_offsets:
        for each in selected:
            share = most_offsets * (ends[each] - starts[each]) / waiting
            whole = max(int(share), 1)  # small partitions are not starved
            ends[each] = min(ends[each], starts[each] + whole)
    found = StreamProgress.at(ends.items())
    return current if found.topics == current.topics else found


def between(
    start: StreamProgress,
    end: StreamProgress,
    selected: Sequence[SelectedPartition],
    parts: Parts,
    report: Report,
) -> list[OffsetRange]:
    """What a micro-batch from `start` to `end` reads of the log as it is now."""
    known = set(selected)
    for topic, progress in start.topics.items():
        now = end.topics.get(topic)
        for number in progress.offsets:
            if now is None or number not in now.offsets:
                report(f"{topic}-{number} is not in the log any more")
            elif now.topic_id != progress.topic_id:
                report(f"{topic}-{number} was deleted and created again")
    ranges = []
    for each, last in end.places():
        if each not in known:
            report(f"{each.topic}-{each.partition.partition} was deleted before all was read")
            continue
        first = start.of(each) or 0
        if first < last:
            ranges.append(_clamped(each, first, last, parts[each.partition], report))
    return [each for each in ranges if each.start < each.end]


def _clamped(
    each: SelectedPartition, first: int, last: int, part: ReadablePartition, report: Report
) -> OffsetRange:
    name = f"{each.topic}-{each.partition.partition}"
    if first < part.log_start:
        report(
            f"offsets {first} to {min(part.log_start, last) - 1} of {name} are gone: the log "
            f"begins at {part.log_start}"
        )
    if last > end_of(part):
        report(f"{name} ends at {end_of(part)}, but the query has seen it end at {last}")
    return OffsetRange(
        each.topic, each.partition, max(first, part.log_start), min(last, end_of(part))
    )
