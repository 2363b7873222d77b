"""The options of `spark.read.format("bucketlog")`, checked and typed. Pure.

Names and meanings are those of Spark's Kafka source where it has them. Invariant: an option that is
not known, or contradicts another, is refused: no typing error reads something else than the user
asked for.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Literal, TypeAlias, TypeVar
from uuid import UUID

from bucketlog.log_format.compression import MAX_DECOMPRESSED_BYTES
from bucketlog.log_format.durations import parse_duration_ms
from bucketlog.log_format.errors import ConfigurationError
from bucketlog.log_reader.bounds import (
    EARLIEST,
    ENDING,
    LATEST,
    STARTING,
    STRATEGY,
    Bound,
    names,
    parse_assign,
    parse_ending,
    parse_starting,
    parse_topic_ids,
)
from bucketlog.log_reader.java_patterns import topic_pattern
from bucketlog.tiered_storage.backends.location import (
    S3Options,
    open_patient_bucket,
    parse_location,
    parse_s3_options,
)
from bucketlog.tiered_storage.bucket import SyncBucket
from bucketlog.tiered_storage.encryption.key_service import KeyAccess
from bucketlog.tiered_storage.encryption.reading_keys import KeyOptions

MAX_PARTITION_BYTES = 64 * 1024 * 1024
POLL_INTERVAL_MS = 500
GIVE_UP_AFTER_MS = 30_000
MAX_TRIGGER_DELAY_MS = 15 * 60_000
_S3_PREFIX = "s3."
_KAFKA_ISOLATION = "kafka.isolation.level"
_OF_KAFKA = ("kafka.", "groupidprefix", "fetchoffset.", "kafkaconsumer.")
"""Options of Spark's Kafka source for its consumers, which this source does not have."""
_SELECTIONS = ("subscribe", "subscribePattern", "assign")
KNOWN = (
    "path",
    *_SELECTIONS,
    *STARTING,
    STRATEGY,
    *ENDING,
    "topicIds",
    "failOnDataLoss",
    "failOnUnreadable",
    "includeHeaders",
    "isolation.level",
    "minPartitions",
    "maxRecordsPerPartition",
    "maxPartitionBytes",
    "maxDecompressedBytes",
    "maxOffsetsPerTrigger",
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
    "pollIntervalMs",
    "giveUpAfterMs",
    "encryption.keyFile",
    "encryption.kmsRegion",
    "encryption.kmsEndpointUrl",
)

_T = TypeVar("_T")
Isolation: TypeAlias = Literal["read_committed", "read_uncommitted"]


@dataclass(frozen=True, slots=True)
class Subscribe:
    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SubscribePattern:
    """Matches whole names. `pattern` is in Python's syntax."""

    pattern: str


@dataclass(frozen=True, slots=True)
class Assign:
    partitions: Mapping[str, tuple[int, ...]]


Selection: TypeAlias = Subscribe | SubscribePattern | Assign


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """`starting` and `ending` None: nothing is said (see `batch_starting`, `stream_starting`).
    `topic_ids`: a topic of that name with another id is refused. `min_partitions` None: as many
    tasks as `max_partition_bytes` gives. `encryption` says how the keys of encrypted topics are
    reached. A micro-batch has at least `min_offsets_per_trigger` offsets, unless the last one began
    `max_trigger_delay_ms` ago. `ignored` are options for clients of Kafka."""

    url: str
    selection: Selection
    starting: Bound | None = None
    ending: Bound | None = None
    topic_ids: Mapping[str, UUID] = field(default_factory=dict)
    fail_on_data_loss: bool = True
    fail_on_unreadable: bool = True
    include_headers: bool = False
    isolation: Isolation = "read_committed"
    min_partitions: int | None = None
    max_records_per_partition: int | None = None
    max_partition_bytes: int = MAX_PARTITION_BYTES
    max_decompressed_bytes: int = MAX_DECOMPRESSED_BYTES
    max_offsets_per_trigger: int | None = None
    min_offsets_per_trigger: int | None = None
    max_trigger_delay_ms: int = MAX_TRIGGER_DELAY_MS
    poll_interval_ms: int = POLL_INTERVAL_MS
    give_up_after_ms: int = GIVE_UP_AFTER_MS
    s3: S3Options | None = None
    encryption: KeyAccess = field(default_factory=KeyAccess)
    ignored: tuple[str, ...] = ()


def check_batch(options: ReadOptions) -> None:
    """What a batch read can do nothing with. Raises `ConfigurationError`."""
    if names(options.starting, LATEST):
        raise ConfigurationError(
            "startingOffsets may not be latest (-1) in a batch read",
            remedy="there is nothing after",
        )
    if names(options.ending, EARLIEST):
        raise ConfigurationError(
            "endingOffsets may not be earliest (-2)", remedy="there is nothing before"
        )


