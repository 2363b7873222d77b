"""Brokers find each other, and where an epoch stands, on a real server."""

import ormsgpack
import pytest

from bucketlog.log_format.model import WriterId
from bucketlog.metadata.sequencer.client import Sequencer
from bucketlog.metadata.sequencer.live_brokers import (
    BrokerAddress,
    ListenerAddress,
    LiveBroker,
    LiveBrokers,
    NodeIdConflict,
    broker_address,
)
from bucketlog.metadata.sequencer.requests import OverdueReason, OverdueWriter, Position
from tests.servers.sequencing import Sequencing, plain

TIMEOUT_MS = 100
ROLE_TIMEOUT_MS = 40


def address(incarnation: str) -> BrokerAddress:
    return BrokerAddress(f"{incarnation}.example", 9092, "zone-é")


def members(node_id: int, **brokers: int) -> LiveBrokers:
    """The answer to `node_id`; incarnations and their node ids."""
    found = sorted((node, name) for name, node in brokers.items())
    return LiveBrokers(
        node_id, tuple(LiveBroker(node, name, True, address(name)) for node, name in found), 0
    )


async def beat(
    fresh: Sequencing,
    incarnation: str,
    node: int | None = None,
    writer: WriterId | None = None,
    *,
    serves: bool = True,
    has_withdrawn: bool = False,
    at: BrokerAddress | None = None,
) -> LiveBrokers | NodeIdConflict:
    answer = await fresh.sequencer.heartbeat(
        incarnation,
        node_id=node,
        address=at or address(incarnation),
        writer=writer,
        session_timeout_ms=TIMEOUT_MS,
        role_timeout_ms=ROLE_TIMEOUT_MS,
        serves=serves,
        has_withdrawn=has_withdrawn,
    )
    if isinstance(answer, NodeIdConflict):
        return answer
    assert answer.now_ms == fresh.now_ms
    return answer._replace(now_ms=0, was_known=True)


async def test_brokers_find_each_other_before_there_is_an_epoch(fresh: Sequencing) -> None:
    assert await beat(fresh, "first", 3) == members(3, first=3)
    assert await beat(fresh, "second", 10) == members(10, first=3, second=10)
    assert await beat(fresh, "third", 1) == members(1, first=3, second=10, third=1)
    assert await beat(fresh, "first", 3) == members(3, first=3, second=10, third=1)


async def test_listeners_are_told_beside_the_address_that_former_releases_read(
    fresh: Sequencing,
) -> None:
    """A broker of a release without listeners expects three parts of `address`, and writes no
    `listeners`."""
    own = broker_address([ListenerAddress("OUT", "é", 1), ListenerAddress("IN", "h", 2)], "z")
    await beat(fresh, "new", 0, at=own)
    packed = await fresh.redis.hget(fresh.key("brokers"), "0")
    assert isinstance(packed, bytes)
    record = ormsgpack.unpackb(packed)
    assert record["address"] == ["é", 1, "z"]
    former = {**record, "incarnation": "former", "address": ["old", 3, ""]}
    del former["listeners"]
    await fresh.redis.hset(fresh.key("brokers"), "1", ormsgpack.packb(former))
    answer = await beat(fresh, "new", 0, at=own)
    assert isinstance(answer, LiveBrokers)
    assert [one.address for one in answer.members] == [own, BrokerAddress("old", 3, "")]
    assert own.of("IN") == ListenerAddress("IN", "h", 2)
    assert own.of("PLAINTEXT") is None
    assert answer.members[1].address.of("PLAINTEXT") == ListenerAddress("PLAINTEXT", "old", 3)


async def test_whether_a_broker_serves_is_told_to_all(fresh: Sequencing) -> None:
    def serving(answer: LiveBrokers | NodeIdConflict) -> list[str]:
        assert isinstance(answer, LiveBrokers)
        return [member.incarnation for member in answer.members if member.serves]

    assert serving(await beat(fresh, "a", 0, serves=False)) == []
    assert serving(await beat(fresh, "b", 1)) == ["b"]
    assert serving(await beat(fresh, "a", 0)) == ["a", "b"]
    assert serving(await beat(fresh, "b", 1, serves=False)) == ["a"]
    fresh.now_ms += ROLE_TIMEOUT_MS - 1
    assert serving(await beat(fresh, "b", 1)) == ["a", "b"]
    fresh.now_ms += 1
    silent = await beat(fresh, "b", 1)
    assert serving(silent) == ["b"]
    assert isinstance(silent, LiveBrokers)
    assert len(silent.members) == 2


