"""A consumer group: Apache Kafka's classic protocol as a pure state machine.

The coordinator of a group holds one `Group`, calls it with what members ask, and with the time;
the group answers with values. It owns who is a member, which generation there is and what it was
assigned; it knows nothing of sockets, Redis or clocks.

    join, sync         take a token and return the answers that became due, maybe this one's
    heartbeat,
    check_commit, ...  are answered at once, by an error code (`none`: continue)
    leave              is answered at once, and others' answers may become due
    expire             does what time does; to be called at `next_deadline_ms`

Every token is answered exactly once, at a deadline at the latest. An input that comes before its
deadline was noticed wins. `now_ms` is any clock that does not go back.

**Durability is the caller's.** When `revision` differs from the one stored, it stores
`snapshot(group)` (consumers/snapshot.py), fenced so that only one coordinator can, and only then
lets out answers that were made since. Answers that cannot be stored are never sent: `resign` and
answer NOT_COORDINATOR. So another coordinator that restores what is stored knows of every
generation, assignment and fenced member that anybody was notified of, and may continue from there.
An offset commit is let in by `check_commit` and has to be stored under the same fence.

Files: roster (members), rebalance (phases, deadlines), join, group_messages (values),
group_settings (limits), subscription (topics of consumers), snapshot.
"""

from collections.abc import Sequence

from kio.schema.errors import ErrorCode

from bucketlog.consumers.group_messages import (
    CONSUMER_PROTOCOL_TYPE,
    UNKNOWN_MEMBER_ID,
    CallerIdentity,
    DescribedMember,
    GroupDescription,
    GroupResponse,
    GroupState,
    JoinRequest,
    LeaveOutcome,
    LeavingMember,
    MemberLeaveResult,
    SyncRequest,
    SyncResponse,
    Token,
)
from bucketlog.consumers.group_settings import GroupSettings
from bucketlog.consumers.join import NewUuid, growth_bytes, join, supersede_sync
from bucketlog.consumers.rebalance import Rebalance, expect

_IN_GENERATION = (GroupState.COMPLETING_REBALANCE, GroupState.STABLE)


