"""The options of `spark.read.format("bucketlog")`, checked and typed. Pure.

Names and meanings are those of Spark's Kafka source where it has them. Invariant: an option that is
not known, or contradicts another, is refused: no typing error reads something else than was meant.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypeVar

from pydantic import TypeAdapter, ValidationError

from bucketlog.errors import ConfigurationError
from bucketlog.wire.compression import MAX_DECOMPRESSED_BYTES
from tiered_storage.location import S3Options, parse_location

EARLIEST = -2
LATEST = -1
"""Kafka's numbers for the two ends, allowed in JSON offsets as in Spark's Kafka source."""

MAX_PARTITION_BYTES = 64 * 1024 * 1024
_S3_PREFIX = "s3."
_SELECTIONS = ("subscribe", "subscribePattern", "assign")
_KNOWN = (
    "path",
    *_SELECTIONS,
    "startingOffsets",
    "endingOffsets",
    "includeHeaders",
    "minPartitions",
    "maxPartitionBytes",
    "maxDecompressedBytes",
)

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Subscribe:
    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SubscribePattern:
    """Matches whole names; Python's syntax (Spark's Kafka source takes Java's)."""

    pattern: str


@dataclass(frozen=True, slots=True)
class Assign:
    partitions: Mapping[str, tuple[int, ...]]


Selection: TypeAlias = Subscribe | SubscribePattern | Assign
OffsetsByTopic: TypeAlias = Mapping[str, Mapping[int, int]]
Bound: TypeAlias = Literal["earliest", "latest"] | OffsetsByTopic


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """`min_partitions` None: as many tasks as `max_partition_bytes` gives."""

    url: str
    selection: Selection
    starting: Bound = "earliest"
    ending: Bound = "latest"
    include_headers: bool = False
    min_partitions: int | None = None
    max_partition_bytes: int = MAX_PARTITION_BYTES
    max_decompressed_bytes: int = MAX_DECOMPRESSED_BYTES
    s3: S3Options | None = None


def parse_options(options: Mapping[str, str]) -> ReadOptions:
    """From Spark's options; names in any case. Raises `ConfigurationError`."""
    given = {name.lower(): value for name, value in options.items()}
    _check_names(given)
    url = given.get("path", "")
    if not url:
        raise ConfigurationError("no path", remedy='give the bucket: .load("s3://bucket/prefix")')
    location = parse_location(url)
    if location.scheme == "memory":
        raise ConfigurationError(
            f"{url!r} is in the memory of another process", remedy="use s3:// or file://"
        )
    starting = _bound(given, "startingOffsets", "earliest")
    ending = _bound(given, "endingOffsets", "latest")
    if starting == "latest" or _names(starting, LATEST):
        raise ConfigurationError(
            "startingOffsets may not be latest (-1) in a batch read",
            remedy="there is nothing after",
        )
    if ending == "earliest" or _names(ending, EARLIEST):
        raise ConfigurationError(
            "endingOffsets may not be earliest (-2)", remedy="there is nothing before"
        )
    return ReadOptions(
        url=url,
        selection=_selection(given),
        starting=starting,
        ending=ending,
        include_headers=_option(given, "includeHeaders", _flag, False),
        min_partitions=_option(given, "minPartitions", _positive, None),
        max_partition_bytes=_option(given, "maxPartitionBytes", _positive, MAX_PARTITION_BYTES),
        max_decompressed_bytes=_option(
            given, "maxDecompressedBytes", _positive, MAX_DECOMPRESSED_BYTES
        ),
        s3=_s3_options(given, location.scheme),
    )


def _check_names(given: Mapping[str, str]) -> None:
    known = {name.lower() for name in _KNOWN} | {_S3_PREFIX + name for name in _s3_names()}
    for name in given:
        if name.startswith("kafka."):
            raise ConfigurationError(
                f"option {name!r}: this source reads the bucket and no broker",
                remedy='leave it out, and give the bucket: .load("s3://bucket/prefix")',
            )
        if name not in known:
            listed = ", ".join((*_KNOWN, *(_S3_PREFIX + field for field in S3Options.model_fields)))
            raise ConfigurationError(f"unknown option {name!r}", remedy=f"known are {listed}")


def _s3_names() -> dict[str, str]:
    """Option names (lower case, with and without underscores) to fields of `S3Options`."""
    fields = list(S3Options.model_fields)
    return {name: name for name in fields} | {name.replace("_", ""): name for name in fields}


def _s3_options(given: Mapping[str, str], scheme: str) -> S3Options | None:
    names = _s3_names()
    settings = {
        names[name.removeprefix(_S3_PREFIX)]: value
        for name, value in given.items()
        if name.startswith(_S3_PREFIX)
    }
    if scheme != "s3":
        if settings:
            raise ConfigurationError(
                f"s3 options for a {scheme} path: {', '.join(settings)}", remedy="leave them out"
            )
        return None
    try:
        return S3Options.model_validate(settings)
    except ValidationError as error:
        raise ConfigurationError(f"bad S3 options: {error}") from error


def _selection(given: Mapping[str, str]) -> Selection:
    chosen = [name for name in _SELECTIONS if name.lower() in given]
    if len(chosen) != 1:
        raise ConfigurationError(
            f"{' and '.join(chosen) or 'no topic'} given",
            remedy=f"give exactly one of {', '.join(_SELECTIONS)}",
        )
    text = given[chosen[0].lower()]
    match chosen[0]:
        case "subscribe":
            topics = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
            if not topics:
                raise ConfigurationError("subscribe names no topic", remedy="as in orders,refunds")
            return Subscribe(topics)
        case "subscribePattern":
            try:
                re.compile(text)
            except re.error as error:
                raise ConfigurationError(f"subscribePattern {text!r}: {error}") from error
            return SubscribePattern(text)
        case _:
            return Assign(_json(text, "assign", '{"orders":[0,1]}', _ASSIGN))


_ASSIGN: TypeAdapter[Any] = TypeAdapter(dict[str, tuple[int, ...]])
_OFFSETS: TypeAdapter[Any] = TypeAdapter(dict[str, dict[int, int]])


def _bound(given: Mapping[str, str], name: str, default: Literal["earliest", "latest"]) -> Bound:
    text = given.get(name.lower(), default).strip()
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
        return shape.validate_python(json.loads(text))
    except (ValueError, ValidationError) as error:
        raise ConfigurationError(
            f"{name} {text!r} does not parse: {error}", remedy=f"as in {example}"
        ) from error


def _names(bound: Bound, special: int) -> bool:
    return not isinstance(bound, str) and any(
        at == special for by_partition in bound.values() for at in by_partition.values()
    )


def _option(given: Mapping[str, str], name: str, parse: Callable[[str], _T], default: _T) -> _T:
    text = given.get(name.lower())
    if text is None:
        return default
    try:
        return parse(text.strip())
    except ValueError as error:
        raise ConfigurationError(f"{name} {text!r}: {error}") from error


def _flag(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError("true or false is expected")
    return text.lower() == "true"


def _positive(text: str) -> int:
    if int(text) <= 0:
        raise ValueError("a number above 0 is expected")
    return int(text)
