"""Groups of the consumer protocol under any order of inputs, with coordinators that die.

- No partition has two readers, as long as the sessions of both live.
- Members' epochs and the group's only grow.
- When clients go on and nothing changes, every partition of a subscribed topic gets a reader, and
  readers of the same topics have equal shares, at most one apart.
- A coordinator that restores what is stored goes on: no member is fenced.
"""

import itertools
from dataclasses import replace

import ormsgpack
import pytest
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from bucketlog.consumers.modern_group import ModernGroup
from bucketlog.consumers.modern_messages import (
    LEAVE_EPOCH,
    STATIC_LEAVE_EPOCH,
    GroupRefusal,
    ModernState,
)
from bucketlog.consumers.modern_settings import ModernSettings
from bucketlog.consumers.modern_state import ModernGroupState
from bucketlog.consumers.stored_modern_group import modern_snapshot, restore_modern
from bucketlog.log_format.model import TopicIdPartition
from tests.models.modern_groups import ModelConsumer, ModelTopics

pytestmark = pytest.mark.long

SETTINGS = ModernSettings(session_timeout_ms=10_000, assignment_interval_ms=0)
NAMES = ("a", "b", "c", "d", "s1", "s2")
TERSE = ("c", "d", "s2")
TOPICS = ("x", "y")
ROUNDS = 40

names = st.sampled_from(NAMES)
rarely = st.integers(0, 9).map(lambda number: number == 0)
subscriptions = st.sets(st.sampled_from(TOPICS)).map(frozenset)


