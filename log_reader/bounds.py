"""Where reading begins and ends: offsets, the ends of the log, or points in time. Pure.

Names, precedence and meaning are those of Spark's Kafka source: a global timestamp goes before
timestamps by partition, these before offsets. A point in time stands for the first offset whose
record is as late or later (Kafka's ListOffsets).
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias
from uuid import UUID

from pydantic import BeforeValidator, StrictInt, TypeAdapter, ValidationError

from bucketlog.log_format.errors import ConfigurationError

EARLIEST = -2
LATEST = -1
"""Kafka's numbers for the two ends, allowed in JSON offsets as in Spark's Kafka source."""

OffsetsByTopic: TypeAlias = Mapping[str, Mapping[int, int]]


@dataclass(frozen=True, slots=True)
class TimestampBound:
    """The first offset at or after a time, in milliseconds since 1970: one for all partitions, or
    one for each. `or_latest`: without such a record, it is the end, else that is an
    error (`startingOffsetsByTimestampStrategy`)."""

    timestamp_ms: int | OffsetsByTopic
    or_latest: bool

    def of(self, topic: str, partition: int) -> int:
        if isinstance(self.timestamp_ms, int):
            return self.timestamp_ms
        return self.timestamp_ms[topic][partition]


Bound: TypeAlias = Literal["earliest", "latest"] | OffsetsByTopic | TimestampBound

STARTING = ("startingOffsets", "startingOffsetsByTimestamp", "startingTimestamp")
ENDING = ("endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp")
STRATEGY = "startingOffsetsByTimestampStrategy"


def _partition(key: object) -> int:
    """One way to write each number: "0" and "00" would be two keys for one partition."""
    if not isinstance(key, str) or not key.isascii() or not key.isdecimal() or str(int(key)) != key:
        raise ValueError("a partition's number is expected")
    return int(key)


_ASSIGN: TypeAdapter[Any] = TypeAdapter(dict[str, tuple[StrictInt, ...]])
_TOPIC_IDS: TypeAdapter[Any] = TypeAdapter(dict[str, UUID])
_OFFSETS: TypeAdapter[Any] = TypeAdapter(
    dict[str, dict[Annotated[int, BeforeValidator(_partition)], StrictInt]]
)


def parse_starting(given: Mapping[str, str]) -> Bound | None:
    """`given` has names in lower case. None: no option says it. Raises `ConfigurationError`."""
    strategy = given.get(STRATEGY.lower(), "error").strip().lower()
    if strategy not in ("error", "latest"):
        raise ConfigurationError(f"{STRATEGY} {strategy!r}", remedy="use error or latest")
    return _parse(given, STARTING, or_latest=strategy == "latest")


def parse_ending(given: Mapping[str, str]) -> Bound | None:
    """As `parse_starting`."""
    return _parse(given, ENDING, or_latest=True)


def parse_assign(text: str) -> dict[str, tuple[int, ...]]:
    """Raises `ConfigurationError`."""
    found: dict[str, tuple[int, ...]] = _json(text, "assign", '{"orders":[0,1]}', _ASSIGN)
    return found


def parse_topic_ids(text: str) -> dict[str, UUID]:
    """Raises `ConfigurationError`."""
    example = '{"orders":"8c6b0f5e-54a1-4b0f-9a5e-0c5a2f8a7d11"}'
    found: dict[str, UUID] = _json(text, "topicIds", example, _TOPIC_IDS)
    return found


def names(bound: Bound | None, special: int) -> bool:
    """Whether it is, or holds, `EARLIEST` or `LATEST`."""
    match bound:
        case None | TimestampBound():
            return False
        case "earliest":
            return special == EARLIEST
        case "latest":
            return special == LATEST
        case _:
            return any(at == special for by in bound.values() for at in by.values())


def named_partitions(bound: Bound) -> set[tuple[str, int]] | None:
    """The partitions that it has a word for; None: for all."""
    content = bound.timestamp_ms if isinstance(bound, TimestampBound) else bound
    if isinstance(content, str | int):
        return None
    return {(topic, number) for topic, numbers in content.items() for number in numbers}


def _parse(
    given: Mapping[str, str], options: tuple[str, str, str], *, or_latest: bool
) -> Bound | None:
    offsets, by_timestamp, timestamp = options
    text = given.get(timestamp.lower())
    if text is not None:
        return TimestampBound(_milliseconds(timestamp, text), or_latest)
    text = given.get(by_timestamp.lower())
    if text is not None:
        times: OffsetsByTopic = _json(
            text, by_timestamp, '{"orders":{"0":1700000000000}}', _OFFSETS
        )
        if any(at < 0 for by in times.values() for at in by.values()):
            raise ConfigurationError(f"{by_timestamp} has a timestamp below 0")
        return TimestampBound(times, or_latest)
    text = given.get(offsets.lower())
    return None if text is None else _offsets(offsets, text.strip())


def _milliseconds(name: str, text: str) -> int:
    try:
        found = int(text.strip())
    except ValueError:
        found = -1
    if found < 0:
        raise ConfigurationError(
            f"{name} {text!r}", remedy="give milliseconds since 1970-01-01 UTC, as 1700000000000"
        )
    return found


def _offsets(name: str, text: str) -> Bound:
    match text.lower():
        case "earliest":
            return "earliest"
        case "latest":
            return "latest"
        case _:
            offsets: OffsetsByTopic = _json(text, name, '{"orders":{"0":23,"1":-1}}', _OFFSETS)
            if any(at < EARLIEST for by in offsets.values() for at in by.values()):
                raise ConfigurationError(f"{name} has an offset below {EARLIEST}")
            return offsets


def _json(text: str, name: str, example: str, shape: TypeAdapter[Any]) -> Any:
    try:
        return shape.validate_python(json.loads(text, object_pairs_hook=_without_duplicates))
    except ValidationError as error:
        first = error.errors()[0]
        told = f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}"
    except (ValueError, RecursionError) as error:
        told = str(error)
    raise ConfigurationError(f"{name} {text!r} does not parse: {told}", remedy=f"as in {example}")


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        twice = next(key for at, (key, _) in enumerate(pairs) if key in dict(pairs[:at]))
        raise ValueError(f"{twice!r} is there twice")
    return found
