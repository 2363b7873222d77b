"""How a consumer takes part in its group: the settings of a member, checked, as librdkafka's."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, Literal, TypeAlias, get_args

from bucketlog.client.choices import no_choice
from bucketlog.client.names import whole_name
from bucketlog.client.option_bounds import IN_GROUPS, check_bounds
from bucketlog.client.reading_range import ENDS
from bucketlog.client.sources import P
from bucketlog.log_format.errors import ConfigurationError

GroupStart: TypeAlias = Literal["earliest", "latest"] | datetime
"""Position where a group begins in a partition without a committed offset."""
Assignor: TypeAlias = Literal["cooperative-sticky", "range", "roundrobin"]
AutoCommit: TypeAlias = bool | Literal["ack"]
"""Commit records when the next call asks for more (True), when `done` acknowledges them ("ack"), or
only when `commit` is called (False)."""
OnPartitionsOf: TypeAlias = Callable[[tuple[P, ...]], None]
OnPartitions: TypeAlias = OnPartitionsOf[int]

HEARTBEAT_S_MAX = 1.0
IN_FLIGHT_RECORDS_MAX = 10_000
HEARTBEATS_IN_SESSION = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMembership(Generic[P]):
    """How a consumer takes part in its group. Raises `ConfigurationError`."""

    group: str
    start: GroupStart = "latest"
    auto_commit: AutoCommit = True
    in_flight_records_max: int = IN_FLIGHT_RECORDS_MAX
    commit_interval_s: float = 5.0
    assignor: Assignor = "cooperative-sticky"
    instance_id: str | None = None
    session_timeout_s: float = 45.0
    max_poll_interval_s: float = 300.0
    on_assigned: OnPartitionsOf[P] | None = None
    on_revoked: OnPartitionsOf[P] | None = None

    def __post_init__(self) -> None:
        if not self.group:
            raise ConfigurationError("the group has no name", remedy='as in group="billing"')
        whole_name(self.group, "group")
        if self.assignor not in get_args(Assignor):
            raise no_choice("assignor", self.assignor, get_args(Assignor))
        if isinstance(self.start, str) and self.start not in ENDS:
            raise no_choice("start", self.start, tuple(ENDS), "a datetime")
        if not isinstance(self.start, str | datetime):
            raise ConfigurationError(
                f"a group does not start at {self.start!r}",
                remedy='log.groups.reset(group, topic, to=...) sets offsets; start="earliest", '
                '"latest" or a datetime is for where nothing is committed',
            )
        if not isinstance(self.auto_commit, bool) and self.auto_commit != "ack":
            raise no_choice("auto_commit", self.auto_commit, ("ack",), "True", "False")
        check_bounds({name: getattr(self, name) for name in IN_GROUPS}, IN_GROUPS)
        if self.session_timeout_s > self.max_poll_interval_s:
            raise ConfigurationError(
                f"session_timeout_s is {self.session_timeout_s}, which is more than "
                f"max_poll_interval_s ({self.max_poll_interval_s})",
                remedy="use a shorter session_timeout_s, or a longer max_poll_interval_s",
            )

    @property
    def is_cooperative(self) -> bool:
        return self.assignor == "cooperative-sticky"

    def kafka_config(self) -> dict[str, Any]:
        heartbeat_s = min(HEARTBEAT_S_MAX, self.session_timeout_s / HEARTBEATS_IN_SESSION)
        config: dict[str, Any] = {
            "group.id": self.group,
            "partition.assignment.strategy": self.assignor,
            "enable.auto.commit": bool(self.auto_commit),
            "auto.commit.interval.ms": max(1, int(self.commit_interval_s * 1000)),
            "enable.auto.offset.store": False,
            "session.timeout.ms": int(self.session_timeout_s * 1000),
            "heartbeat.interval.ms": max(1, int(heartbeat_s * 1000)),
            "max.poll.interval.ms": int(self.max_poll_interval_s * 1000),
        }
        if self.instance_id is not None:
            config["group.instance.id"] = self.instance_id
        return config