class Group:
    def __init__(
        self,
        group_id: str,
        settings: GroupSettings,
        new_uuid: NewUuid,
        machine: Rebalance | None = None,
    ) -> None:
        """`machine` is a restored group's; a new group is empty."""
        self.group_id = group_id
        self.machine = machine if machine is not None else Rebalance(settings)
        self._new_uuid = new_uuid

    @property
    def state(self) -> GroupState:
        return self.machine.state

    @property
    def is_empty(self) -> bool:
        return self.state is GroupState.EMPTY

    @property
    def is_dead(self) -> bool:
        return self.state is GroupState.DEAD

    @property
    def empty_since_ms(self) -> int | None:
        return self.machine.empty_since_ms

    @property
    def generation(self) -> int:
        return self.machine.generation

    @property
    def revision(self) -> int:
        return self.machine.revision

    @property
    def protocol_type(self) -> str | None:
        """The group's protocol type. None: the group never had members, and only keeps offsets (a
        simple group)."""
        return self.machine.protocol_type

    @property
    def next_deadline_ms(self) -> int | None:
        machine = self.machine
        deadlines = [machine.join_deadline_ms, machine.sync_deadline_ms]
        deadlines += [member.deadline_ms for member in machine.roster]
        deadlines += [pending.deadline_ms for pending in machine.pending_joins.values()]
        return min((each for each in deadlines if each is not None), default=None)

    @property
    def memory_bytes(self) -> int:
        """The memory of members, pending members, assignments and topics."""
        return self.machine.memory_bytes

    def join_growth_bytes(self, request: JoinRequest) -> int:
        """An upper bound of the memory that the request would add; at most 0 for a request that
        the group refuses."""
        return growth_bytes(self.machine, request)

    def sync_growth_bytes(self, request: SyncRequest) -> int:
        """The memory that the request would add. Only the leader's assignments need memory, in the
        sync phase, unless the group refuses the request."""
        machine = self.machine
        if (
            self._sync_refusal(request) is not None
            or machine.state is GroupState.STABLE
            or machine.roster.leader_id != request.identity.member_id
        ):
            return 0
        size = machine.assigned_bytes(dict(request.assignments))
        if size > machine.settings.group_bytes_max:
            return 0
        return size - sum(len(member.assignment) for member in machine.roster)

    def join(self, request: JoinRequest, token: Token, now_ms: int) -> list[GroupResponse]:
        join(self.machine, request, token, now_ms, self._new_uuid)
        return self.machine.drain()

    def sync(self, request: SyncRequest, token: Token, now_ms: int) -> list[GroupResponse]:
        machine = self.machine
        error = self._sync_refusal(request)
        if error is not None:
            machine.answer(token, SyncResponse(error))
            return machine.drain()
        member = machine.roster[request.identity.member_id]
        machine.synced(member.member_id)
        if machine.state is GroupState.STABLE:
            machine.answer(token, machine.assigned(member))
            return machine.drain()
        supersede_sync(machine, member, token)
        if machine.roster.leader_id == member.member_id:
            machine.assign(dict(request.assignments), now_ms)
        return machine.drain()

    def heartbeat(self, identity: CallerIdentity, now_ms: int) -> ErrorCode:
        error = self._refusal(identity)
        if error is not None:
            return error
        expect(self.machine.roster[identity.member_id], now_ms)
        preparing = self.state is GroupState.PREPARING_REBALANCE
        return ErrorCode.rebalance_in_progress if preparing else ErrorCode.none

    def leave(self, leaving: Sequence[LeavingMember], now_ms: int) -> LeaveOutcome:
        """Remove members. Each leaves or is refused by itself; one rebalance follows for all
        (KIP-345)."""
        if self.state is GroupState.DEAD:
            return LeaveOutcome(ErrorCode.coordinator_not_available, (), [])
        machine, members = self.machine, len(self.machine.roster)
        left = tuple(
            MemberLeaveResult(each.member_id, each.instance_id, self._leave_one(each))
            for each in leaving
        )
        if len(machine.roster) < members:
            machine.note_change()
            machine.prepare_or_complete(now_ms)
        else:
            machine.complete_if_all_joined(now_ms)
        return LeaveOutcome(ErrorCode.none, left, machine.drain())

    def check_commit(
        self, identity: CallerIdentity, now_ms: int, *, transactional: bool = False
    ) -> ErrorCode:
        """Check whether these offsets may be committed. A member's commit is a sign of life, too.
        An empty group takes commits of anybody without a generation."""
        if self.state is GroupState.DEAD:
            return ErrorCode.coordinator_not_available
        anonymous = identity.member_id == UNKNOWN_MEMBER_ID and identity.instance_id is None
        if identity.generation < 0 and (self.state is GroupState.EMPTY or anonymous):
            open_to_all = self.state is GroupState.EMPTY or transactional
            return ErrorCode.none if open_to_all else ErrorCode.unknown_member_id
        error = self._refusal(identity)
        if error is not None:
            return error
        if self.state is GroupState.COMPLETING_REBALANCE:
            return ErrorCode.none if transactional else ErrorCode.rebalance_in_progress
        if not transactional:
            expect(self.machine.roster[identity.member_id], now_ms)
        return ErrorCode.none

    def check_offset_delete(self) -> ErrorCode:
        """Check whether offsets may be deleted at all. If so, `is_subscribed` says which may
        not."""
        if self.state is GroupState.DEAD:
            return ErrorCode.group_id_not_found
        known = self.protocol_type == CONSUMER_PROTOCOL_TYPE
        free = self.state is GroupState.EMPTY or known
        return ErrorCode.none if free else ErrorCode.non_empty_group

    def outlive_offsets(self) -> None:
        """A group that has only kept offsets stays when they are deleted."""
        if self.revision == 0:
            self.machine.note_change()

    def is_subscribed(self, topic: str) -> bool:
        """GROUP_SUBSCRIBED_TO_TOPIC for OffsetDelete; a live subscription's offsets do not expire.
        Where subscriptions cannot be read, a consumer group subscribes to everything."""
        topics = self.machine.topics
        if topics is None:
            return self.protocol_type == CONSUMER_PROTOCOL_TYPE
        return topic in topics

    def delete(self) -> ErrorCode:
        """Delete the group. A deleted group is dead: the caller forgets it, and what is stored of
        it."""
        if self.state is GroupState.DEAD:
            return ErrorCode.group_id_not_found
        if self.state is not GroupState.EMPTY:
            return ErrorCode.non_empty_group
        self.machine.end(ErrorCode.coordinator_not_available)
        return ErrorCode.none

    def resign(self) -> list[GroupResponse]:
        """Send those who wait to the other coordinator that now has the group."""
        self.machine.end(ErrorCode.not_coordinator)
        return self.machine.drain()

    def expire(self, now_ms: int) -> list[GroupResponse]:
        """Everything whose deadline is not after `now_ms`, sessions first, each once: what that
        puts a new deadline on is for the next call."""
        machine = self.machine
        joins_due, syncs_due = machine.join_deadline_ms, machine.sync_deadline_ms
        ends = [(pending.deadline_ms, id_) for id_, pending in machine.pending_joins.items()]
        ends += [
            (each.deadline_ms, each.member_id)
            for each in machine.roster
            if each.deadline_ms is not None
        ]
        for deadline_ms, member_id in sorted(ends):
            if deadline_ms <= now_ms and self._is_due(member_id, deadline_ms):
                machine.expire_member(member_id, now_ms)
        if syncs_due is not None and syncs_due <= now_ms and machine.sync_deadline_ms == syncs_due:
            machine.expire_syncs(now_ms)
        if joins_due is not None and joins_due <= now_ms and machine.join_deadline_ms == joins_due:
            machine.expire_joins(now_ms)
        return machine.drain()

    def describe(self) -> GroupDescription:
        machine, stable = self.machine, self.state is GroupState.STABLE
        name = (machine.protocol_name or "") if stable else ""
        members = tuple(
            DescribedMember(
                each.member_id,
                each.instance_id,
                each.client_id,
                each.client_host,
                each.metadata(name) if stable else b"",
                each.assignment,
            )
            for each in machine.roster
        )
        return GroupDescription(
            self.group_id, self.state, machine.protocol_type or "", name, members
        )

    # checks

    def _refusal(self, identity: CallerIdentity) -> ErrorCode | None:
        if self.state is GroupState.DEAD:
            return ErrorCode.coordinator_not_available
        roster = self.machine.roster
        error = roster.refusal(identity)
        if error is not None:
            return error
        known = roster[identity.member_id].former_generation
        if identity.generation != (self.generation if known is None else known):
            return ErrorCode.illegal_generation
        return None

    def _sync_refusal(self, request: SyncRequest) -> ErrorCode | None:
        error = self._refusal(request.identity)
        if error is not None:
            return error
        machine = self.machine
        if request.protocol_type not in (None, machine.protocol_type) or (
            request.protocol_name not in (None, machine.protocol_name)
        ):
            return ErrorCode.inconsistent_group_protocol
        return None if self.state in _IN_GENERATION else ErrorCode.rebalance_in_progress

    def _is_due(self, member_id: str, deadline_ms: int) -> bool:
        """Return whether the member is still there with that deadline, after earlier ones have
        expired."""
        machine = self.machine
        if member_id in machine.pending_joins:
            return True
        return member_id in machine.roster and machine.roster[member_id].deadline_ms == deadline_ms

    def _leave_one(self, leaving: LeavingMember) -> ErrorCode:
        machine = self.machine
        member_id = leaving.member_id
        if member_id in machine.pending_joins:
            del machine.pending_joins[member_id]
            return ErrorCode.none
        if member_id == UNKNOWN_MEMBER_ID and leaving.instance_id is not None:
            member_id = machine.roster.static_member_id(leaving.instance_id) or member_id
        error = machine.roster.refusal(
            CallerIdentity(member_id, self.generation, leaving.instance_id)
        )
        if error is not None:
            return error
        machine.remove(member_id)
        return ErrorCode.none
