"""A group of the consumer protocol (KIP-848) as a pure state machine.

The coordinator of a group holds one `ModernGroup`, and passes requests of members and the time to
it. The group answers with values, at once. It owns the members, the epochs, the target assignment
and each member's partitions; it knows nothing of sockets, Redis or clocks. Members that still use
the classic protocol take part by `consumers.classic_members`.

    heartbeat          joins, stays, reports the member's partitions, gets new ones, leaves
    join, sync, ...    the classic protocol's requests
    regexes_due,
    resolve            regular expressions are resolved by the caller, in a thread
    expire             lets deadlines pass; to be called at `next_deadline_ms`

**Durability is the caller's**, as for `consumers.group`: no answer leaves before the revision that
it shows is stored. So a member's partition stays that member's for the next coordinator, also after
a crash, until the member has revoked it or is fenced.

When the last member of the consumer protocol leaves a group that still has classic members, the
group changes back: `converted` is the classic group, and this group has ended.

Files: modern_member, modern_members, modern_state (epochs, target), modern_heartbeat,
reconciliation, assignors, member_timers, classic_members, migration (both ways), topic_regex,
stored_modern_group, embedded_protocol.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kio.schema.errors import ErrorCode

from bucketlog.consumers import classic_members, modern_heartbeat
from bucketlog.consumers.group import Group
from bucketlog.consumers.group_messages import (
    CONSUMER_PROTOCOL_TYPE,
    UNKNOWN_MEMBER_ID,
    CallerIdentity,
    GroupResponse,
    JoinRequest,
    LeaveOutcome,
    LeavingMember,
    MemberLeaveResult,
    SyncRequest,
    Token,
)
from bucketlog.consumers.join import NewUuid
from bucketlog.consumers.migration import downgraded, may_downgrade
from bucketlog.consumers.modern_member import ModernMember, partition_numbers
from bucketlog.consumers.modern_members import MEMBER_OBJECT_BYTES
from bucketlog.consumers.modern_messages import (
    LEAVE_EPOCH,
    STATIC_LEAVE_EPOCH,
    DescribedModernMember,
    GroupRefusal,
    HeartbeatAnswer,
    KnownTopics,
    MemberType,
    ModernDescription,
    ModernHeartbeat,
    ModernState,
)
from bucketlog.consumers.modern_state import ModernGroupState, Resolution
from bucketlog.consumers.roster import text_bytes
from bucketlog.log_format.model import TopicId, TopicIdPartition


class ModernGroup:
    def __init__(self, group: ModernGroupState, topics: KnownTopics, new_uuid: NewUuid) -> None:
        self.machine = group
        self._topics = topics
        self._new_uuid = new_uuid
        self._answers: list[GroupResponse] = []
        self.converted: Group | None = None

    @property
    def group_id(self) -> str:
        return self.machine.group_id

    @property
    def state(self) -> ModernState:
        return self.machine.state

    @property
    def revision(self) -> int:
        return self.machine.revision

    @property
    def protocol_type(self) -> str:
        return CONSUMER_PROTOCOL_TYPE

    @property
    def is_empty(self) -> bool:
        return not self.machine.is_dead and not len(self.machine.members)

    @property
    def is_dead(self) -> bool:
        return self.machine.is_dead

    @property
    def empty_since_ms(self) -> int | None:
        return self.machine.empty_since_ms

    @property
    def next_deadline_ms(self) -> int | None:
        return self.machine.timers.next_ms

    @property
    def memory_bytes(self) -> int:
        return self.machine.memory_bytes

    # members

    def consumer_heartbeat(
        self, request: ModernHeartbeat, now_ms: int
    ) -> HeartbeatAnswer | GroupRefusal:
        if self.is_dead:
            return GroupRefusal(ErrorCode.coordinator_not_available, "The group is being deleted.")
        if request.member_epoch in (LEAVE_EPOCH, STATIC_LEAVE_EPOCH):
            return self._leave(request, now_ms)
        if not request.member_id:
            request = replace(request, member_id=self._new_uuid())
        return modern_heartbeat.heartbeat(self.machine, request, self._topics, now_ms)

    def _leave(self, request: ModernHeartbeat, now_ms: int) -> HeartbeatAnswer | GroupRefusal:
        members = self.machine.members
        if request.instance_id is None:
            member = members.get(request.member_id)
            if member is None:
                return modern_heartbeat.not_a_member(self.machine, request.member_id)
        else:
            member = members.static(request.instance_id)
            if member is None:
                return GroupRefusal(
                    ErrorCode.unknown_member_id, f"Instance id {request.instance_id} is unknown."
                )
            fenced = modern_heartbeat.fenced_instance(member, request.member_id)
            if fenced is not None:
                return fenced
            if request.member_epoch == STATIC_LEAVE_EPOCH:
                self.machine.put(replace(member, member_epoch=STATIC_LEAVE_EPOCH, revoking=None))
                return HeartbeatAnswer(member.member_id, STATIC_LEAVE_EPOCH)
        self.fence([member], now_ms)
        return HeartbeatAnswer(request.member_id, request.member_epoch)

    def fence(self, leaving: Sequence[ModernMember], now_ms: int) -> None:
        """Remove the members, and free their partitions. The group changes back to the classic
        protocol if nobody else uses the consumer protocol."""
        if not leaving:
            return
        gone = [member.member_id for member in leaving]
        if may_downgrade(self.machine, gone):
            self.converted = classic = downgraded(
                self.machine, gone, self._topics, self._new_uuid, now_ms
            )
            classic.machine.prepare(now_ms)
            self._answers += classic.machine.drain()
            return
        self.machine.remove(*gone)
        self.machine.bump(self._topics)

    def expire(self, now_ms: int) -> list[GroupResponse]:
        """Fence the members whose deadlines are not after `now_ms`."""
        due = self.machine.timers.due(now_ms)
        self.fence([self.machine.members[each] for each in due], now_ms)
        return self._drain()

    def _drain(self) -> list[GroupResponse]:
        due, self._answers = self._answers, []
        return due

    # members of the classic protocol

    def join(self, request: JoinRequest, token: Token, now_ms: int) -> list[GroupResponse]:
        joined = classic_members.join(self.machine, request, self._topics, self._new_uuid, now_ms)
        if joined.downgrade is not None:
            self.converted = joined.downgrade
        return [GroupResponse(token, joined.response)]

    def sync(self, request: SyncRequest, token: Token, now_ms: int) -> list[GroupResponse]:
        response = classic_members.sync(self.machine, request, self._topics, now_ms)
        return [GroupResponse(token, response)]

    def heartbeat(self, identity: CallerIdentity, now_ms: int) -> ErrorCode:
        return classic_members.heartbeat(self.machine, identity, now_ms)

    def leave(self, leaving: Sequence[LeavingMember], now_ms: int) -> LeaveOutcome:
        """Remove members that a LeaveGroup names. As in Kafka, members of either protocol may be
        removed by it."""
        found: dict[str, ModernMember] = {}
        results: list[MemberLeaveResult] = []
        for each in leaving:
            member = self._leaving(each)
            error = member if isinstance(member, ErrorCode) else ErrorCode.none
            if isinstance(member, ModernMember):
                found[member.member_id] = member
            results.append(MemberLeaveResult(each.member_id, each.instance_id, error))
        self.fence(list(found.values()), now_ms)
        return LeaveOutcome(ErrorCode.none, tuple(results), self._drain())

    def _leaving(self, each: LeavingMember) -> ModernMember | ErrorCode:
        members = self.machine.members
        if each.instance_id is None:
            return members.get(each.member_id) or ErrorCode.unknown_member_id
        member = members.static(each.instance_id)
        if member is None:
            return ErrorCode.unknown_member_id
        if each.member_id not in (UNKNOWN_MEMBER_ID, member.member_id):
            return ErrorCode.fenced_instance_id
        return member

    # memory

    def heartbeat_growth_bytes(self, request: ModernHeartbeat) -> int:
        """An upper bound of the memory that the request would add."""
        return self._growth_bytes(request.member_id, text_bytes(request.topics or ()))

    def join_growth_bytes(self, request: JoinRequest) -> int:
        """Return an upper bound of the memory that a join would add, as `heartbeat_growth_bytes`
        does. A subscription is kept as received, and as names."""
        size = sum(len(each.metadata) for each in request.protocols)
        return self._growth_bytes(request.member_id, 2 * size)

    def sync_growth_bytes(self, request: SyncRequest) -> int:
        return 0

    def _growth_bytes(self, member_id: str, subscription_bytes: int) -> int:
        member = self.machine.members.get(member_id)
        before = MEMBER_OBJECT_BYTES if member is None else -member.size_bytes
        return before + subscription_bytes

    # offsets

    def check_commit(
        self,
        identity: CallerIdentity,
        partitions: Sequence[TopicIdPartition],
        *,
        transactional: bool,
    ) -> ErrorCode:
        """Check whether these offsets may be committed. A member that is an epoch behind may commit
        offsets of partitions that it has had since then (KIP-1251)."""
        members, epoch = self.machine.members, identity.generation
        if self.is_dead:
            return ErrorCode.coordinator_not_available
        if epoch < 0 and not len(members):
            return ErrorCode.none
        anonymous = identity.member_id == UNKNOWN_MEMBER_ID and identity.instance_id is None
        if transactional and epoch == -1 and anonymous:
            return ErrorCode.none
        member = members.get(identity.member_id)
        if member is None:
            return ErrorCode.unknown_member_id
        if epoch == member.member_epoch:
            return ErrorCode.none
        if epoch < member.member_epoch and all(
            (since := member.assignment_epoch(each.topic_id, each.partition)) is not None
            and epoch >= since
            for each in partitions
        ):
            return ErrorCode.none
        return _stale(member)

    def check_fetch(self, member_id: str | None, epoch: int) -> ErrorCode:
        """Check whether the member may fetch offsets (OffsetFetch 9)."""
        if member_id is None and epoch < 0:
            return ErrorCode.none
        member = self.machine.members.get(member_id or "")
        if member is None:
            return ErrorCode.unknown_member_id
        return ErrorCode.none if epoch == member.member_epoch else _stale(member)

    def is_consumer_member(self, member_id: str) -> bool:
        member = self.machine.members.get(member_id)
        return member is not None and member.classic is None

    def check_offset_delete(self) -> ErrorCode:
        return ErrorCode.group_id_not_found if self.is_dead else ErrorCode.none

    def is_subscribed(self, topic: str) -> bool:
        return topic in self.machine.subscribed_names()

    # the group

    def delete(self) -> ErrorCode:
        """Delete the group. A deleted group is dead: the caller forgets it, and what is stored of
        it."""
        if self.is_dead:
            return ErrorCode.group_id_not_found
        if len(self.machine.members):
            return ErrorCode.non_empty_group
        self._end()
        return ErrorCode.none

    def resign(self) -> list[GroupResponse]:
        """End the group here, because another coordinator has it. No request waits in such a
        group."""
        self._end()
        return self._drain()

    def _end(self) -> None:
        self.machine.is_dead = True
        self.machine.timers.clear()
        self.machine.note_change()

    def describe(self) -> ModernDescription:
        group = self.machine
        members = tuple(
            DescribedModernMember(
                each.member_id,
                each.instance_id,
                each.rack_id,
                each.member_epoch,
                each.client_id,
                each.client_host,
                tuple(sorted(each.topics)),
                each.regex,
                _sorted(partition_numbers(each.owned)),
                _sorted(group.targets(each.member_id)),
                MemberType.CONSUMER if each.classic is None else MemberType.CLASSIC,
            )
            for each in group.members
        )
        return ModernDescription(
            group.group_id, self.state, group.epoch, group.target_epoch, group.assignor, members
        )

    # regular expressions

    def regexes_due(self, now_ms: int) -> tuple[str, ...]:
        """The regular expressions to be resolved now. They are resolved together, so that they
        cause one rebalance."""
        group, limits = self.machine, self.machine.settings
        wanted = group.members.regexes
        if not wanted or self.is_dead:
            return ()
        resolved = group.resolved.values()
        last_ms = max((each.at_ms for each in resolved), default=None)
        if last_ms is not None and now_ms <= last_ms + limits.regex_refresh_interval_ms_min:
            return ()
        is_due = (
            wanted.keys() != group.resolved.keys()
            or last_ms is None
            or any(each.version != self._topics.version for each in resolved)
            or now_ms > last_ms + limits.regex_refresh_interval_ms
        )
        return tuple(wanted) if is_due else ()

    def resolve(self, found: Mapping[str, frozenset[str]], version: int, now_ms: int) -> None:
        """The topics of the regular expressions, of those that existed at `version`. Where they are
        more than the group may have, the topics stay as they were."""
        group, changed = self.machine, False
        for regex, matched in found.items():
            if regex not in group.members.regexes:
                continue
            before = group.resolved.get(regex, Resolution(frozenset(), version, now_ms))
            growth = text_bytes(matched) - text_bytes(before.topics)
            is_too_much = group.size_bytes + growth > group.settings.classic.group_bytes_max
            names = before.topics if growth > 0 and is_too_much else matched
            changed |= before.topics != names
            group.resolved[regex] = Resolution(names, version, now_ms)
        if changed:
            group.bump(self._topics)


def _stale(member: ModernMember) -> ErrorCode:
    stale = member.classic is None
    return ErrorCode.stale_member_epoch if stale else ErrorCode.illegal_generation


def _sorted(partitions: Mapping[TopicId, frozenset[int]]) -> dict[TopicId, tuple[int, ...]]:
    return {topic: tuple(sorted(numbers)) for topic, numbers in sorted(partitions.items())}