def check_stream(options: ReadOptions) -> None:
    """What a streaming read can do nothing with. Raises `ConfigurationError`."""
    if options.ending is not None:
        raise ConfigurationError(
            f"{', '.join(ENDING)} end a batch read; a streaming read has no end",
            remedy="leave them out, or use spark.read",
        )
    if options.topic_ids:
        raise ConfigurationError(
            "topicIds are for a batch read; a streaming read keeps its topics' ids by itself",
            remedy="leave them out, or use spark.read",
        )


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
    return ReadOptions(
        url=url,
        selection=_selection(given),
        starting=parse_starting(given),
        ending=parse_ending(given),
        topic_ids=_option(given, "topicIds", parse_topic_ids, {}),
        fail_on_data_loss=_option(given, "failOnDataLoss", _flag, True),
        fail_on_unreadable=_option(given, "failOnUnreadable", _flag, True),
        include_headers=_option(given, "includeHeaders", _flag, False),
        isolation=_isolation_level(given),
        min_partitions=_option(given, "minPartitions", _positive, None),
        max_records_per_partition=_option(given, "maxRecordsPerPartition", _positive, None),
        max_partition_bytes=_option(given, "maxPartitionBytes", _positive, MAX_PARTITION_BYTES),
        max_decompressed_bytes=_option(
            given, "maxDecompressedBytes", _positive, MAX_DECOMPRESSED_BYTES
        ),
        max_offsets_per_trigger=_option(given, "maxOffsetsPerTrigger", _positive, None),
        min_offsets_per_trigger=_min_offsets(given),
        max_trigger_delay_ms=_option(given, "maxTriggerDelay", _delay_ms, MAX_TRIGGER_DELAY_MS),
        poll_interval_ms=_option(given, "pollIntervalMs", _positive, POLL_INTERVAL_MS),
        give_up_after_ms=_option(given, "giveUpAfterMs", _positive, GIVE_UP_AFTER_MS),
        s3=_s3_options(given, location.scheme),
        encryption=_key_access(given),
        ignored=tuple(sorted(filter(_is_of_kafka, given))),
    )


def _isolation_level(given: Mapping[str, str]) -> Isolation:
    """Return the isolation level, also from the option `kafka.isolation.level`."""
    name = "isolation.level" if "isolation.level" in given else _KAFKA_ISOLATION
    return _option(given, name, _isolation, "read_committed")


def _min_offsets(given: Mapping[str, str]) -> int | None:
    least = _option(given, "minOffsetsPerTrigger", _positive, None)
    most = _option(given, "maxOffsetsPerTrigger", _positive, None)
    if least is not None and most is not None and least > most:
        raise ConfigurationError(
            f"minOffsetsPerTrigger {least} is above maxOffsetsPerTrigger {most}",
            remedy="give a smaller minOffsetsPerTrigger",
        )
    return least


def _is_of_kafka(name: str) -> bool:
    """Whether an option, in lower case, is only for clients of Kafka."""
    return name.startswith(_OF_KAFKA) and name != _KAFKA_ISOLATION


def _key_access(given: Mapping[str, str]) -> KeyAccess:
    """What is not given is taken from the environment, by the names of the broker's settings."""
    access = KeyOptions().access()
    key_file = given.get("encryption.keyfile")
    return KeyAccess(
        Path(key_file) if key_file else access.key_file,
        given.get("encryption.kmsregion", access.kms_region),
        given.get("encryption.kmsendpointurl", access.kms_endpoint_url),
        access.kms_timeout_ms,
    )


def open_log(options: ReadOptions) -> SyncBucket:
    """The bucket, without a request; the caller closes it. What may pass, as a throttled request,
    is tried again for `give_up_after_ms`."""
    return open_patient_bucket(
        options.url, s3=options.s3, give_up_after_ms=options.give_up_after_ms
    )


def _check_names(given: Mapping[str, str]) -> None:
    known = {name.lower() for name in KNOWN} | {_S3_PREFIX + name for name in _s3_names()}
    for name in given:
        if name not in known and not name.startswith(_OF_KAFKA):
            every = {
                known.lower(): known
                for known in (*KNOWN, *(_S3_PREFIX + field for field in S3Options.model_fields))
            }
            near = [every[one] for one in get_close_matches(name, every, 1)]
            remedy = (
                f"did you mean {near[0]}?" if near else f"known are {', '.join(every.values())}"
            )
            raise ConfigurationError(f"unknown option {name!r}", remedy=remedy)


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
    return parse_s3_options(settings)


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
            return SubscribePattern(topic_pattern(text))
        case _:
            return Assign(parse_assign(text))


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


def _delay_ms(text: str) -> int:
    """Parse a time in Spark's form: 15m, 10min, 500ms. A number alone means milliseconds."""
    if text.isdecimal():
        return int(text)
    return parse_duration_ms(text.replace("min", "m"))


def _isolation(text: str) -> Isolation:
    match text.lower():
        case "read_committed":
            return "read_committed"
        case "read_uncommitted":
            return "read_uncommitted"
        case _:
            raise ValueError("read_committed or read_uncommitted is expected")
