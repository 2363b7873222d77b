"""Positions where a consumer begins and stops reading, as offsets of the partitions.

While brokers do not know a partition's leader, requests are repeated for up to `timeout_s`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, TypeAlias

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, KafkaException
from confluent_kafka import Consumer as KafkaConsumer
from confluent_kafka import TopicPartition as KafkaPartition

from bucketlog.client.choices import no_choice
from bucketlog.client.kafka_errors import log_error
from bucketlog.client.moving_leader import MOVING_LEADER, asked_again
from bucketlog.client.sources import P, Part, Sources
from bucketlog.log_format.errors import ConfigurationError

UntilOf: TypeAlias = Literal["end"] | datetime | int | Mapping[P, int]
Until: TypeAlias = UntilOf[int]
"""The present ends of the partitions; the first record at or after a time; an offset, or one for
each partition. Reading stops before this offset, and waits for records that are still missing
before it. Partitions that a mapping does not name stop at their present ends."""


StartOf: TypeAlias = Literal["earliest", "latest"] | datetime | int | Mapping[P, int]
Start: TypeAlias = StartOf[int]
"""Where to begin: an end, the first record at or after a time, an offset, or one per
partition: those that it does not name begin at "latest"."""


ENDS: Mapping[str, int] = {"earliest": OFFSET_BEGINNING, "latest": OFFSET_END}


def check_offsets(what: str, given: object, words: Sequence[str]) -> None:
    """Raises `ConfigurationError` unless `given` is one of the words, a datetime, an offset, or
    offsets by partition. `what` is the name of the argument."""
    if isinstance(given, datetime) or (isinstance(given, str) and given in words):
        return
    offsets: Iterable[object] = given.values() if isinstance(given, Mapping) else [given]
    for offset in offsets:
        if not isinstance(offset, int) or isinstance(offset, bool):
            others = ("a datetime", "an offset", "offsets by partition")
            raise no_choice(what, given, words, *others)
        if offset < 0:
            raise ConfigurationError(f"{what} is offset {offset}", remedy="offsets are 0 or more")


def check_until(until: object, sources: Sources[Any, Any, Any]) -> None:
    """Raises `ConfigurationError`."""
    if until is not None:
        check_offsets("until", until, ("end",))
    for name in until if isinstance(until, Mapping) else ():
        if not sources.is_name(name):
            raise ConfigurationError(
                f"until is an offset of partition {name!r}",
                remedy=f"give offsets by partition, as in {sources.EXAMPLE_OF_OFFSETS}",
            )


def part_of(spot: KafkaPartition) -> Part:
    """Topic and partition."""
    return spot.topic, spot.partition


def offsets_for(
    kafka: KafkaConsumer, parts: Iterable[Part], start: StartOf[Part], timeout_s: float
) -> dict[Part, int]:
    """Return the positions to begin at, by partition. OFFSET_BEGINNING and OFFSET_END are not
    looked up. Raises `LogError`, `KafkaException`."""
    if isinstance(start, datetime):
        spots = [KafkaPartition(*part) for part in parts]
        found = first_at(kafka, spots, start, timeout_s)
        return {part_of(spot): spot.offset for spot in found}
    if isinstance(start, Mapping):
        return {part: start.get(part, OFFSET_END) for part in parts}
    return dict.fromkeys(parts, ENDS[start] if isinstance(start, str) else start)


def end_offsets(
    kafka: KafkaConsumer, begin: list[KafkaPartition], until: UntilOf[Part], timeout_s: float
) -> tuple[dict[Part, int], dict[Part, int]]:
    """The offset before which reading stops, for each partition, and, of these, for each that has
    something to read between its `begin` and this offset. Raises `LogError`, `KafkaException`."""
    fixed: Mapping[Part, int] = {}
    if isinstance(until, datetime):
        found = first_at(kafka, begin, until, timeout_s)
        fixed = {part_of(spot): spot.offset for spot in found if spot.offset != OFFSET_END}
    elif isinstance(until, int):
        fixed = {part_of(spot): until for spot in begin}
    elif not isinstance(until, str):
        fixed = until
    ends, unread = {}, {}
    for spot in begin:
        low, high = _watermarks(kafka, spot, timeout_s)
        first = {OFFSET_BEGINNING: low, OFFSET_END: high}.get(spot.offset, spot.offset)
        end = ends[part_of(spot)] = fixed.get(part_of(spot), high)
        if max(low, first) < end:
            unread[part_of(spot)] = end
    return ends, unread


def found_offsets(
    kafka: KafkaConsumer, wanted: Mapping[Part, int], timeout_s: float
) -> dict[Part, int]:
    """The offsets of OFFSET_BEGINNING and OFFSET_END, by partition, with one request for each
    broker. Other offsets stay as they are. Raises `LogError`, `KafkaException`."""
    found = dict(wanted)
    asked = [KafkaPartition(*part, at) for part, at in wanted.items() if at < 0]
    for spot in _offsets_for_times(kafka, asked, timeout_s) if asked else ():
        if spot.error is not None:
            raise log_error(spot.error, f"finding the ends of topic {spot.topic!r}")
        found[part_of(spot)] = spot.offset
    return found


def _watermarks(kafka: KafkaConsumer, spot: KafkaPartition, timeout_s: float) -> tuple[int, int]:
    """Return the partition's earliest and latest offsets. Raises `KafkaException`."""
    return asked_again(lambda: kafka.get_watermark_offsets(spot, timeout_s), timeout_s)