async def test_whether_a_broker_has_withdrawn_is_told_to_all_while_it_is_heard(
    fresh: Sequencing,
) -> None:
    def states(answer: LiveBrokers | NodeIdConflict) -> list[tuple[bool, bool]]:
        assert isinstance(answer, LiveBrokers)
        return [(member.serves, member.has_withdrawn) for member in answer.members]

    await beat(fresh, "a", 0, serves=False, has_withdrawn=True)
    assert states(await beat(fresh, "b", 1)) == [(False, True), (True, False)]
    fresh.now_ms += ROLE_TIMEOUT_MS
    assert states(await beat(fresh, "b", 1)) == [(False, False), (True, False)]
    await beat(fresh, "a", 0)
    assert states(await beat(fresh, "b", 1)) == [(True, False), (True, False)]


async def test_the_lowest_free_node_id_is_given_and_kept(fresh: Sequencing) -> None:
    assert await beat(fresh, "a", 1) == members(1, a=1)
    assert await beat(fresh, "b") == members(0, a=1, b=0)
    assert await beat(fresh, "c") == members(2, a=1, b=0, c=2)
    await fresh.sequencer.leave(0, "b")
    assert await beat(fresh, "c") == members(2, a=1, c=2)
    assert await beat(fresh, "d") == members(0, a=1, c=2, d=0)


async def test_an_incarnation_has_one_node_id(fresh: Sequencing) -> None:
    await beat(fresh, "a", 1)
    assert await beat(fresh, "a", 5) == members(5, a=5)
    assert await beat(fresh, "b", 1) == members(1, a=5, b=1)


async def test_a_node_id_is_taken_until_its_broker_is_silent(fresh: Sequencing) -> None:
    await beat(fresh, "first", 1)
    fresh.now_ms += 60
    assert await beat(fresh, "second", 1) == NodeIdConflict(1, "first", 60)
    await beat(fresh, "first", 1)
    fresh.now_ms += TIMEOUT_MS - 1
    assert await beat(fresh, "second", 1) == NodeIdConflict(1, "first", TIMEOUT_MS - 1)
    fresh.now_ms += 1
    assert await beat(fresh, "second", 1) == members(1, second=1)
    assert await beat(fresh, "first", 1) == NodeIdConflict(1, "second", 0)


async def test_who_is_dead_does_not_live_on_where_the_clock_was_set_back(
    fresh: Sequencing,
) -> None:
    """Also where a replica with another clock became the primary."""
    fresh.now_ms += 100 * TIMEOUT_MS
    await beat(fresh, "dead", 1)
    await beat(fresh, "alive", 2)
    fresh.now_ms -= 90 * TIMEOUT_MS
    assert await beat(fresh, "alive", 2) == members(2, dead=1, alive=2), "it has its time"
    fresh.now_ms += ROLE_TIMEOUT_MS
    answer = await beat(fresh, "alive", 2)
    assert isinstance(answer, LiveBrokers)
    assert [member.incarnation for member in answer.members if member.serves] == ["alive"]
    fresh.now_ms += TIMEOUT_MS - ROLE_TIMEOUT_MS
    assert isinstance(await beat(fresh, "successor", 1), LiveBrokers)
    assert await beat(fresh, "alive", 2) == members(2, successor=1, alive=2)


async def test_silent_brokers_are_dropped(fresh: Sequencing) -> None:
    await beat(fresh, "a", 0)
    fresh.now_ms += TIMEOUT_MS - 1
    silent = await beat(fresh, "b", 1)
    assert isinstance(silent, LiveBrokers)
    assert [member.incarnation for member in silent.members] == ["a", "b"]
    fresh.now_ms += 1
    assert await beat(fresh, "b", 1) == members(1, b=1)
    assert await beat(fresh, "a", 0) == members(0, a=0, b=1)


async def test_a_clock_that_goes_back_drops_nobody(fresh: Sequencing) -> None:
    await beat(fresh, "a", 0)
    fresh.now_ms -= 5000
    assert await beat(fresh, "b", 0) == NodeIdConflict(0, "a", 0)


async def test_a_broker_that_leaves_is_not_waited_for(fresh: Sequencing) -> None:
    await beat(fresh, "a", 0)
    await fresh.sequencer.leave(0, "another")
    assert await beat(fresh, "b", 0) == NodeIdConflict(0, "a", 0)
    for _ in range(2):
        await fresh.sequencer.leave(0, "a")
    assert await beat(fresh, "b", 0) == members(0, b=0)


async def test_brokers_outlive_an_activation(fresh: Sequencing) -> None:
    await beat(fresh, "a", 0)
    await fresh.activate(1)
    assert await beat(fresh, "b", 1) == members(1, a=0, b=1)


