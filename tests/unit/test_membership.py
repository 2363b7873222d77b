"""Who leads what: rendezvous hashing, zones, and what a client's id says of its zone."""

import asyncio
from collections import Counter
from collections.abc import Callable, Generator
from typing import cast
from unittest.mock import patch
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bucketlog.log_format.errors import SequencerLostError, SequencerUnavailableError
from bucketlog.log_format.model import TopicId
from bucketlog.metadata.sequencer.client import Sequencer
from bucketlog.metadata.sequencer.live_brokers import (
    BrokerAddress,
    ListenerAddress,
    LiveBroker,
    NodeIdConflict,
    broker_address,
)
from bucketlog.metadata.sequencer.live_brokers import LiveBrokers as Answer
from bucketlog.stateless_broker.health import Health
from bucketlog.stateless_broker.membership.membership import (
    Membership,
    MembershipTimeouts,
)
from bucketlog.stateless_broker.membership.roles import by_preference, deal, zone_of_client
from bucketlog.stateless_broker.network.turns import SLICE_UNITS
from tests.rigs.broker_rig import until

TOPIC = TopicId(UUID(int=5).bytes)
PARTITIONS = 1000
NOW_MS = 1_700_000_000_000


def member(node_id: int, zone: str = "", *, serves: bool = True) -> LiveBroker:
    return LiveBroker(node_id, f"incarnation {node_id}", serves, BrokerAddress("h", 1, zone))


class Answers(Sequencer):
    """Its heartbeats are answered as the test says."""

    def __init__(self, answer: Answer | NodeIdConflict) -> None:
        self.answer = answer
        self.fails: Exception | None = None
        self.heard = 0
        self.health = Health()

    async def heartbeat(self, incarnation: str, **_: object) -> Answer | NodeIdConflict:
        self.heard += 1
        if self.fails is not None:
            raise self.fails
        return self.answer


async def membership_of(
    own: int, *members: LiveBroker, session_timeout_ms: int = 1000
) -> tuple[Membership, Answers]:
    sequencer = Answers(Answer(own, members, NOW_MS))
    membership = Membership(
        sequencer=sequencer,
        cluster_id="c",
        incarnation=f"incarnation {own}",
        node_id=None,
        address=BrokerAddress("h", 1, ""),
        timeouts=MembershipTimeouts(session_timeout_ms, session_timeout_ms, withdrawal_ms=0),
        health=sequencer.health,
    )
    await membership.join()
    return membership, sequencer


def leaders(membership: Membership, zone: str = "", listener: str = "PLAINTEXT") -> list[int]:
    return [one.node_id for one in dealt(membership.leaders(TOPIC, PARTITIONS, zone, listener))]


def dealt(steps: Generator[int, None, list[LiveBroker]]) -> list[LiveBroker]:
    """The result of all steps; their units are checked against the work of a slice."""
    while True:
        try:
            assert 0 < next(steps) <= SLICE_UNITS
        except StopIteration as end:
            return cast(list[LiveBroker], end.value)


def behind(node_id: int, *names: str) -> LiveBroker:
    """A broker with listeners of these names."""
    listeners = [ListenerAddress(name, f"{name}-{node_id}".lower(), 1) for name in names]
    return member(node_id)._replace(address=broker_address(listeners, ""))


async def test_clients_are_sent_to_brokers_with_their_listener() -> None:
    """One of a release without named listeners has the listener PLAINTEXT."""
    brokers = [behind(0, "OUT", "PLAINTEXT"), behind(1, "OUT"), member(2), behind(3, "PLAINTEXT")]
    membership, _ = await membership_of(0, *brokers)
    ids = {
        name: {one.node_id for one in membership.serving_on(name)} for name in ("OUT", "PLAINTEXT")
    }
    assert ids == {"OUT": {0, 1}, "PLAINTEXT": {0, 2, 3}}
    for name, wanted in ids.items():
        assert set(leaders(membership, "", name)) == wanted
        assert membership.controller(name).node_id in wanted
    assert membership.serving_on("GONE") == (membership.me,)
    assert membership.listed_on("OUT") == (brokers[0], brokers[1])
    assert membership.listed_on("GONE") == ()


def test_brokers_without_named_listeners_are_told_one_address() -> None:
    assert behind(0, "OUT", "PLAINTEXT").address[:3] == ("plaintext-0", 1, "")
    assert behind(0, "OUT", "IN").address[:3] == ("out-0", 1, "")


