"""Groups under any order of inputs, with coordinators that die, and ones that do not know it.

A coordinator here is the state machine and the rule that its docstring asks of its caller: what
changed is stored, fenced, before an answer leaves. What clients were told is all that counts:

- generations only grow, and none has two leaders, two protocols or two assignments;
- nothing that was assigned in a generation belongs to two members;
- a request is answered once, and waits no longer than the longest phase may last;
- a generation that is over is refused everywhere;
- a stable group that is restored stays stable for as long as its members say they live.
"""

import itertools
from dataclasses import dataclass, field, replace

from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from kio.schema.errors import ErrorCode

from bucketlog.consumers.group import Group
from bucketlog.consumers.group_messages import (
    CallerIdentity,
    GroupResponse,
    GroupState,
    JoinResponse,
    LeavingMember,
    SyncRequest,
    SyncResponse,
    Token,
)
from bucketlog.consumers.snapshot import restore, snapshot
from tests.models.groups import SESSION_MS, SETTINGS, asks

LIMITS = replace(SETTINGS, members_max=4, new_member_join_timeout_ms=15_000)
REBALANCES_MS = (5_000, 20_000)
LONGEST_PHASE_MS = max(*REBALANCES_MS, LIMITS.initial_rebalance_delay_ms)
NAMES = ("a", "b", "c", "d", "e", "static-1", "static-2")
PREFERENCES = (("range",), ("range", "sticky"), ("sticky", "range"))

names = st.sampled_from(NAMES)
rarely = st.integers(0, 11).map(lambda number: number == 0)


@dataclass
class Store:
    """One group's place in the store: whoever holds the newest fence may write."""

    fence: int = 0
    blob: bytes | None = None

    def take_over(self) -> int:
        self.fence += 1
        return self.fence

    def save(self, fence: int, blob: bytes) -> bool:
        if fence == self.fence:
            self.blob = blob
        return fence == self.fence


@dataclass
class Coordinator:
    """`let_out` is what leaves for the clients; nothing does once the fence is lost."""

    store: Store
    group: Group
    fence: int

    def let_out(self, answers: list[GroupResponse]) -> list[GroupResponse]:
        alive = self.group.state is not GroupState.DEAD
        if alive and self.store.save(self.fence, snapshot(self.group)):
            return answers
        if alive:
            self.group.resign()
        return []


@dataclass
class Client:
    """What one process believes; a restarted one keeps nothing but its instance id."""

    instance: str | None
    member_id: str = ""
    generation: int = -1
    member_ids: list[str] = field(default_factory=list)

    @property
    def identity(self) -> CallerIdentity:
        return CallerIdentity(self.member_id, self.generation, self.instance)


