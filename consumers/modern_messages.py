"""Requests to a group of the consumer protocol, and its responses: values.

Source: KIP-848, ConsumerGroupHeartbeat and ConsumerGroupDescribe.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import NamedTuple, Protocol

from kio.schema.errors import ErrorCode

from bucketlog.consumers.assignor_input import Assignment
from bucketlog.log_format.model import TopicId

JOIN_EPOCH = 0
LEAVE_EPOCH = -1
STATIC_LEAVE_EPOCH = -2


class ModernState(StrEnum):
    """Kafka's ConsumerGroupState; the values are what ListGroups and ConsumerGroupDescribe say."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"
    DEAD = "Dead"


class FoundTopic(NamedTuple):
    topic_id: TopicId
    partitions: int


class KnownTopics(Protocol):
    """The topics that exist. `version` differs whenever they, or their partitions, differ."""

    @property
    def version(self) -> int: ...

    def find(self, name: str) -> FoundTopic | None: ...

    def name(self, topic_id: TopicId) -> str | None: ...

    def names(self) -> list[str]: ...


class GroupRefusal(NamedTuple):
    error: ErrorCode
    message: str


@dataclass(frozen=True, slots=True)
class ModernHeartbeat:
    """A heartbeat. `member_epoch` 0 joins, -1 leaves, -2 leaves for a while (static members). None
    means that a value has not changed; `owned` None: the member does not say."""

    member_id: str
    member_epoch: int
    client_id: str = ""
    client_host: str = ""
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int | None = None
    topics: frozenset[str] | None = None
    regex: str | None = None
    assignor: str | None = None
    owned: Assignment | None = None

    @property
    def is_full(self) -> bool:
        """The member has joined, or missed a response: it needs the whole answer."""
        subscribes = self.topics is not None or self.regex is not None
        return self.rebalance_timeout_ms is not None and subscribes and self.owned is not None


@dataclass(frozen=True, slots=True)
class HeartbeatAnswer:
    """The answer to a heartbeat. `assignment` None: the member knows its partitions."""

    member_id: str
    member_epoch: int
    heartbeat_interval_ms: int = 0
    assignment: Assignment | None = None


class MemberType(IntEnum):
    """KIP-1099."""

    CLASSIC = 0
    CONSUMER = 1


class DescribedModernMember(NamedTuple):
    member_id: str
    instance_id: str | None
    rack_id: str | None
    member_epoch: int
    client_id: str
    client_host: str
    topics: tuple[str, ...]
    regex: str | None
    assigned: Mapping[TopicId, tuple[int, ...]]
    target: Mapping[TopicId, tuple[int, ...]]
    member_type: MemberType


@dataclass(frozen=True, slots=True)
class ModernDescription:
    group_id: str
    state: ModernState
    group_epoch: int
    assignment_epoch: int
    assignor: str
    members: tuple[DescribedModernMember, ...]