@given(st.integers(1, 40), st.integers(1, 300), st.binary(min_size=16, max_size=16))
def test_brokers_lead_equal_shares_of_a_topic(brokers: int, partitions: int, topic: bytes) -> None:
    members = [member(number) for number in range(brokers)]
    found = dealt(deal(members, topic, partitions))
    assert found == dealt(deal(members[::-1], topic, partitions))
    assert len(found) == partitions
    shares = Counter(one.node_id for one in found)
    each = [shares[number] for number in range(brokers)]
    assert max(each) - min(each) <= 1


def test_topics_with_few_partitions_are_shared_by_all_brokers() -> None:
    members = [member(number) for number in range(5)]
    topics = [number.to_bytes(16, "big") for number in range(1000)]
    shares = Counter(one.node_id for topic in topics for one in dealt(deal(members, topic, 1)))
    assert all(150 < share < 250 for share in shares.values()), shares


async def test_if_a_broker_leaves_mostly_its_own_partitions_move() -> None:
    five = [member(number) for number in range(5)]
    membership, sequencer = await membership_of(0, *five)
    before = leaders(membership)
    sequencer.answer = Answer(0, tuple(one for one in five if one.node_id != 3), NOW_MS)
    await membership.heartbeat()
    without = leaders(membership)
    moved = [old for old, new in zip(before, without, strict=True) if old != new]
    assert len(moved) < 1.1 * PARTITIONS / 5
    taken = Counter(new for old, new in zip(before, without, strict=True) if old == 3)
    assert len(taken) == 4, "all other brokers share them"
    sequencer.answer = Answer(0, tuple(five), NOW_MS)
    await membership.heartbeat()
    assert leaders(membership) == before


def test_more_partitions_move_few_of_those_that_are_there() -> None:
    members = [member(number) for number in range(5)]
    before = dealt(deal(members, TOPIC, 1000))
    after = dealt(deal(members, TOPIC, 1200))
    assert sum(old != new for old, new in zip(before, after, strict=False)) < 100


async def test_clients_are_sent_to_those_that_serve() -> None:
    """Not to one that still reads the log, or leaves; it is a member all the same."""
    others = [member(1, "z"), member(2, "z")]
    membership, sequencer = await membership_of(0, member(0), *others)
    assert set(leaders(membership, "z")) == {1, 2}
    late = member(1, "z", serves=False)
    sequencer.answer = Answer(0, (member(0), late, others[1]), NOW_MS)
    await membership.heartbeat()
    assert membership.serving == (member(0), others[1])
    assert set(leaders(membership, "y")) == {0, 2}
    assert set(leaders(membership, "z")) == {2}
    assert membership.controller() != late
    groups = {membership.coordinator_of(f"g{number}").node_id for number in range(PARTITIONS)}
    assert groups == {0, 2}
    assert membership.lives(late.incarnation)
    assert set(membership.listed_on("PLAINTEXT")) == {member(0), others[1]}
    withdrawn = late._replace(has_withdrawn=True)
    sequencer.answer = Answer(0, (member(0), withdrawn, others[1]), NOW_MS)
    await membership.heartbeat()
    assert membership.serving == (member(0), others[1])
    assert set(membership.listed_on("PLAINTEXT")) == {member(0), withdrawn, others[1]}
    sequencer.answer = Answer(0, (member(0), *others), NOW_MS)
    await membership.heartbeat()
    assert set(leaders(membership, "y")) == {0, 1, 2}


async def test_the_time_of_day_is_the_sequencers() -> None:
    membership, sequencer = await membership_of(0, member(0))
    assert NOW_MS <= membership.now_ms() < NOW_MS + 60_000
    sequencer.answer = Answer(0, (member(0),), NOW_MS + 10**9)
    await membership.heartbeat()
    assert NOW_MS + 10**9 <= membership.now_ms() < NOW_MS + 10**9 + 60_000


async def test_whoever_is_asked_before_it_serves_names_itself() -> None:
    membership, _ = await membership_of(0, member(0, serves=False), member(1, serves=False))
    assert membership.serving == (member(0, serves=False),)


async def test_all_brokers_name_the_same_leaders_and_controller() -> None:
    members = [member(number) for number in range(4)]
    known = [(await membership_of(own, *members))[0] for own in range(4)]
    assert len({tuple(leaders(one)) for one in known}) == 1
    assert len({one.controller() for one in known}) == 1


