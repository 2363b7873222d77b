"""Names and configs of topics: what is accepted, and Kafka's defaults.

Source: Kafka's TopicConfig (names, defaults, value ranges) and Topic.validate (names). A config
that is not known is refused, as Kafka refuses it.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum

from bucketlog.log_format.errors import InvalidConfigError, InvalidTopicNameError

NAME_LENGTH_MAX = 249
VALUE_CHARACTERS_MAX = 1_000
"""Without a limit, a list could repeat its words, and a fraction could have any number of digits.
Facts and checkpoints store values; old versions of DescribeConfigs encode at most 32,767 bytes."""
_NAME = re.compile(r"[a-zA-Z0-9._-]+")
_FRACTION = re.compile(r"([0-9]+(\.[0-9]+)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")
"""Matched in linear time: no two repetitions can share digits."""

CLEANUP_POLICY = "cleanup.policy"
DELETE_RETENTION_MS = "delete.retention.ms"
MAX_COMPACTION_LAG_MS = "max.compaction.lag.ms"
MAX_MESSAGE_BYTES = "max.message.bytes"
MIN_CLEANABLE_DIRTY_RATIO = "min.cleanable.dirty.ratio"
MIN_COMPACTION_LAG_MS = "min.compaction.lag.ms"
RECORD_VALIDATION = "record.validation"
RETENTION_BYTES = "retention.bytes"
RETENTION_MS = "retention.ms"
SEGMENT_MS = "segment.ms"
TIMESTAMP_AFTER_MAX_MS = "message.timestamp.after.max.ms"
TIMESTAMP_BEFORE_MAX_MS = "message.timestamp.before.max.ms"
TIMESTAMP_TYPE = "message.timestamp.type"
HEADER_ALONE = "header"
LOG_APPEND_TIME = "LogAppendTime"


class ConfigType(IntEnum):
    """As DescribeConfigs numbers them."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    LONG = 5
    DOUBLE = 6
    LIST = 7


@dataclass(frozen=True, slots=True)
class ConfigDefinition:
    name: str
    config_type: ConfigType
    default: str
    documentation: str
    accepts: Callable[[str], bool]


def _integer(low: int, high: int) -> Callable[[str], bool]:
    def accepts(text: str) -> bool:
        return re.fullmatch(r"-?[0-9]{1,19}", text) is not None and low <= int(text) <= high

    return accepts


def _fraction(text: str) -> bool:
    return _FRACTION.fullmatch(text) is not None and 0 <= float(text) <= 1


def _one_of(*words: str) -> Callable[[str], bool]:
    return lambda text: text in words


def list_words(text: str) -> frozenset[str]:
    """Of a config that is a list, as `cleanup.policy`."""
    return frozenset(word.strip() for word in text.split(","))


def _policies(text: str) -> bool:
    return list_words(text) <= {"delete", "compact"}


_INT_MAX = 2**31 - 1
_LONG_MAX = 2**63 - 1

