"""The way of a group from one generation to the next: join phase, sync phase, and their deadlines.

States and the ways between them (Kafka's ClassicGroupState; Dead is reached from everywhere):

    Empty ──prepare──▶ PreparingRebalance ──all joined, or deadline──▶ CompletingRebalance
      ▲                  │   ▲   ▲                                        │        │
      └──nobody is left──┘   │   └──join, leave, loss, deadline───────────┘        │ leader's sync
                             └──join, leave, loss, deadline────── Stable ◀─────────┘

Invariants: `generation` only grows, by one on every way out of PreparingRebalance. A generation has
one protocol, one leader and one set of assignments, set once, by its leader's sync. Joins wait only
in PreparingRebalance and syncs only in CompletingRebalance, each until a deadline at the latest.
`revision` grows with every change that another coordinator has to know before anybody gets an
answer.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from kio.schema.errors import ErrorCode

from bucketlog.consumers.group_messages import (
    CONSUMER_PROTOCOL_TYPE,
    UNKNOWN_MEMBER_ID,
    GroupResponse,
    GroupState,
    JoinResponse,
    Response,
    SyncResponse,
    Token,
)
from bucketlog.consumers.group_settings import GroupSettings
from bucketlog.consumers.roster import (
    ENTRY_BYTES,
    PENDING_OBJECT_BYTES,
    GroupMember,
    Roster,
    object_bytes,
    text_bytes,
)
from bucketlog.consumers.subscription import SubscribedTopics
from bucketlog.log_format.errors import InvalidDataError


class PendingMember(NamedTuple):
    """Member that has got its id, and must join with it (KIP-394)."""

    session_timeout_ms: int
    deadline_ms: int


class InitialDelay(NamedTuple):
    """The wait of a group that was empty for more members (KIP-134). `remaining_ms` may still be
    waited after this `delay_ms`; `somebody_came` if a member came during it."""

    delay_ms: int
    remaining_ms: int
    somebody_came: bool


@dataclass(slots=True)
class Rebalance:
    settings: GroupSettings
    state: GroupState = GroupState.EMPTY
    generation: int = 0
    protocol_type: str | None = None
    protocol_name: str | None = None
    revision: int = 0
    roster: Roster = field(default_factory=Roster)
    pending_joins: dict[str, PendingMember] = field(default_factory=dict)
    pending_syncs: set[str] = field(default_factory=set)
    initial: InitialDelay | None = None
    join_deadline_ms: int | None = None
    sync_deadline_ms: int | None = None
    topics: SubscribedTopics | None = None
    empty_since_ms: int | None = None
    """Time since the group is empty, by the wall clock. The state machine does not know this clock:
    the caller that stores the group sets the time."""
    _answers: list[GroupResponse] = field(default_factory=list)

    @property
    def size_bytes(self) -> int:
        pending = sum(ENTRY_BYTES + text_bytes((each,)) for each in self.pending_joins)
        return self.roster.size_bytes + pending

    @property
    def memory_bytes(self) -> int:
        """Size in the memory of the process: also assignments, objects and topics."""
        members = sum(len(each.assignment) + object_bytes(each.protocols) for each in self.roster)
        pending = PENDING_OBJECT_BYTES * len(self.pending_joins)
        topics = self.topics.size_bytes if self.topics is not None else 0
        return self.size_bytes + members + pending + topics

    # answers

    def drain(self) -> list[GroupResponse]:
        due, self._answers = self._answers, []
        return due

    def answer(self, token: Token, response: Response) -> None:
        self._answers.append(GroupResponse(token, response))

    def answer_join(self, member: GroupMember, response: JoinResponse) -> None:
        if member.join_token is not None:
            self.answer(member.join_token, response)
            member.join_token = None

    def answer_sync(self, member: GroupMember, response: SyncResponse) -> None:
        if member.sync_token is not None:
            self.answer(member.sync_token, response)
            member.sync_token = None

    def refuse(self, member: GroupMember, error: ErrorCode, member_id: str) -> None:
        """Whatever it waits for is over."""
        self.answer_join(member, JoinResponse(error, member_id))
        self.answer_sync(member, SyncResponse(error))

    def joined(self, member: GroupMember) -> JoinResponse:
        """Response that tells a member about this generation."""
        leads = member.member_id == self.roster.leader_id
        return JoinResponse(
            ErrorCode.none,
            member.member_id,
            self.generation,
            self.protocol_type,
            self.protocol_name,
            self.roster.leader_id or UNKNOWN_MEMBER_ID,
            members=self.roster.listing(self.protocol_name or "") if leads else (),
        )

    def assigned(self, member: GroupMember) -> SyncResponse:
        return SyncResponse(
            ErrorCode.none, member.assignment, self.protocol_type, self.protocol_name
        )

    # the join phase

    @property
    def all_joined(self) -> bool:
        return len(self.roster) == self.roster.joins_waiting and not self.pending_joins

    def prepare_or_complete(self, now_ms: int) -> None:
        if self.state is GroupState.PREPARING_REBALANCE:
            self.complete_if_all_joined(now_ms)
        else:
            self.prepare(now_ms)

    def prepare(self, now_ms: int) -> None:
        if self.state is GroupState.COMPLETING_REBALANCE:
            for member in self.roster:
                member.assignment = b""
                waited = member.sync_token is not None
                self.answer_sync(member, SyncResponse(ErrorCode.rebalance_in_progress))
                if waited:
                    expect(member, now_ms)
        self.pending_syncs.clear()
        self.sync_deadline_ms = None
        first = self.state is GroupState.EMPTY
        self._move_to(GroupState.PREPARING_REBALANCE)
        if first:
            self.start_initial_delay(now_ms)
        elif self.all_joined:
            self.complete(now_ms)
        else:
            self.join_deadline_ms = now_ms + self.roster.rebalance_timeout_ms

    def start_initial_delay(self, now_ms: int) -> None:
        delay_ms = self.settings.initial_rebalance_delay_ms
        remaining_ms = max(self.roster.rebalance_timeout_ms - delay_ms, 0)
        self.initial = InitialDelay(delay_ms, remaining_ms, somebody_came=False)
        self.join_deadline_ms = now_ms + delay_ms

    def complete_if_all_joined(self, now_ms: int) -> None:
        if (
            self.state is GroupState.PREPARING_REBALANCE
            and self.initial is None
            and self.all_joined
        ):
            self.complete(now_ms)

    def expire_joins(self, now_ms: int) -> None:
        """The join deadline has come."""
        initial = self.initial
        if initial is None or not initial.somebody_came or not initial.remaining_ms:
            self.complete(now_ms)
            return
        delay_ms = min(self.settings.initial_rebalance_delay_ms, initial.remaining_ms)
        remaining_ms = max(initial.remaining_ms - initial.delay_ms, 0)
        self.initial = InitialDelay(delay_ms, remaining_ms, somebody_came=False)
        self.join_deadline_ms = now_ms + delay_ms

    def complete(self, now_ms: int) -> None:
        """The join phase is over: who did not rejoin and is not static is out."""
        for member in list(self.roster):
            if member.join_token is None and member.instance_id is None:
                self.roster.remove(member.member_id)
        if len(self.roster) and not self.roster.elect_leader():
            # only static members, none of them there: until their sessions end, or one comes back
            self.initial = None
            self.join_deadline_ms = now_ms + self.roster.rebalance_timeout_ms
            return
        self.initial, self.join_deadline_ms = None, None
        self.generation += 1
        self.protocol_name = self.roster.vote() if len(self.roster) else None
        self.topics = self.find_topics()
        if not len(self.roster):
            self._move_to(GroupState.EMPTY)
            return
        self._move_to(GroupState.COMPLETING_REBALANCE)
        for member in self.roster:
            self.answer_join(member, self.joined(member))
            member.is_new, member.former_generation = False, None
            expect(member, now_ms)
        self.expect_syncs(now_ms)

    # the sync phase

    def expect_syncs(self, now_ms: int) -> None:
        self.pending_syncs = {member.member_id for member in self.roster}
        self.sync_deadline_ms = now_ms + self.roster.rebalance_timeout_ms

    def synced(self, member_id: str) -> None:
        self.pending_syncs.discard(member_id)
        if not self.pending_syncs:
            self.sync_deadline_ms = None

    def assigned_bytes(self, assignments: Mapping[str, bytes]) -> int:
        """Size of the assignments of members; others are ignored."""
        return sum(len(assignments.get(member.member_id, b"")) for member in self.roster)

    def assign(self, assignments: Mapping[str, bytes], now_ms: int) -> None:
        """The leader's word: the group is stable. Members it left out have nothing to do."""
        if self.assigned_bytes(assignments) > self.settings.group_bytes_max:
            for member in self.roster:
                self.answer_sync(member, SyncResponse(ErrorCode.unknown_server_error))
                expect(member, now_ms)
            self.prepare(now_ms)
            return
        for member in self.roster:
            member.assignment = assignments.get(member.member_id, b"")
            if member.sync_token is not None:
                self.answer_sync(member, self.assigned(member))
                expect(member, now_ms)
        self._move_to(GroupState.STABLE)

    def expire_syncs(self, now_ms: int) -> None:
        """The sync deadline has come: who has not asked for its assignment is out."""
        for member_id in [each.member_id for each in self.roster]:
            if member_id in self.pending_syncs:
                self.roster.remove(member_id)
        self.prepare(now_ms)

    # membership

    def remove(self, member_id: str) -> None:
        """Out, and told so if it waits. The caller lets the rebalance continue."""
        member = self.roster.remove(member_id)
        self.pending_syncs.discard(member_id)
        self.refuse(member, ErrorCode.unknown_member_id, UNKNOWN_MEMBER_ID)

    def expire_member(self, member_id: str, now_ms: int) -> None:
        """Remove a member whose session has ended, or that never joined with its id."""
        if self.pending_joins.pop(member_id, None) is not None:
            self.complete_if_all_joined(now_ms)
            return
        member = self.roster[member_id]
        if member.is_waiting:
            member.deadline_ms = None
            return
        self.remove(member_id)
        self.prepare_or_complete(now_ms)

    def note_change(self) -> None:
        """Note a change that another coordinator has to know before anybody gets an answer."""
        self.revision += 1

    def end(self, error: ErrorCode) -> None:
        """The group is dead to this coordinator; everybody who waits gets `error`."""
        for member in self.roster:
            self.refuse(member, error, member.member_id)
            member.deadline_ms = None
        self.pending_joins.clear()
        self.pending_syncs.clear()
        self.initial, self.join_deadline_ms, self.sync_deadline_ms = None, None, None
        self._move_to(GroupState.DEAD)

    def find_topics(self) -> SubscribedTopics | None:
        """Return the topics that the members subscribe to; None if they are not known."""
        if self.protocol_type != CONSUMER_PROTOCOL_TYPE:
            return None
        if not len(self.roster):
            return SubscribedTopics((), topics_max=0)
        if self.protocol_name is None or not self.roster.all_support(self.protocol_name):
            return None
        name = self.protocol_name
        try:
            return SubscribedTopics(
                [member.metadata(name) for member in self.roster],
                topics_max=self.settings.subscribed_topics_max,
            )
        except InvalidDataError:
            return None

    def _move_to(self, state: GroupState) -> None:
        if self.state not in _BEFORE[state]:
            raise ValueError(f"no group goes from {self.state} to {state}")
        self.state = state
        self.note_change()


def expect(member: GroupMember, now_ms: int) -> None:
    """Begin the member's session timeout anew: the member must be heard of within it."""
    member.deadline_ms = now_ms + member.session_timeout_ms


_BEFORE: dict[GroupState, frozenset[GroupState]] = {
    GroupState.EMPTY: frozenset({GroupState.PREPARING_REBALANCE}),
    GroupState.PREPARING_REBALANCE: frozenset(
        {GroupState.EMPTY, GroupState.COMPLETING_REBALANCE, GroupState.STABLE}
    ),
    GroupState.COMPLETING_REBALANCE: frozenset({GroupState.PREPARING_REBALANCE}),
    GroupState.STABLE: frozenset({GroupState.COMPLETING_REBALANCE}),
    GroupState.DEAD: frozenset(GroupState),
}