async def test_who_had_no_time_to_join_a_server_that_was_wiped_remains_a_member() -> None:
    """librdkafka waits forever for a coordinator that is missing from a Metadata response."""
    membership, sequencer = await membership_of(0, member(0), member(1), member(2))
    before = leaders(membership)
    sequencer.answer = Answer(0, (member(0),), NOW_MS, was_known=False)
    await membership.heartbeat()
    assert leaders(membership) == before
    sequencer.answer = Answer(0, (member(0), member(2)), NOW_MS)
    await membership.heartbeat()
    assert leaders(membership) == before
    successor = LiveBroker(1, "another incarnation", True, BrokerAddress("elsewhere", 2, ""))
    sequencer.answer = Answer(0, (member(0), successor, member(2)), NOW_MS)
    await membership.heartbeat()
    assert membership.members == (member(0), successor, member(2))
    sequencer.answer = Answer(0, (member(0), member(2)), NOW_MS)
    await membership.heartbeat()
    now = [one.node_id for one in membership.members]
    assert now == [0, 2], "somebody else had its node id"


async def test_an_incarnation_changes_no_leader() -> None:
    membership, sequencer = await membership_of(0, member(0), member(1))
    before = leaders(membership)
    restarted = LiveBroker(1, "another incarnation", True, BrokerAddress("elsewhere", 2, ""))
    sequencer.answer = Answer(0, (member(0), restarted), NOW_MS)
    await membership.heartbeat()
    assert leaders(membership) == before
    assert restarted in dealt(membership.leaders(TOPIC, PARTITIONS))


async def test_a_client_is_led_to_its_zone_where_somebody_stands_there() -> None:
    zones = ["a", "a", "b", "b", ""]
    membership, _ = await membership_of(0, *(member(at, zone) for at, zone in enumerate(zones)))
    assert set(leaders(membership, "a")) == {0, 1}
    assert set(leaders(membership, "b")) == {2, 3}
    assert set(leaders(membership, "elsewhere")) == {0, 1, 2, 3, 4}


async def test_a_line_for_a_task_has_each_broker_once() -> None:
    members = [member(number) for number in range(4)]
    known = [(await membership_of(own, *members))[0] for own in range(4)]
    for task in map(str, range(20)):
        assert sorted(one.place_in_line(task) for one in known) == [0, 1, 2, 3]
    first = Counter(
        next(own for own, one in enumerate(known) if not one.place_in_line(str(task)))
        for task in range(200)
    )
    assert len(first) == 4


async def test_all_brokers_name_one_coordinator_of_a_group_and_share_them() -> None:
    members = [member(number) for number in range(4)]
    known = [(await membership_of(own, *members))[0] for own in range(4)]
    groups = [f"group {number}" for number in range(400)]
    named = [[one.coordinator_of(group).node_id for group in groups] for one in known]
    assert len({tuple(each) for each in named}) == 1
    assert min(Counter(named[0]).values()) > 60
    fewer, _ = await membership_of(0, *members[:3])
    without = [fewer.coordinator_of(group).node_id for group in groups]
    assert {old for old, new in zip(named[0], without, strict=True) if old != new} == {3}


async def test_a_coordinator_moves_with_the_members() -> None:
    membership, sequencer = await membership_of(0, member(0), member(1))
    groups = [f"group {number}" for number in range(20)]
    assert {membership.coordinator_of(group).node_id for group in groups} == {0, 1}
    told: list[set[int]] = []
    membership.on_change(
        lambda: told.append({membership.coordinator_of(group).node_id for group in groups})
    )
    await membership.heartbeat()
    assert told == [], "nothing has changed"
    sequencer.answer = Answer(0, (member(0),), NOW_MS)
    await membership.heartbeat()
    assert told == [{0}]


async def test_a_broker_that_was_not_heard_for_a_session_gives_up_what_it_had() -> None:
    """Others may have had it meanwhile: it is told before it counts again."""
    membership, _ = await membership_of(0, member(0), session_timeout_ms=200)
    told: list[bool] = []
    membership.on_change(lambda: told.append(membership.is_session_live))
    assert membership.is_session_live
    await until(lambda: not membership.is_session_live)
    await membership.heartbeat()
    assert told == [False]
    assert membership.is_session_live
    await membership.heartbeat()
    assert told == [False]


