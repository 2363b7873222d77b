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

from pydantic import BaseModel, NonNegativeInt, TypeAdapter, ValidationError

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


_KAFKA_PROGRESS = TypeAdapter(dict[str, dict[NonNegativeInt, NonNegativeInt]])
"""The progress of Spark's Kafka source: offsets by topic and partition."""


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
    def from_json(
        cls, found: Any, topic_ids: Callable[[], Mapping[str, TopicId]] = dict
    ) -> "StreamProgress":
        """Return the progress in a checkpoint, of this source or of Spark's Kafka source.

        The progress of the Kafka source has no ids of topics: `topic_ids` returns the present ids.
        Raises `ConfigurationError`."""
        try:
            parsed = json.loads(found) if isinstance(found, str) else found
            if isinstance(parsed, dict) and parsed and "version" not in parsed:
                return cls._from_kafka(_KAFKA_PROGRESS.validate_python(parsed), topic_ids())
            stored = _StoredProgress.model_validate(parsed)
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

    @classmethod
    def _from_kafka(
        cls, offsets: Mapping[str, Mapping[int, int]], topic_ids: Mapping[str, TopicId]
    ) -> "StreamProgress":
        missing = sorted(set(offsets) - set(topic_ids))
        if missing:
            raise ConfigurationError(
                f"the checkpoint of a Kafka source names topics that the log lacks: {missing}",
                remedy="copy these topics with their offsets (bucketlog mirror), or give the query "
                "a new checkpointLocation",
            )
        return cls({name: TopicProgress(topic_ids[name], at) for name, at in offsets.items()})


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


def waiting_offsets(
    current: StreamProgress, selected: Sequence[SelectedPartition], parts: Parts
) -> int:
    """Return the number of offsets from `current` to the end of the log."""
    return sum(end - start for start, end in _bounds(current, selected, parts).values())


def _bounds(
    current: StreamProgress, selected: Sequence[SelectedPartition], parts: Parts
) -> dict[SelectedPartition, tuple[int, int]]:
    """Return the first offset that is still to be read, and the end, of each partition."""
    found = {}
    for each in selected:
        part, begin = parts[each.partition], current.of(each)
        start = part.log_start if begin is None else begin
        found[each] = start, max(start, end_of(part))
    return found


def advanced(
    current: StreamProgress,
    selected: Sequence[SelectedPartition],
    parts: Parts,
    most_offsets: int | None,
) -> StreamProgress:
    """To the end of the log, or by `most_offsets`, shared among partitions by what they hold (as
    Spark's Kafka source does). Partitions that are gone are left out, new ones are begun."""
    bounds = _bounds(current, selected, parts)
    ends = {each: end for each, (_, end) in bounds.items()}
    waiting = sum(end - start for start, end in bounds.values())
    if most_offsets is not None and waiting > most_offsets:
        for each, (start, end) in bounds.items():
            share = most_offsets * (end - start) / waiting
            whole = max(int(share), 1)  # small partitions are not starved
            ends[each] = min(end, start + whole)
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