async def test_a_heartbeat_says_that_the_writer_lives(sequencing: Sequencing) -> None:
    async def silent() -> list[OverdueWriter]:
        return await sequencing.sequencer.overdue(1, silent_ms=50, pending_ms=10_000)

    sequencing.now_ms += 51
    await beat(sequencing, "a", 0, sequencing.a)
    assert await silent() == [OverdueWriter(sequencing.b, 0, OverdueReason.SILENT)]
    await sequencing.ask(sequencing.a, {("t", 0): [plain()]})
    assert await beat(sequencing, "other", 0, sequencing.b) == NodeIdConflict(0, "a", 0)
    assert [each.writer for each in await silent()] == [sequencing.b]
    await beat(sequencing, "a", 0, sequencing.b)
    assert await silent() == []


async def test_a_heartbeat_never_makes_a_writer(sequencing: Sequencing) -> None:
    await sequencing.activate(2)
    await beat(sequencing, "a", 0, sequencing.a)
    assert await sequencing.records("writers") == {}
    await sequencing.redis.flushall()
    assert await beat(sequencing, "a", 0, sequencing.a) == members(0, a=0)
    assert await sequencing.records("writers") == {}


async def test_ages_are_measured_by_the_servers_clock(sequencing: Sequencing) -> None:
    """Without a clock of the test's, and whatever the broker's says."""
    before = await sequencing.redis.time()
    sequencer = Sequencer(sequencing.redis, cluster_id=sequencing.cluster_id)
    writer = WriterId("c" * 32)
    await sequencer.register_writer(1, writer)
    await sequencer.heartbeat(
        "a",
        node_id=0,
        address=address("a"),
        writer=None,
        session_timeout_ms=TIMEOUT_MS,
        role_timeout_ms=ROLE_TIMEOUT_MS,
        serves=True,
    )
    after = await sequencing.redis.time()
    stored = [
        (await sequencing.records("writers"))[writer]["heartbeat"],
        (await sequencing.records("brokers"))["0"]["heartbeat"],
    ]
    low, high = (seconds * 1000 + micros // 1000 for seconds, micros in (before, after))
    assert all(low <= heartbeat <= high for heartbeat in stored)


# Where an epoch stands -------------------------------------------------------------------------


async def test_the_active_epoch(fresh: Sequencing) -> None:
    assert await fresh.sequencer.active_epoch() is None
    await fresh.activate(4)
    assert await fresh.sequencer.active_epoch() == 4
    await fresh.redis.delete(fresh.key("partitions"))
    assert await fresh.sequencer.active_epoch() is None


async def test_a_copy_on_another_server_is_not_active(fresh: Sequencing) -> None:
    await fresh.activate(4)
    await fresh.redis.hset(fresh.key("meta"), "replid", "0" * 40)
    assert await fresh.sequencer.active_epoch() is None


async def test_the_position_is_one_moment(sequencing: Sequencing) -> None:
    assert await sequencing.sequencer.position(1) == Position(1, 1, frozenset())
    await sequencing.ask(sequencing.a, {("t", 0): [plain()]})
    await sequencing.ask(sequencing.b, {("t", 0): [plain()]})
    await sequencing.ask(sequencing.b, {("t", 1): [plain()]})
    await sequencing.publish(sequencing.b)
    assert await sequencing.sequencer.position(1) == Position(1, 4, frozenset({1, 2, 3}))
    await sequencing.void(sequencing.a, 1)
    assert await sequencing.sequencer.position(1) == Position(2, 4, frozenset({3}))
    assert await sequencing.sequencer.visible_number(1) == 2


async def test_two_writers_of_one_client_may_get_their_answers_in_any_order(
    sequencing: Sequencing,
) -> None:
    """A repeat for one writer has a lower ticket than the other's: nothing went back."""
    first = await sequencing.ask(sequencing.a, {("t", 0): [plain()]}, request="r")
    await sequencing.ask(sequencing.b, {("t", 1): [plain()]})
    again = await sequencing.ask(sequencing.a, {("t", 0): [plain()]}, seq=1, request="r")
    assert again == first


@pytest.mark.parametrize("node", [None, 0])
async def test_a_heartbeat_may_be_repeated(fresh: Sequencing, node: int | None) -> None:
    assert await beat(fresh, "a", node) == await beat(fresh, "a", node) == members(0, a=0)


async def test_a_broker_learns_whether_the_server_knew_it(fresh: Sequencing) -> None:
    async def was_known() -> bool:
        answer = await fresh.sequencer.heartbeat(
            "a",
            node_id=0,
            address=address("a"),
            writer=None,
            session_timeout_ms=TIMEOUT_MS,
            role_timeout_ms=ROLE_TIMEOUT_MS,
            serves=True,
        )
        assert isinstance(answer, LiveBrokers)
        return answer.was_known

    assert [await was_known(), await was_known()] == [False, True]
    await fresh.redis.flushall()
    assert [await was_known(), await was_known()] == [False, True]
    await fresh.sequencer.leave(0, "a")
    assert not await was_known()
