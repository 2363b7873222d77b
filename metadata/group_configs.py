"""The configs of consumer, share and streams groups (KIP-848, KIP-932, KIP-1071).

Source: Kafka 4.3's GroupConfig (names, types, defaults, values, the words of the errors). Brokers
store and describe these configs. The bounds are the defaults of Kafka's brokers.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from bucketlog.log_format.errors import InvalidConfigError
from bucketlog.metadata.config_definitions import (
    AnyValue,
    Check,
    ConfigDefinition,
    ConfigType,
    OneOf,
    Range,
    Value,
    invalid,
)

INT, STRING, BOOLEAN = ConfigType.INT, ConfigType.STRING, ConfigType.BOOLEAN
_DURATION = re.compile(
    r"[+]?P(?=.)([+]?\d+D)?(T(?=.)([+]?\d+H)?([+]?\d+M)?([+]?\d+(\.\d{0,9})?S)?)?", re.I | re.A
)
"""Matches the durations that Java's Duration.parse accepts, without negative parts."""


@dataclass(frozen=True, slots=True)
class GroupConfig(ConfigDefinition):
    """`low` and `high` are the bounds by configs of the broker."""

    low: int | None = None
    high: int | None = None
    has_synonym: bool = True

    @property
    def broker_name(self) -> str:
        """The broker's config that is the default of the group's config in Kafka."""
        return f"group.{self.name}" if self.has_synonym else self.name

    def bounded(self, text: str) -> str:
        """Return the value in canonical form, within the broker's bounds. Raises
        `InvalidConfigError`."""
        value = self.canonical(text)
        kind, _, rest = self.name.partition(".")
        if self.low is not None and int(value) < self.low:
            least = f"group.{kind}.min.{rest}"
            raise InvalidConfigError(f"{self.name} must be greater than or equal to {least}")
        if self.high is not None and int(value) > self.high:
            rest = rest.removeprefix("num.")
            most = f"group.{kind}.max.{rest}"
            raise InvalidConfigError(f"{self.name} must be less than or equal to {most}")
        return value


class _OffsetReset:
    def __call__(self, name: str, value: Value) -> str | None:
        assert isinstance(value, str)
        if value in ("latest", "earliest"):
            return None
        if value.startswith("by_duration:") and _DURATION.fullmatch(value.partition(":")[2]):
            return None
        reason = (
            f"Invalid value `{value}` for configuration {name}. The value must be either "
            "'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'."
        )
        return invalid(name, value, reason)

    def __str__(self) -> str:
        return "latest, earliest, by_duration:PnDTnHnMn.nS"


def _number(
    name: str,
    default: int,
    documentation: str,
    check: Check,
    low: int | None = None,
    high: int | None = None,
) -> GroupConfig:
    return GroupConfig(name, INT, str(default), documentation, check, "", low, high)


_SESSION = "After what time without a heartbeat a member leaves the group."
_HEARTBEAT = "How often members send heartbeats."
_ASSIGNMENT = "The shortest time between two assignments of the group."
_CONFIGS = (
    _number("consumer.session.timeout.ms", 45_000, _SESSION, Range(1), 45_000, 60_000),
    _number("consumer.heartbeat.interval.ms", 5_000, _HEARTBEAT, Range(1), 5_000, 15_000),
    _number("consumer.assignment.interval.ms", 1_000, _ASSIGNMENT, Range(0), 0, 15_000),
    _number("share.session.timeout.ms", 45_000, _SESSION, Range(1), 45_000, 60_000),
    _number("share.heartbeat.interval.ms", 5_000, _HEARTBEAT, Range(1), 5_000, 15_000),
    _number("share.assignment.interval.ms", 1_000, _ASSIGNMENT, Range(0), 0, 15_000),
    _number(
        "share.record.lock.duration.ms",
        30_000,
        "How long a member of a share group may keep a record.",
        Range(1_000),
        15_000,
        60_000,
    ),
    _number(
        "share.delivery.count.limit",
        5,
        "How often a record is delivered to a share group at most.",
        Range(2),
        2,
        10,
    ),
    _number(
        "share.partition.max.record.locks",
        2_000,
        "How many records of a partition a share group may have in delivery.",
        Range(100),
        100,
        4_000,
    ),
    GroupConfig(
        "share.auto.offset.reset",
        STRING,
        "latest",
        "Where a share group begins to read.",
        _OffsetReset(),
        has_synonym=False,
    ),
    GroupConfig(
        "share.isolation.level",
        STRING,
        "read_uncommitted",
        "Whether a share group reads records of open and aborted transactions.",
        OneOf(("read_committed", "read_uncommitted")),
        has_synonym=False,
    ),
    GroupConfig(
        "share.renew.acknowledge.enable",
        BOOLEAN,
        "true",
        "Whether members of a share group may extend the time for a record.",
        AnyValue(),
        has_synonym=False,
    ),
    _number("streams.session.timeout.ms", 45_000, _SESSION, Range(1), 45_000, 60_000),
    _number("streams.heartbeat.interval.ms", 5_000, _HEARTBEAT, Range(1), 5_000, 15_000),
    _number("streams.assignment.interval.ms", 1_000, _ASSIGNMENT, Range(0), 0, 15_000),
    _number(
        "streams.num.standby.replicas",
        0,
        "How many standby copies of its state a streams group has.",
        Range(0),
        high=2,
    ),
    _number(
        "streams.initial.rebalance.delay.ms",
        3_000,
        "How long a new streams group waits for members.",
        Range(0),
    ),
)
GROUP_CONFIGS: Mapping[str, GroupConfig] = {config.name: config for config in _CONFIGS}


def checked_group_configs(configs: Mapping[str, str]) -> dict[str, str]:
    """Return the configs in canonical form, within the broker's bounds. Raises
    `InvalidConfigError`."""
    for name in configs:
        if name not in GROUP_CONFIGS:
            raise InvalidConfigError(f"Unknown group config name: {name}")
    parsed = {n: c.canonical(configs[n]) for n, c in GROUP_CONFIGS.items() if n in configs}
    return {name: GROUP_CONFIGS[name].bounded(value) for name, value in parsed.items()}
