"""The state of one group of the consumer protocol, and how the group's epochs grow.

Invariants: the group's epoch grows with every change of members or topics; the target assignment is
that of `target_epoch`, which follows the group's epoch; a member's epoch follows both. `revision`
grows with every change that must be stored before a response shows it.
Source: KIP-848, Kafka's ConsumerGroup and TargetAssignmentBuilder.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import NamedTuple

from bucketlog.consumers.assignor_input import (
    NOTHING,
    Assignment,
    Assignments,
    AssignorInput,
    MemberSpec,
)
from bucketlog.consumers.assignors import ASSIGNORS, DEFAULT_ASSIGNOR
from bucketlog.consumers.member_timers import Timer, Timers
from bucketlog.consumers.modern_member import MemberState, ModernMember
from bucketlog.consumers.modern_members import (
    MEMBER_OBJECT_BYTES,
    PARTITION_BYTES,
    ModernMembers,
)
from bucketlog.consumers.modern_messages import FoundTopic, KnownTopics, ModernState
from bucketlog.consumers.modern_settings import ModernSettings
from bucketlog.consumers.reconciliation import Target, reconcile
from bucketlog.consumers.roster import text_bytes
from bucketlog.log_format.model import TopicId


class Resolution(NamedTuple):
    """The topics that a regular expression matched, of those that existed at `version`."""

    topics: frozenset[str]
    version: int
    at_ms: int


@dataclass(slots=True)
class ModernGroupState:
    group_id: str
    settings: ModernSettings
    epoch: int = 0
    target_epoch: int = 0
    target: Assignments = field(default_factory=dict)
    members: ModernMembers = field(default_factory=ModernMembers)
    resolved: dict[str, Resolution] = field(default_factory=dict)
    topics_hash: int = 0
    revision: int = 0
    timers: Timers = field(default_factory=Timers)
    is_dead: bool = False
    empty_since_ms: int | None = None
    """Time since the group is empty, by the wall clock. The state machine does not know this clock:
    the caller that stores the group sets the time."""
    seen_version: int | None = None
    """The topics' version that `topics_hash` was compared with."""
    unconfirmed: set[str] = field(default_factory=set)
    """Members that may not know their partitions: no heartbeat has reported these since they
    changed, so a response may be lost."""
    restored: set[str] = field(default_factory=set)
    """Members that this coordinator has not answered yet: the last response of the coordinator
    before may be lost."""
    assigned_ms: int | None = None
    """Time when the target was last computed, by the clock of this coordinator."""

    @property
    def state(self) -> ModernState:
        if self.is_dead:
            return ModernState.DEAD
        if not len(self.members):
            return ModernState.EMPTY
        if self.epoch > self.target_epoch:
            return ModernState.ASSIGNING
        if all(member.is_reconciled_to(self.target_epoch) for member in self.members):
            return ModernState.STABLE
        return ModernState.RECONCILING

    @property
    def assignor(self) -> str:
        return self.members.preferred_assignor() or DEFAULT_ASSIGNOR

    @property
    def size_bytes(self) -> int:
        """Size of the members and their topics, without partitions."""
        resolved = sum(text_bytes(each.topics) for each in self.resolved.values())
        return self.members.size_bytes + resolved

    @property
    def memory_bytes(self) -> int:
        partitions = 2 * PARTITION_BYTES * self.members.partition_count
        return self.size_bytes + MEMBER_OBJECT_BYTES * len(self.members) + partitions

    def note_change(self) -> None:
        self.revision += 1

    # topics

    def subscribed_names(self) -> frozenset[str]:
        return self.members.names().union(*(each.topics for each in self.resolved.values()))

    def names_of(self, member: ModernMember) -> frozenset[str]:
        """An unresolved regular expression matches nothing."""
        resolved = self.resolved.get(member.regex)
        return member.topics if resolved is None else member.topics | resolved.topics

    def _found(self, topics: KnownTopics) -> dict[str, FoundTopic]:
        return {
            name: found
            for name in self.subscribed_names()
            if (found := topics.find(name)) is not None
        }

    def follow_topics(self, topics: KnownTopics) -> bool:
        """Note the subscribed topics. Returns whether they differ from those at the last call."""
        self.seen_version = topics.version
        before, self.topics_hash = self.topics_hash, _hash(self._found(topics))
        return before != self.topics_hash

    def bump(self, topics: KnownTopics | None) -> None:
        """Begin another epoch, because members or topics have changed."""
        if topics is not None:
            self.follow_topics(topics)
        self.epoch += 1
        self.note_change()

    # the target assignment

    def update_target(self, topics: KnownTopics, now_ms: int) -> None:
        """Compute the target of the group's epoch, unless the last computation was a moment ago."""
        interval_ms = self.settings.assignment_interval_ms
        if self.epoch <= self.target_epoch:
            return
        if self.assigned_ms is not None and now_ms < self.assigned_ms + interval_ms:
            return
        assignor = self.members.take_assignor() or DEFAULT_ASSIGNOR
        self.target = ASSIGNORS[assignor](self._assignor_input(topics))
        self.target_epoch = self.epoch
        self.assigned_ms = now_ms
        self.note_change()

    def _assignor_input(self, topics: KnownTopics) -> AssignorInput:
        found = self._found(topics)
        ids: dict[frozenset[str], frozenset[TopicId]] = {}
        specs: dict[str, MemberSpec] = {}
        for member in self.members:
            names = self.names_of(member)
            if names not in ids:
                ids[names] = frozenset(found[name].topic_id for name in names if name in found)
            target = self.target.get(member.member_id, NOTHING)
            specs[member.member_id] = MemberSpec(ids[names], target, member.instance_id)
        return AssignorInput(specs, dict(found.values()))

    # members

    def reconcile(
        self,
        member: ModernMember,
        topics: KnownTopics,
        reported: Assignment | None,
        now_ms: int,
        *,
        subscription_changed: bool,
    ) -> ModernMember:
        """The member on its way to the target. It is put back if it has changed."""
        if not subscription_changed and member.is_reconciled_to(self.target_epoch):
            return member
        subscribed = (topics.find(name) for name in self.names_of(member))
        target = Target(
            self.target_epoch,
            self.target.get(member.member_id, NOTHING),
            frozenset(found.topic_id for found in subscribed if found is not None),
            subscription_changed,
            reported,
        )
        updated = reconcile(member, target, self.members.is_free)
        if updated != member:
            self.put(updated)
            if updated.classic is None:
                self._time_revocation(updated, now_ms)
        return updated

    def _time_revocation(self, member: ModernMember, now_ms: int) -> None:
        if member.state is MemberState.UNREVOKED:
            deadline_ms = now_ms + member.rebalance_timeout_ms
            self.timers.set(member.member_id, Timer.REBALANCE, deadline_ms)
        else:
            self.timers.cancel(member.member_id, Timer.REBALANCE)

    def put(self, member: ModernMember) -> None:
        self.members.put(member)
        self.note_change()

    def replace_static(self, holder: ModernMember, member: ModernMember) -> None:
        """A static member is back under another member id: partitions and target stay."""
        self.members.remove(holder.member_id)
        self._forget(holder.member_id)
        if (target := self.target.pop(holder.member_id, None)) is not None:
            self.target[member.member_id] = target
        self.put(member)

    def remove(self, *member_ids: str) -> None:
        for member_id in member_ids:
            self.members.remove(member_id)
            self.target.pop(member_id, None)
            self._forget(member_id)
        self.drop_regexes()

    def _forget(self, member_id: str) -> None:
        self.timers.cancel(member_id)
        self.unconfirmed.discard(member_id)
        self.restored.discard(member_id)

    def drop_regexes(self) -> None:
        """Forget the topics of regular expressions that no member has."""
        for regex in self.resolved.keys() - self.members.regexes.keys():
            del self.resolved[regex]

    def expect(self, member: ModernMember, now_ms: int) -> None:
        """Begin the member's session timeout anew: the member must be heard of within it."""
        timeout_ms = self.settings.session_timeout_ms
        if member.classic is not None:
            timeout_ms = member.classic.session_timeout_ms
        self.timers.set(member.member_id, Timer.SESSION, now_ms + timeout_ms)

    def targets(self, member_id: str) -> Mapping[TopicId, frozenset[int]]:
        return self.target.get(member_id, NOTHING)


def _hash(found: Mapping[str, FoundTopic]) -> int:
    """Return the hash of the topics, 0 for no topics, as in a new group."""
    if not found:
        return 0
    digest = blake2b(digest_size=8)
    for name, topic in sorted(found.items()):
        digest.update(f"{name}:{topic.topic_id.hex()}:{topic.partitions};".encode())
    return int.from_bytes(digest.digest(), "big") >> 1
