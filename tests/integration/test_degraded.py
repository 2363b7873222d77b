"""Redis is out of reach or slow: reading goes on, writing waits, nothing is lost or twice there."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from kio.schema.errors import ErrorCode
from redis import Redis as SyncRedis

from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.tiered_storage.backends.memory import MemoryBucket
from tests.rigs.broker_rig import Rig, create_topic, produce, until
from tests.rigs.patience import PATIENCE_S, Deadline, let_pass_async
from tests.rigs.several_brokers import fetch, stored
from tests.rigs.takeover import Load
from tests.servers.own_valkey import OwnValkey
from tests.servers.way import State, Way

pytestmark = pytest.mark.long

NONE = ErrorCode.none
REDIS_TIMEOUT_MS = 500
QUICK: dict[str, Any] = {
    "redis_timeout_ms": REDIS_TIMEOUT_MS,
    "heartbeat_interval_ms": 50,
    "session_timeout_ms": 3000,
    "view_wait_ms_max": 300,
}
"""More than any answer takes here: some of the time limits above, one after the other."""
TIMED_OUT, LOADING = ErrorCode.request_timed_out, ErrorCode.coordinator_load_in_progress
RETRIABLE_OF_GROUPS = {
    ErrorCode.coordinator_not_available,
    ErrorCode.coordinator_load_in_progress,
    ErrorCode.not_coordinator,
}


@pytest.fixture
def way(valkey: OwnValkey, tmp_path: Path) -> Iterator[Way]:
    """To Valkey; all brokers take it."""
    with Way(valkey.path, tmp_path / "way.sock") as way:
        yield way


@pytest.fixture
async def pair(way: Way) -> AsyncIterator[tuple[Rig, Rig]]:
    """Two brokers, and topic `t` of 4 partitions."""
    assert isinstance(way.address, Path)
    memory, cluster_id = MemoryBucket(), uuid4().hex
    async with AsyncExitStack() as stack:
        rigs = []
        for _ in range(2):
            rig = Rig(way.address, memory=memory, cluster_id=cluster_id, **QUICK)
            stack.push_async_callback(rig.stop)
            await rig.start()
            rigs.append(rig)
            if len(rigs) == 1:
                await create_topic(rig, "t", 4)
        stack.callback(way.be, State.OPEN)
        await until(lambda: all(len(rig.membership.serving) == 2 for rig in rigs))
        yield rigs[0], rigs[1]


Outage = Callable[[Way, OwnValkey], None]


def black_hole(way: Way, valkey: OwnValkey) -> None:
    way.be(State.BLACK_HOLE)


def refused(way: Way, valkey: OwnValkey) -> None:
    way.be(State.CLOSED)


def stopped_in_its_tracks(way: Way, valkey: OwnValkey) -> None:
    valkey.pause()


def killed(way: Way, valkey: OwnValkey) -> None:
    valkey.stop()


def over(way: Way, valkey: OwnValkey, outage: Outage) -> None:
    """Redis is there again; one that was killed is empty."""
    valkey.go_on()
    way.be(State.OPEN)
    if outage is killed:
        valkey.start()


OUTAGES = [black_hole, refused, stopped_in_its_tracks, killed]


def is_out_of_reach(*rigs: Rig) -> bool:
    parts = {"heartbeat", "sequencer", "stream"}
    return all(parts <= rig.health.report().keys() for rig in rigs)


async def in_time(asked: Coroutine[Any, Any, Any]) -> Any:
    async with asyncio.timeout(PATIENCE_S):
        return await asked


async def init_producer_id(rig: Rig) -> ErrorCode:
    answer = await rig.call(
        ApiKey.INIT_PRODUCER_ID, 4, transactional_id=None, transaction_timeout=0
    )
    return ErrorCode(answer.error_code)


async def asks_of_groups(rig: Rig) -> dict[str, ErrorCode]:
    group: dict[str, Any] = {"group_id": "g"}
    member = {"member_id": "", "group_instance_id": None}
    join = group | member | {"protocol_type": "consumer", "reason": None}
    join |= {"session_timeout": 10_000, "rebalance_timeout": 10_000}
    join |= {"protocols": [{"name": "range", "metadata": b""}]}
    beat = group | {"generation_id": 1, "member_id": "m", "group_instance_id": None}
    commit = group | member | {"generation_id_or_member_epoch": -1}
    row: dict[str, Any] = {"partition_index": 0, "committed_offset": 1, "committed_leader_epoch": 0}
    row |= {"committed_metadata": ""}
    commit |= {"topics": [{"name": "t", "partitions": [row]}]}
    return {
        "find": (await rig.call(ApiKey.FIND_COORDINATOR, 3, key="g", key_type=0)).error_code,
        "join": (await rig.call(ApiKey.JOIN_GROUP, 8, **join)).error_code,
        "heartbeat": (await rig.call(ApiKey.HEARTBEAT, 4, **beat)).error_code,
        "fetch": (
            await rig.call(ApiKey.OFFSET_FETCH, 7, **group, topics=None, require_stable=False)
        ).error_code,
        "commit": (await rig.call(ApiKey.OFFSET_COMMIT, 8, **commit))
        .topics[0]
        .partitions[0]
        .error_code,
        "list": (await rig.call(ApiKey.LIST_GROUPS, 4, states_filter=())).error_code,
    }


# What clients are told ---------------------------------------------------------------------------


@pytest.mark.parametrize("outage", OUTAGES)
async def test_reading_goes_on_and_nothing_hangs(
    pair: tuple[Rig, Rig], way: Way, valkey: OwnValkey, outage: Outage
) -> None:
    a, _ = pair
    assert await produce(a, b"kept") == (NONE, 0)
    outage(way, valkey)
    for _ in range(2):  # while nobody knows yet, and when it is known
        assert await in_time(stored(a)) == [(0, b"kept")]
        row = await in_time(fetch(a, 1, max_wait=50))
        assert (row.error_code, row.high_watermark) == (NONE, 1)
        row = await in_time(fetch(a, 7))
        assert (row.error_code, row.high_watermark) == (ErrorCode.offset_not_available, 1)
        metadata = await in_time(all_topics(a))
        assert [topic.name for topic in metadata.topics] == ["t"]
        assert metadata.brokers, (
            "the brokers of the last heartbeat, of which one may have been late"
        )
        asked = [init_producer_id(a) for _ in range(5)]
        assert set(await in_time(gathered(asked))) == {LOADING}
        assert await in_time(produce(a, b"late", timeout=200)) == (TIMED_OUT, -1)
        assert await in_time(create_topic(a, "n", timeout_ms=200)) is TIMED_OUT
        answers = await in_time(asks_of_groups(a))
        found = answers.pop("find")
        assert found in {NONE, ErrorCode.coordinator_not_available}
        assert set(answers.values()) <= RETRIABLE_OF_GROUPS, answers
        await until(lambda: is_out_of_reach(a))
    deadline = Deadline("a broker without a session names a coordinator")
    while found is not ErrorCode.coordinator_not_available:
        await deadline.pause_async()
        found = (await in_time(asks_of_groups(a)))["find"]
    assert "writing" not in a.health.report(), "out of reach is not lost"


async def all_topics(rig: Rig) -> Any:
    flags = dict.fromkeys(
        (
            "allow_auto_topic_creation",
            "include_cluster_authorized_operations",
            "include_topic_authorized_operations",
        ),
        False,
    )
    return await rig.call(ApiKey.METADATA, 9, topics=None, **flags)


async def gathered(asked: list[Coroutine[Any, Any, ErrorCode]]) -> list[ErrorCode]:
    return list(await asyncio.gather(*asked))


# Load across outages -----------------------------------------------------------------------------


@pytest.mark.parametrize("outage", OUTAGES)
async def test_idempotent_load_across_an_outage(
    pair: tuple[Rig, Rig], way: Way, valkey: OwnValkey, outage: Outage
) -> None:
    """What was under way when it began is settled when it is over; nobody is given up for it."""
    a, b = pair
    writers = {rig.committer.writer for rig in pair}
    async with Load([a, b]) as load:
        await load.more(20)
        outage(way, valkey)
        await until(lambda: is_out_of_reach(a, b))
        await let_pass_async(1.5 * QUICK["session_timeout_ms"] / 1000)  # as long as kills a broker
        over(way, valkey, outage)
        await load.more(30)
    await load.check()
    await until(lambda: a.health.ready and b.health.ready)
    if outage is killed:
        assert a.epoch == b.epoch == 2
    else:
        assert a.epoch == b.epoch == 1
        assert {rig.committer.writer for rig in pair} == writers
    assert len(a.membership.members) == len(b.membership.members) == 2


async def test_idempotent_load_across_a_full_redis(
    pair: tuple[Rig, Rig], valkey: OwnValkey
) -> None:
    """Brokers keep their roles for longer than a session, and writing goes on by itself."""
    a, b = pair
    writers = {rig.committer.writer for rig in pair}
    with SyncRedis(unix_socket_path=str(valkey.path)) as redis:
        async with Load([a, b]) as load:
            await load.more(20)
            redis.config_set("maxmemory", 1)
            await until(lambda: all("redis" in rig.health.report() for rig in pair))
            await let_pass_async(1.5 * QUICK["session_timeout_ms"] / 1000)
            assert len(a.membership.serving) == len(b.membership.serving) == 2
            redis.config_set("maxmemory", 0)
            await load.more(30)
    await load.check()
    await until(lambda: a.health.ready and b.health.ready)
    assert a.epoch == b.epoch == 1
    assert {rig.committer.writer for rig in pair} == writers


async def test_idempotent_load_on_a_slow_redis(pair: tuple[Rig, Rig], way: Way) -> None:
    a, b = pair
    async with Load([a, b]) as load:
        await load.more(20)
        way.delay_s = 0.8 * REDIS_TIMEOUT_MS / 1000
        await load.more(20)
        way.delay_s = 0
        await load.more(20)
    await load.check()
    assert a.epoch == b.epoch == 1


async def test_connections_that_break_again_and_again(pair: tuple[Rig, Rig], way: Way) -> None:
    a, b = pair
    async with Load([a, b]) as load:
        for _ in range(20):
            await load.more(5)
            way.break_connections()
        await load.more(20)
    await load.check()
    assert a.epoch == b.epoch == 1