class GroupWalk(RuleBasedStateMachine):
    @initialize()
    def start(self) -> None:
        self.now_ms = 1_000_000
        self.uuids, self.tokens, self.nonces = itertools.count(), itertools.count(), 0
        self.store = Store()
        self.live = self.open_group()
        self.stale: Coordinator | None = None
        self.clients = {name: Client(name if "static" in name else None) for name in NAMES}
        self.waiting: dict[Token, tuple[Client, int]] = {}
        self.generations: dict[int, tuple[str | None, str]] = {}
        self.wishes: dict[int, set[int]] = {}
        self.owners: dict[tuple[int, bytes], str] = {}
        self.assigned: dict[tuple[int, str], bytes] = {}

    def new_uuid(self) -> str:
        return str(next(self.uuids))

    def open_group(self) -> Coordinator:
        fence = self.store.take_over()
        if self.store.blob is None:
            return Coordinator(self.store, Group("g", LIMITS, self.new_uuid), fence)
        group = restore(self.store.blob, LIMITS, self.new_uuid, self.now_ms)
        assert snapshot(group) == self.store.blob
        return Coordinator(self.store, group, fence)

    def asked(self, client: Client, coordinator: Coordinator) -> Token:
        token = Token(next(self.tokens))
        if coordinator is self.live:  # a stale one's answers must not leave: nobody waits
            self.waiting[token] = client, self.now_ms
        return token

    def take(self, answers: list[GroupResponse]) -> None:
        for token, response in answers:
            client, _ = self.waiting.pop(token)  # it was asked, and is answered once
            if isinstance(response, JoinResponse):
                self.told_of_generation(client, response)
            else:
                self.told_of_assignment(client, response)

    def told_of_generation(self, client: Client, response: JoinResponse) -> None:
        if response.error in (ErrorCode.none, ErrorCode.member_id_required):
            client.member_id = response.member_id
            client.member_ids.append(response.member_id)
        if response.error is ErrorCode.none:
            assert response.generation >= max(self.generations, default=1), "an old generation"
            assert len(response.members) <= LIMITS.members_max + 2
            # a static leader that came back is the same leader
            leader = response.leader.rsplit("-", 1)[0 if "static" in response.leader else -1]
            told = (response.protocol_name, leader)
            assert self.generations.setdefault(response.generation, told) == told
            client.generation = response.generation
        elif response.error is not ErrorCode.rebalance_in_progress:
            client.generation = -1

    def told_of_assignment(self, client: Client, response: SyncResponse) -> None:
        if response.error is not ErrorCode.none or not response.assignment:
            return
        generation, owner = client.generation, client.instance or client.member_id
        nonce, for_member = response.assignment.decode().split("|")
        assert for_member == owner, "somebody else's assignment"
        assert self.assigned.setdefault((generation, owner), response.assignment) == (
            response.assignment
        )
        assert self.owners.setdefault((generation, response.assignment), owner) == owner
        self.wishes.setdefault(generation, set()).add(int(nonce))
        assert len(self.wishes[generation]) == 1, "two leaders were obeyed"

    def settle(self, coordinator: Coordinator, answers: list[GroupResponse], *, dies: bool) -> None:
        """Its answers leave, or it dies before anything is stored."""
        if dies and coordinator is self.live:
            self.take_over()
        else:
            self.take(coordinator.let_out(answers))

    def pick(self, stale: bool) -> Coordinator:
        return self.stale if stale and self.stale is not None else self.live

    @rule(
        name=names,
        protocols=st.sampled_from(PREFERENCES),
        metadata=st.sampled_from([b"1", b"2"]),
        rebalance_ms=st.sampled_from(REBALANCES_MS),
        forgets=rarely,
        two_steps=st.booleans(),
        stale=rarely,
        dies=rarely,
    )
    def join(
        self,
        name: str,
        protocols: tuple[str, ...],
        metadata: bytes,
        rebalance_ms: int,
        forgets: bool,
        two_steps: bool,
        stale: bool,
        dies: bool,
    ) -> None:
        client = self.clients[name]
        if forgets:
            client.member_id, client.generation = "", -1
        request = asks(
            name,
            client.member_id,
            [(each, metadata) for each in protocols],
            instance=client.instance,
            rebalance_ms=rebalance_ms,
            two_steps=two_steps,
        )
        coordinator = self.pick(stale)
        token = self.asked(client, coordinator)
        answers = coordinator.group.join(request, token, self.now_ms)
        self.settle(coordinator, answers, dies=dies)

    @rule(name=st.sampled_from(NAMES[-2:]), dies=rarely)
    def a_static_member_restarts(self, name: str, dies: bool) -> None:
        self.join(name, ("range",), b"1", REBALANCES_MS[1], True, False, False, dies)

    @rule(name=names, stale=rarely, dies=rarely)
    def sync(self, name: str, stale: bool, dies: bool) -> None:
        """Whoever syncs sends assignments; only the leader's may count."""
        client, coordinator = self.clients[name], self.pick(stale)
        self.nonces += 1
        assignments = tuple(
            (each.member_id, f"{self.nonces}|{each.instance_id or each.member_id}".encode())
            for each in coordinator.group.describe().members
        )
        request = SyncRequest(client.identity, assignments)
        before = coordinator.group.state
        leads = coordinator.group.machine.roster.leader_id == client.member_id
        token = self.asked(client, coordinator)
        answers = coordinator.group.sync(request, token, self.now_ms)
        if before is GroupState.COMPLETING_REBALANCE and not leads:
            assert coordinator.group.state is before
        self.settle(coordinator, answers, dies=dies)

    @rule(following=st.sets(names, min_size=2, max_size=4), rounds=st.integers(1, 4))
    def some_do_as_clients_do(self, following: set[str], rounds: int) -> None:
        """They join, sync and send heartbeats, three seconds apart: that is how groups settle."""
        for _ in range(rounds):
            for name in sorted(following):
                self.do_as_clients_do(name)
            self.time_passes(LIMITS.initial_rebalance_delay_ms, late=False)

    def do_as_clients_do(self, name: str) -> None:
        client, group = self.clients[name], self.live.group
        if any(each is client for each, _ in self.waiting.values()):
            return
        error = group.heartbeat(client.identity, self.now_ms)
        if error in (ErrorCode.unknown_member_id, ErrorCode.fenced_instance_id):
            client.member_id = ""
        if error is ErrorCode.none:
            self.sync(name, stale=False, dies=False)
        else:
            self.join(name, ("range",), b"1", REBALANCES_MS[1], False, False, False, False)

    @rule(name=names)
    def heartbeat(self, name: str) -> None:
        client, group = self.clients[name], self.live.group
        error = group.heartbeat(client.identity, self.now_ms)
        held = {each.member_id for each in group.describe().members}
        if client.member_id not in held or client.generation != group.generation:
            assert error not in (ErrorCode.none, ErrorCode.rebalance_in_progress)
        elif group.state is GroupState.PREPARING_REBALANCE:
            assert error is ErrorCode.rebalance_in_progress
        else:
            assert error is ErrorCode.none

    @rule(name=names, age=st.integers(1, 3))
    def speak_of_the_past(self, name: str, age: int) -> None:
        client, group = self.clients[name], self.live.group
        old = client.identity._replace(generation=group.generation - age)
        assert group.heartbeat(old, self.now_ms) is not ErrorCode.none
        if old.generation >= 0:
            assert group.check_commit(old, self.now_ms) is not ErrorCode.none
        for former in client.member_ids:
            if client.instance is not None and former != client.member_id:
                who = CallerIdentity(former, group.generation, client.instance)
                holder = group.machine.roster.static_member_id(client.instance)
                refused = group.check_commit(who, self.now_ms) is not ErrorCode.none
                assert refused or former == holder

    @rule(name=names, by_instance=st.booleans(), stale=rarely, dies=rarely)
    def leave(self, name: str, by_instance: bool, stale: bool, dies: bool) -> None:
        client, coordinator = self.clients[name], self.pick(stale)
        nameless = by_instance and client.instance is not None
        leaving = LeavingMember("" if nameless else client.member_id, client.instance)
        outcome = coordinator.group.leave([leaving], self.now_ms)
        self.settle(coordinator, outcome.answers, dies=dies)

    @rule(step_ms=st.sampled_from([1, 1_000, 3_000, 9_999, SESSION_MS, 25_000]), late=rarely)
    def time_passes(self, step_ms: int, late: bool) -> None:
        end = self.now_ms + step_ms
        if late:
            self.now_ms = end
        for _ in range(200):
            deadline = self.live.group.next_deadline_ms
            if deadline is None or deadline > end:
                break
            self.now_ms = max(self.now_ms, deadline)
            self.take(self.live.let_out(self.live.group.expire(self.now_ms)))
        else:
            raise AssertionError("deadlines do not end")
        self.now_ms = end

    @rule()
    def take_over(self) -> None:
        """Another coordinator opens the group; requests at the former one go with their
        connections, if it is dead, and if it is not."""
        self.stale = self.live
        self.waiting.clear()
        self.live = self.open_group()
        for client in self.clients.values():
            if client.generation > self.live.group.generation:
                raise AssertionError("a client was told of a generation that was not stored")

    @precondition(lambda self: self.live.group.state is GroupState.STABLE)
    @rule()
    def a_restored_group_goes_on(self) -> None:
        group = restore(snapshot(self.live.group), LIMITS, self.new_uuid, self.now_ms)
        members = group.describe().members
        now_ms = self.now_ms
        while now_ms < self.now_ms + 3 * LONGEST_PHASE_MS:
            now_ms += SESSION_MS - 1
            for each in members:
                who = CallerIdentity(each.member_id, group.generation, each.instance_id)
                assert group.heartbeat(who, now_ms) is ErrorCode.none
            group.expire(now_ms)
            assert group.describe().members == members
        assert group.generation == self.live.group.generation

    @invariant()
    def nobody_waits_too_long(self) -> None:
        if not hasattr(self, "live"):
            return
        machine = self.live.group.machine
        held = {each.join_token for each in machine.roster}
        held |= {each.sync_token for each in machine.roster}
        assert held - {None} == set(self.waiting), "a request was forgotten"
        for _, since_ms in self.waiting.values():
            assert self.now_ms - since_ms < LONGEST_PHASE_MS

    @invariant()
    def the_group_is_whole(self) -> None:
        if not hasattr(self, "live"):
            return
        machine, state = self.live.group.machine, self.live.group.state
        joins = [each for each in machine.roster if each.join_token is not None]
        syncs = [each for each in machine.roster if each.sync_token is not None]
        assert not joins or state is GroupState.PREPARING_REBALANCE
        assert not syncs or state is GroupState.COMPLETING_REBALANCE
        preparing = state is GroupState.PREPARING_REBALANCE
        assert (machine.join_deadline_ms is not None) is preparing
        assert (machine.sync_deadline_ms is not None) is bool(machine.pending_syncs)
        assert machine.pending_syncs <= {each.member_id for each in machine.roster}
        assert all(each.deadline_ms or each.is_waiting for each in machine.roster)
        leader = machine.roster.leader_id
        assert leader in {each.member_id for each in machine.roster} or not len(machine.roster)
        assert machine.roster.size_bytes == sum(each.size_bytes for each in machine.roster)
        assert len({each.instance_id for each in machine.roster} - {None}) == sum(
            each.instance_id is not None for each in machine.roster
        )


TestGroupWalk = GroupWalk.TestCase
TestGroupWalk.settings = hypothesis_settings(max_examples=150, stateful_step_count=60)
