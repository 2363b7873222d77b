"""The members of a share group, and their assignments: a pure state machine (KIP-932).

A heartbeat with epoch 0 joins, a heartbeat with -1 leaves. Partitions are assigned to another
member without a revocation: records have locks, partitions have none. Invariant: a member gets an
assignment together with the group's epoch at which the assignment was made. Source: Kafka's
ShareGroup and GroupMetadataManager.shareGroupHeartbeat.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from kio.schema.errors import ErrorCode

from bucketlog.consumers.share.assignment import assign
from bucketlog.consumers.share.settings import ShareMemberLimits
from bucketlog.log_format.model import TopicIdPartition
from bucketlog.metadata.fold import TopicState

JOIN, LEAVE = 0, -1


class ShareHeartbeat(NamedTuple):
    """A heartbeat of a member. `topics` and `rack` are None if they have not changed."""

    member_id: str
    epoch: int
    topics: tuple[str, ...] | None
    rack: str | None
    client_id: str
    client_host: str


class HeartbeatOutcome(NamedTuple):
    """The outcome of a heartbeat. `assignment` is None if the member knows it already."""

    error: ErrorCode
    message: str | None = None
    epoch: int = 0
    assignment: frozenset[TopicIdPartition] | None = None


@dataclass(slots=True)
class ShareMember:
    member_id: str
    topics: frozenset[str]
    rack: str
    client_id: str
    client_host: str
    deadline_ms: int
    epoch: int = 0
    previous_epoch: int = 0
    told: frozenset[TopicIdPartition] = frozenset()


TopicByName = Callable[[str], TopicState | None]


class ShareGroup:
    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.members: dict[str, ShareMember] = {}
        self.epoch = 0
        self._assignment: Mapping[str, frozenset[TopicIdPartition]] = {}
        self._seen: dict[str, tuple[bytes, int]] = {}
        """The subscribed topics that exist: id and number of partitions."""

    def heartbeat(
        self,
        request: ShareHeartbeat,
        topic: TopicByName,
        limits: ShareMemberLimits,
        *,
        now_ms: int,
    ) -> HeartbeatOutcome:
        member = self.members.get(request.member_id)
        if request.epoch == LEAVE:
            return self._leave(request.member_id, topic)
        if request.epoch == JOIN:
            if member is None and len(self.members) >= limits.members_max:
                return HeartbeatOutcome(
                    ErrorCode.group_max_size_reached,
                    "The share group has reached its maximum capacity of "
                    f"{limits.members_max} members.",
                )
        elif member is None:
            return HeartbeatOutcome(
                ErrorCode.unknown_member_id,
                f"Member {request.member_id} is not a member of group {self.group_id}.",
            )
        elif request.epoch > member.epoch or request.epoch < member.previous_epoch:
            return HeartbeatOutcome(
                ErrorCode.fenced_member_epoch,
                f"The share group member has a wrong epoch ({request.epoch}; it has "
                f"{member.epoch}). The member must abandon all its partitions and rejoin.",
            )
        is_changed = self._note(request, now_ms + limits.session_timeout_ms)
        if self._look_at(topic) or is_changed:
            self._assign(topic)
        member = self.members[request.member_id]
        target = self._assignment.get(request.member_id, frozenset())
        if member.epoch != self.epoch:
            member.previous_epoch, member.epoch = member.epoch, self.epoch
        is_full = request.epoch == JOIN or request.topics is not None
        is_told = target == member.told and not is_full
        member.told = target
        return HeartbeatOutcome(ErrorCode.none, None, member.epoch, None if is_told else target)

    def _note(self, request: ShareHeartbeat, deadline_ms: int) -> bool:
        """Keep what the member says. Returns whether its subscription is new."""
        member = self.members.get(request.member_id)
        if member is None:
            self.members[request.member_id] = ShareMember(
                request.member_id,
                frozenset(request.topics or ()),
                request.rack or "",
                request.client_id,
                request.client_host,
                deadline_ms,
            )
            return True
        member.deadline_ms = deadline_ms
        member.client_id, member.client_host = request.client_id, request.client_host
        member.rack = member.rack if request.rack is None else request.rack
        topics = member.topics if request.topics is None else frozenset(request.topics)
        is_changed, member.topics = topics != member.topics, topics
        return is_changed

    def _leave(self, member_id: str, topic: TopicByName) -> HeartbeatOutcome:
        if self.members.pop(member_id, None) is None:
            return HeartbeatOutcome(
                ErrorCode.unknown_member_id,
                f"Member {member_id} is not a member of group {self.group_id}.",
            )
        self._look_at(topic)
        self._assign(topic)
        return HeartbeatOutcome(ErrorCode.none, None, LEAVE)

    def expire(self, topic: TopicByName, *, now_ms: int) -> list[str]:
        """Remove the members whose sessions are over, and return their ids."""
        gone = [each.member_id for each in self.members.values() if each.deadline_ms <= now_ms]
        for member_id in gone:
            del self.members[member_id]
        if gone:
            self._look_at(topic)
            self._assign(topic)
        return gone

    def assigned(self, member_id: str) -> frozenset[TopicIdPartition]:
        return self._assignment.get(member_id, frozenset())

    def topics(self) -> Iterable[str]:
        """The subscribed topics."""
        return set().union(*(member.topics for member in self.members.values()))

    def _look_at(self, topic: TopicByName) -> bool:
        """Return whether the subscribed topics have changed since the last call."""
        found = ((name, topic(name)) for name in self.topics())
        seen = {name: (state.topic_id, state.partitions) for name, state in found if state}
        is_changed, self._seen = seen != self._seen, dict(seen)
        return is_changed

    def _assign(self, topic: TopicByName) -> None:
        self.epoch += 1
        partitions = {
            name: [TopicIdPartition(state.topic_id, number) for number in range(state.partitions)]
            for name in self._seen
            if (state := topic(name)) is not None
        }
        subscriptions = {member.member_id: member.topics for member in self.members.values()}
        self._assignment = assign(subscriptions, partitions, self._assignment)