class ModernGroupWalk(RuleBasedStateMachine):
    @initialize(interval_ms=st.sampled_from([0, 1_000]))
    def start(self, interval_ms: int) -> None:
        self.settings = replace(SETTINGS, assignment_interval_ms=interval_ms)
        self.now_ms = 1_000_000
        self.ids = itertools.count()
        self.topics = ModelTopics({"x": 4, "y": 3})
        self.group = self.opened(ModernGroupState("g", self.settings))
        self.stored = modern_snapshot(self.group.machine)
        self.epoch = 0
        self.clients = {
            name: ModelConsumer(
                name,
                frozenset(TOPICS),
                name if name[0] == "s" else None,
                is_terse=name in TERSE,
            )
            for name in NAMES
        }

    def opened(self, state: ModernGroupState) -> ModernGroup:
        return ModernGroup(state, self.topics, lambda: f"u{next(self.ids)}")

    def store(self) -> None:
        assert self.group.machine.epoch >= self.epoch, "the group's epoch went back"
        self.epoch = self.group.machine.epoch
        assert self.group.machine.target_epoch <= self.epoch
        self.stored = modern_snapshot(self.group.machine)

    def take_over(self) -> None:
        """Another coordinator restores what was stored."""
        state = restore_modern(ormsgpack.unpackb(self.stored), lambda _: self.settings, self.now_ms)
        assert modern_snapshot(state) == self.stored
        self.group = self.opened(state)

    @rule(name=names, is_lost=rarely, dies=rarely, revokes=st.booleans(), takes=st.booleans())
    def heartbeat(self, name: str, is_lost: bool, dies: bool, revokes: bool, takes: bool) -> None:
        client = self.clients[name]
        request = client.request()
        response = self.group.consumer_heartbeat(request, self.now_ms)
        if dies:  # before anything was stored: the answer never leaves
            self.take_over()
            return
        self.store()
        if is_lost:
            client.lose(request)
            return
        client.hear(response, self.now_ms)
        if revokes:
            client.revoke()
            if takes:
                client.take()

    @rule(name=names)
    def finish_reconciling(self, name: str) -> None:
        self.clients[name].revoke()
        self.clients[name].take()

    @rule(name=names, topics=subscriptions)
    def subscribe(self, name: str, topics: frozenset[str]) -> None:
        self.clients[name].topics = topics
        self.clients[name].says_all = True

    @rule(name=names, for_a_while=st.booleans())
    def leave(self, name: str, for_a_while: bool) -> None:
        client = self.clients[name]
        if not client.member_id:
            return
        for_a_while &= client.instance is not None
        epoch = STATIC_LEAVE_EPOCH if for_a_while else LEAVE_EPOCH
        client.reads.clear()
        request = replace(client.request(), member_epoch=epoch)
        self.group.consumer_heartbeat(request, self.now_ms)
        self.store()
        client.restart()

    @rule(name=names)
    def crash(self, name: str) -> None:
        self.clients[name].restart()

    @rule(name=st.sampled_from(TOPICS))
    def a_topic_grows(self, name: str) -> None:
        if self.topics.partitions[name] < 8:
            self.topics.grow(name)

    @rule()
    def the_coordinator_dies(self) -> None:
        self.take_over()

    @rule(step_ms=st.sampled_from([1, 1_000, 5_000, 9_999, 10_000, 61_000]))
    def time_passes(self, step_ms: int) -> None:
        end = self.now_ms + step_ms
        for _ in range(100):
            deadline_ms = self.group.next_deadline_ms
            if deadline_ms is None or deadline_ms > end:
                break
            self.now_ms = max(self.now_ms, deadline_ms)
            assert self.group.expire(self.now_ms) == []
            self.store()
        else:
            raise AssertionError("deadlines do not end")
        self.now_ms = end

    @rule()
    def all_go_on(self) -> None:
        """Clients as they are: in the end every partition has one reader."""
        for _ in range(ROUNDS):
            for client in self.clients.values():
                self.turn(client)
            self.now_ms += 1_100
            self.group.expire(self.now_ms)
            self.store()
        for client in self.clients.values():
            client.revoke()
            client.take()
        assert self.group.state is ModernState.STABLE
        self.judge_shares()

    @rule(lost=names)
    def a_response_is_lost(self, lost: str) -> None:
        """The client of it learns all the same what it is to read."""
        self.clients[lost].restart()
        for _ in range(3):
            self.turn(self.clients[lost])
        for client in self.clients.values():
            if client.name != lost:
                self.turn(client)
        client = self.clients[lost]
        request = client.request()
        self.group.consumer_heartbeat(request, self.now_ms)
        self.store()
        client.lose(request)
        self.all_go_on()

    def turn(self, client: ModelConsumer) -> None:
        """What a response asks for is done just before the next heartbeat."""
        client.revoke()
        client.take()
        response = self.group.consumer_heartbeat(client.request(), self.now_ms)
        self.store()
        client.hear(response, self.now_ms)
        self.no_partition_has_two_readers()

    def judge_shares(self) -> None:
        wanted = {
            TopicIdPartition(found.topic_id, number)
            for name in frozenset().union(*(each.topics for each in self.clients.values()))
            if (found := self.topics.find(name)) is not None
            for number in range(found.partitions)
        }
        read = [each for client in self.clients.values() for each in client.reads]
        assert sorted(read) == sorted(wanted)
        if len({each.topics for each in self.clients.values()}) == 1:
            sizes = [len(each.reads) for each in self.clients.values()]
            assert max(sizes) - min(sizes) <= 1

    @rule()
    def a_restored_group_fences_nobody(self) -> None:
        self.all_go_on()
        self.take_over()
        for client in self.clients.values():
            response = self.group.consumer_heartbeat(client.request(), self.now_ms)
            assert not isinstance(response, GroupRefusal)
            known = client.reads
            client.hear(response, self.now_ms)
            assert client.reads == known, "a restored group told something else"
        self.store()

    @invariant()
    def no_partition_has_two_readers(self) -> None:
        if not hasattr(self, "clients"):
            return
        readers: dict[TopicIdPartition, str] = {}
        for client in self.clients.values():
            if self.now_ms >= client.heard_ms + self.settings.session_timeout_ms:
                continue  # its session has ended
            for each in client.reads:
                assert readers.setdefault(each, client.name) == client.name, (each, client.name)


TestModernGroupWalk = ModernGroupWalk.TestCase
TestModernGroupWalk.settings = hypothesis_settings(
    max_examples=100, stateful_step_count=40, deadline=None
)