def _offsets_for_times(
    kafka: KafkaConsumer, asked: list[KafkaPartition], timeout_s: float
) -> list[KafkaPartition]:
    """Call `Consumer.offsets_for_times`, and repeat the call while a partition's leader changes.
    Partitions in the result may have errors other than `MOVING_LEADER`. Raises
    `KafkaException`."""

    def ask() -> list[KafkaPartition]:
        found = kafka.offsets_for_times(asked, timeout_s)
        for spot in found:
            if spot.error is not None and spot.error.code() in MOVING_LEADER:
                raise KafkaException(spot.error)
        return found

    return asked_again(ask, timeout_s)


def first_at(
    kafka: KafkaConsumer, partitions: list[KafkaPartition], when: datetime, timeout_s: float
) -> list[KafkaPartition]:
    """The first record at or after a time, by partition; OFFSET_END where there is none. Raises
    `LogError`, `KafkaException`."""
    if not partitions:
        return []
    at_ms = int(when.timestamp() * 1000)
    asked = [KafkaPartition(spot.topic, spot.partition, at_ms) for spot in partitions]
    found = _offsets_for_times(kafka, asked, timeout_s)
    for spot in found:
        if spot.error is not None:
            raise log_error(spot.error, f"finding a time in topic {spot.topic!r}")
    return found


def group_positions(
    kafka: KafkaConsumer,
    partitions: list[KafkaPartition],
    start: Literal["earliest", "latest"] | datetime,
    begins_early: Callable[[Part], bool],
    committed_s: float,
    timeout_s: float,
) -> tuple[list[KafkaPartition], list[KafkaPartition]]:
    """Where a member of a group begins in all partitions, and, of these, where nothing is committed
    yet. `begins_early`: whether a partition begins at its earliest record instead of at `start`.
    `committed_s` bounds the wait for the committed offsets. Raises `LogError`,
    `KafkaException`."""
    found = kafka.committed(partitions, committed_s)
    for spot in found:
        if spot.error is not None:
            raise KafkaException(spot.error)
    known = [KafkaPartition(spot.topic, spot.partition, spot.offset) for spot in found]
    committed = [spot for spot in known if spot.offset >= 0]
    unknown = [spot for spot in known if spot.offset < 0]
    early = [spot for spot in unknown if begins_early(part_of(spot))]
    others = [spot for spot in unknown if not begins_early(part_of(spot))]
    fresh = _first_positions(kafka, early, "earliest", timeout_s)
    fresh += _first_positions(kafka, others, start, timeout_s)
    return committed + fresh, fresh


def _first_positions(
    kafka: KafkaConsumer,
    partitions: list[KafkaPartition],
    start: Literal["earliest", "latest"] | datetime,
    timeout_s: float,
) -> list[KafkaPartition]:
    """Where a group begins in partitions of which it has committed nothing. An end is looked up,
    so that it can be committed: the partition's next reader begins there too, even where this one
    reads nothing. Raises `LogError`, `KafkaException`."""
    if not partitions or start == "earliest":
        return [KafkaPartition(spot.topic, spot.partition, OFFSET_BEGINNING) for spot in partitions]
    if isinstance(start, datetime):
        begin = first_at(kafka, partitions, start, timeout_s)
    else:
        begin = [KafkaPartition(spot.topic, spot.partition, OFFSET_END) for spot in partitions]
    for spot in begin:
        if spot.offset == OFFSET_END:
            spot.offset = _watermarks(kafka, spot, timeout_s)[1]
    return begin