TOPIC_CONFIGS: Mapping[str, ConfigDefinition] = {
    definition.name: definition
    for definition in (
        ConfigDefinition(
            CLEANUP_POLICY,
            ConfigType.LIST,
            "delete",
            "delete: by age and size; compact: keep the latest record of each key.",
            _policies,
        ),
        ConfigDefinition(
            "compression.type",
            ConfigType.STRING,
            "producer",
            "Batches are kept as producers compressed them.",
            _one_of("producer"),
        ),
        ConfigDefinition(
            DELETE_RETENTION_MS,
            ConfigType.LONG,
            "86400000",
            "How long tombstones stay in compacted topics.",
            _integer(0, _LONG_MAX),
        ),
        ConfigDefinition(
            MAX_COMPACTION_LAG_MS,
            ConfigType.LONG,
            str(_LONG_MAX),
            "How long a record stays uncompacted at most.",
            _integer(1, _LONG_MAX),
        ),
        ConfigDefinition(
            MAX_MESSAGE_BYTES,
            ConfigType.INT,
            "1048588",
            "The largest record batch, in bytes.",
            _integer(0, _INT_MAX),
        ),
        ConfigDefinition(
            TIMESTAMP_AFTER_MAX_MS,
            ConfigType.LONG,
            "3600000",
            "How far a record's timestamp may be ahead of the broker's clock.",
            _integer(0, _LONG_MAX),
        ),
        ConfigDefinition(
            TIMESTAMP_BEFORE_MAX_MS,
            ConfigType.LONG,
            str(_LONG_MAX),
            "How far a record's timestamp may be behind the broker's clock.",
            _integer(0, _LONG_MAX),
        ),
        ConfigDefinition(
            TIMESTAMP_TYPE,
            ConfigType.STRING,
            "CreateTime",
            "CreateTime: the producer's timestamps; LogAppendTime: the broker's.",
            _one_of("CreateTime", LOG_APPEND_TIME),
        ),
        ConfigDefinition(
            MIN_CLEANABLE_DIRTY_RATIO,
            ConfigType.DOUBLE,
            "0.5",
            "How much of a compacted log must be dirty before it is compacted.",
            _fraction,
        ),
        ConfigDefinition(
            MIN_COMPACTION_LAG_MS,
            ConfigType.LONG,
            "0",
            "How long a record stays uncompacted at least.",
            _integer(0, _LONG_MAX),
        ),
        ConfigDefinition(
            "min.insync.replicas",
            ConfigType.INT,
            "1",
            "Accepted for clients' sake: every acknowledged record is in the bucket.",
            _integer(1, _INT_MAX),
        ),
        ConfigDefinition(
            RECORD_VALIDATION,
            ConfigType.STRING,
            "full",
            "full: each record is checked before the batch is acknowledged; header: only the "
            "batch's header and CRC are checked. Compacted topics are always checked in full.",
            _one_of("full", HEADER_ALONE),
        ),
        ConfigDefinition(
            RETENTION_BYTES,
            ConfigType.LONG,
            "-1",
            "How many bytes of a partition are kept; -1 for no bound.",
            _integer(-1, _LONG_MAX),
        ),
        ConfigDefinition(
            RETENTION_MS,
            ConfigType.LONG,
            "604800000",
            "How long records are kept; -1 for ever.",
            _integer(-1, _LONG_MAX),
        ),
        ConfigDefinition(
            "segment.bytes",
            ConfigType.INT,
            "1073741824",
            "Accepted for clients' sake: the bucket's objects have sizes of their own.",
            _integer(1, _INT_MAX),
        ),
        ConfigDefinition(
            SEGMENT_MS,
            ConfigType.LONG,
            "604800000",
            "Accepted for clients' sake: the bucket's objects have ages of their own.",
            _integer(1, _LONG_MAX),
        ),
    )
}


def check_topic_name(name: str) -> None:
    """Raises `InvalidTopicNameError`."""
    if name in ("", ".", "..") or not _NAME.fullmatch(name):
        raise InvalidTopicNameError(
            f"topic name {name!r} is not valid", remedy="use letters, digits, '.', '_' and '-'"
        )
    if len(name) > NAME_LENGTH_MAX:
        raise InvalidTopicNameError(
            f"a topic name of {len(name)} characters is too long",
            remedy=f"use at most {NAME_LENGTH_MAX}",
        )


def check_names(names: Iterable[str]) -> None:
    """Raises `InvalidConfigError` for a config that there is not."""
    for name in names:
        if name not in TOPIC_CONFIGS:
            raise InvalidConfigError(f"Unknown topic config name: {name}")


def check_configs(configs: Mapping[str, str | None]) -> dict[str, str]:
    """The configs to store. Raises `InvalidConfigError`."""
    accepted = {}
    for name, value in configs.items():
        check_names([name])
        definition = TOPIC_CONFIGS[name]
        if value is None:
            raise InvalidConfigError(f"null value not supported for topic config: {name}")
        if len(value) > VALUE_CHARACTERS_MAX:
            raise InvalidConfigError(
                f"invalid value of {len(value)} characters for configuration {name}",
                remedy=f"use at most {VALUE_CHARACTERS_MAX}",
            )
        if not definition.accepts(value):
            raise InvalidConfigError(f"invalid value {value!r} for configuration {name}")
        accepted[name] = value
    return accepted