@pytest.mark.parametrize(
    "error", [SequencerLostError("it is a replica"), SequencerUnavailableError("no answer")]
)
async def test_the_heartbeat_outlives_a_server_that_does_not_take_it(error: Exception) -> None:
    membership, sequencer = await membership_of(0, member(0))
    sequencer.fails = error
    beating = asyncio.create_task(membership.run(1))
    await until(lambda: sequencer.heard > 3)
    assert "heartbeat" in sequencer.health.report()
    sequencer.fails = None
    await until(lambda: "heartbeat" not in sequencer.health.report())
    beating.cancel()


async def test_who_is_not_a_member_comes_last() -> None:
    membership, sequencer = await membership_of(0, member(0), member(1), member(2))
    sequencer.answer = NodeIdConflict(0, "another", 5)
    assert await membership.heartbeat() == NodeIdConflict(0, "another", 5)
    assert membership.lives("incarnation 1")
    assert not membership.lives("another")


def test_preference_does_not_depend_on_the_order_given() -> None:
    members = [member(number) for number in range(6)]
    for what in (b"x", b"y", b"z"):
        assert by_preference(members, what) == by_preference(members[::-1], what)


@pytest.mark.parametrize(
    ("client_id", "zone"),
    [
        ("", ""),
        ("billing", ""),
        ("zone=eu-1a", "eu-1a"),
        ("billing,zone=eu-1a", "eu-1a"),
        ("zone=eu-1a,billing", "eu-1a"),
        ("billing;zone=eu-1a;more", "eu-1a"),
        ("billing zone=eu-1a more", "eu-1a"),
        ("zone=", ""),
        ("zone=a,zone=b", "a"),
        ("zone=a=b", "a=b"),
    ],
)
def test_the_zone_in_a_client_id(client_id: str, zone: str) -> None:
    assert zone_of_client(client_id) == zone


async def test_whoever_lost_its_node_id_is_told_that_it_has_no_roles_any_more() -> None:
    """It was silent for so long that another broker took the id: waiting members are let go."""
    membership, sequencer = await membership_of(0, member(0), session_timeout_ms=20)
    told: list[bool] = []
    membership.on_change(lambda: told.append(membership.is_session_live))
    sequencer.answer = NodeIdConflict(0, "another incarnation", 1)
    heartbeats = asyncio.create_task(membership.run(5))
    await until(lambda: bool(told))
    heartbeats.cancel()
    assert not told[0]


NEVER_MS = 10**9


async def test_a_heartbeat_is_sent_at_once_when_the_lifeline_begins_or_says_so() -> None:
    membership, sequencer = await membership_of(0, member(0))
    beating = asyncio.create_task(membership.run(NEVER_MS))

    async def hold(_: str, heard: Callable[[], None], __: Callable[[], bool]) -> None:
        heard()
        await asyncio.Event().wait()

    with patch.object(sequencer, "hold_lifeline", hold, create=True):
        before = sequencer.heard
        holding = asyncio.create_task(membership.lifeline.run())
        await until(lambda: sequencer.heard == before + 1)
    for task in (beating, holding):
        task.cancel()


async def test_whoever_misses_a_lifeline_asks_again_soon() -> None:
    membership, sequencer = await membership_of(0, member(0), member(1))
    sequencer.answer = Answer(0, (member(0), member(1)), NOW_MS, look_again_ms=1)
    await membership.heartbeat()
    before = sequencer.heard
    beating = asyncio.create_task(membership.run(NEVER_MS))
    await until(lambda: sequencer.heard >= before + 3)
    beating.cancel()


async def test_a_broker_that_was_left_behind_names_the_brokers_of_the_other_epoch() -> None:
    """The broker's Redis still answers its heartbeats, but no longer lists the others."""
    membership, sequencer = await membership_of(0, member(0), member(1), member(2, serves=False))
    moved: list[bool] = []
    membership.on_change(lambda: moved.append(membership.is_withdrawn))
    sequencer.answer = Answer(0, (member(0),), NOW_MS)
    await membership.heartbeat()
    assert membership.serving == (member(0),)
    ahead = {"incarnation 1", "incarnation 2", "a broker that was never a member"}
    for _ in range(2):
        membership.note_left_behind(ahead)
        await membership.heartbeat()
    assert membership.serving == (member(1),)
    assert membership.listed_on("PLAINTEXT") == (member(0), member(1))
    assert membership.coordinator_of("g") == member(1)
    assert membership.has_handed_over
    membership.note_joined()
    assert membership.serving == (member(0),)
    assert moved == [False, True, False]
