"""KnownTopics and clients of the consumer protocol, as naive models; groups to play them against.

A client reads the partitions that it was given until it has revoked them, or until its session must
have ended. What clients read is all that counts: no partition may have two readers.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from kio.schema.errors import ErrorCode

from bucketlog.consumers.group_forms import GroupForms, Heard
from bucketlog.consumers.modern_messages import (
    FoundTopic,
    GroupRefusal,
    HeartbeatAnswer,
    ModernHeartbeat,
)
from bucketlog.consumers.modern_settings import ModernSettings
from bucketlog.log_format.model import TopicId, TopicIdPartition


def topic_id(number: int) -> TopicId:
    return TopicId(number.to_bytes(16, "big"))


@dataclass
class ModelTopics:
    """KnownTopics by name, with their numbers of partitions."""

    partitions: dict[str, int]
    version: int = 0
    _ids: dict[str, TopicId] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in self.partitions:
            self._ids[name] = topic_id(len(self._ids) + 1)

    def find(self, name: str) -> FoundTopic | None:
        if name not in self.partitions:
            return None
        return FoundTopic(self._ids[name], self.partitions[name])

    def name(self, topic_id: TopicId) -> str | None:
        return next((name for name, each in self._ids.items() if each == topic_id), None)

    def names(self) -> list[str]:
        return list(self.partitions)

    def grow(self, name: str) -> None:
        self.partitions[name] += 1
        self.version += 1


SETTINGS = ModernSettings(assignment_interval_ms=0)


def forms(
    settings: ModernSettings = SETTINGS, configs: Mapping[str, str] = MappingProxyType({})
) -> GroupForms:
    """`configs`: of each group."""
    numbers = iter(range(1000))
    topics = ModelTopics({"ab": 2, "ac": 2, "b": 2})
    return GroupForms(settings, topics, lambda: f"u{next(numbers)}", lambda _: configs)


def joins(member_id: str = "m", **wanted: Any) -> ModernHeartbeat:
    given: dict[str, Any] = {
        "topics": frozenset({"ab"}),
        "rebalance_timeout_ms": 1_000,
        "owned": {},
    } | wanted
    return replace(ModernHeartbeat(member_id, 0), **given)


def refused(heard: Heard | GroupRefusal | HeartbeatAnswer) -> ErrorCode:
    answer = heard.answer if isinstance(heard, Heard) else heard
    assert isinstance(answer, GroupRefusal), answer
    return answer.error


@dataclass
class ModelConsumer:
    """A consumer as Kafka's clients are: it revokes before it takes, says what it has after each
    change, and starts anew when it is fenced. `heard_ms`: when it was last answered.
    `is_terse`: as librdkafka's, it says what it has once after a change, and repeats a request
    whose response is lost."""

    name: str
    topics: frozenset[str]
    instance: str | None = None
    member_id: str = ""
    epoch: int = 0
    reads: set[TopicIdPartition] = field(default_factory=set)
    given: set[TopicIdPartition] | None = None
    """What it is to have, and has not taken yet."""
    heard_ms: int = 0
    starts: int = 0
    says_all: bool = True
    is_terse: bool = False
    repeated: ModernHeartbeat | None = None
    reports: bool = False
    """It has finished a change, and no response to its report has come."""

    def restart(self) -> None:
        self.starts += 1
        self.member_id, self.epoch = f"{self.name}-{self.starts}", 0
        self.reads.clear()
        self.given = None
        self.says_all = True
        self.repeated = None
        self.reports = False

    def lose(self, request: ModernHeartbeat) -> None:
        """The response is lost."""
        if self.is_terse:
            self.repeated = request
        else:
            self.says_all = True

    def request(self, regex: str | None = None) -> ModernHeartbeat:
        if self.repeated is not None:
            return self.repeated
        if not self.member_id:
            self.restart()
        if not self.epoch:
            self.reads.clear()
        full = self.says_all or not self.epoch
        owned: dict[TopicId, frozenset[int]] = {}
        for each in self.reads:
            numbers = owned.get(each.topic_id, frozenset())
            owned[each.topic_id] = numbers | {each.partition}
        return ModernHeartbeat(
            self.member_id,
            self.epoch,
            self.name,
            "/host",
            instance_id=self.instance,
            rebalance_timeout_ms=60_000 if full else None,
            topics=self.topics if full else None,
            regex=regex if full else None,
            owned=owned if full or self.reports or not self.is_terse else None,
        )

    def hear(self, response: HeartbeatAnswer | GroupRefusal, now_ms: int) -> None:
        if isinstance(response, GroupRefusal):
            if response.error in (ErrorCode.fenced_member_epoch, ErrorCode.unknown_member_id):
                self.restart()
            return
        self.heard_ms = now_ms
        self.says_all = False
        self.repeated = None
        self.reports = False
        assert response.member_epoch >= self.epoch, "a member's epoch went back"
        self.epoch = response.member_epoch
        if response.assignment is not None:
            self.given = {
                TopicIdPartition(topic, number)
                for topic, numbers in response.assignment.items()
                for number in numbers
            }
            if self.reads <= self.given:
                self.take()

    def revoke(self) -> None:
        if self.given is not None and not self.reads <= self.given:
            self.reports = True
            self.reads &= self.given

    def take(self) -> None:
        """After `revoke`."""
        if self.given is not None:
            self.reports |= self.reads != self.given
            self.reads = set(self.given)
            self.given = None
