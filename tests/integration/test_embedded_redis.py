"""Brokers without Redis, and brokers whose Redis goes and comes back: one runs a Valkey, and the
others follow its claim. No acknowledged record is lost, moved or duplicated."""

import json
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import psutil
import pytest
from kio.schema.errors import ErrorCode

from bucketlog.metadata.sequencer.valkey_process import ValkeyProcess
from bucketlog.stateless_broker.health import BrokerPart
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.backends.memory import MemoryBucket
from tests.rigs.broker_rig import Rig, create_topic, produce, until
from tests.rigs.patience import let_pass, let_pass_async
from tests.rigs.several_brokers import Brokers, stored
from tests.rigs.takeover import Load
from tests.servers.own_valkey import OwnValkey
from tests.servers.way import State, Way

pytestmark = pytest.mark.long

NONE = ErrorCode.none
QUICK = {
    "heartbeat_interval_ms": 100,
    "session_timeout_ms": 1000,
    "redis_steady_ms": 500,
    "claim_look_ms": 500,
}
"""A server that is silent for 1.5 s is out of reach."""
DEAD_PASSWORD = "0" * 64


def holders(*rigs: Rig) -> list[Rig]:
    """The brokers that run a Valkey."""
    return [rig for rig in rigs if rig.node.parts.cluster.servers.runs_server]


def own_valkey(rig: Rig) -> ValkeyProcess:
    own = rig.node.parts.cluster.servers._own
    assert own is not None
    return cast(ValkeyProcess, own)


def is_in(rig: Rig, epoch: int) -> bool:
    return rig.epoch == epoch and rig.health.ready


def are_on_valkey_of(holder: Rig, *rigs: Rig) -> bool:
    endpoint = holder.node.parts.cluster.servers.endpoint
    return endpoint is not None and all(
        rig.health.ready
        and rig.node.parts.cluster.servers.endpoint == endpoint
        and rig.epoch == holder.epoch
        for rig in (holder, *rigs)
    )


def are_on_configured(*rigs: Rig) -> bool:
    return len({rig.epoch for rig in rigs}) == 1 and all(
        rig.health.ready and rig.node.parts.cluster.servers.endpoint is None for rig in rigs
    )


async def are_beyond(epoch: int, *rigs: Rig) -> None:
    """Wait until all are in a later epoch, on the Valkey of one of them."""
    await until(lambda: all(rig.epoch > epoch and rig.health.ready for rig in rigs))
    await until(lambda: len(holders(*rigs)) == 1)


def claim_of(brokers: Brokers, epoch: int) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(bytes(brokers.memory.get(keys.epoch_claim(epoch)).data))
    return found


def put_claim(brokers: Brokers, epoch: int, **valkey: object) -> None:
    """Write a claim, like anybody who may write to the bucket."""
    content: dict[str, object] = {"run_id": "r", "master_replid": "m", "claimed_ms": 1}
    content |= {"incarnation": "stranger", "bucket": claim_of(brokers, 1).get("bucket")}
    body = json.dumps(content | {"valkey": {"version": 1, **valkey}}).encode()
    assert brokers.memory.create(keys.epoch_claim(epoch), [body])


@pytest.fixture
def without_redis(brokers: Brokers) -> Brokers:
    brokers.run_valkeys = True
    return brokers.by(None)


@pytest.fixture
def beside_redis(brokers: Brokers) -> Brokers:
    brokers.run_valkeys = True
    return brokers


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port on which no server listens, and none can."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield int(bound.getsockname()[1])


# Without a configured Redis ----------------------------------------------------------------------


async def test_a_bucket_is_enough(without_redis: Brokers) -> None:
    a, b = await without_redis.pair(**QUICK)
    assert holders(a, b) == [a]
    assert are_on_valkey_of(a, b)
    assert claim_of(without_redis, 1)["valkey"]["port"] == own_valkey(a).endpoint.port
    async with Load([a, b]) as load:
        await load.more(20)
    await load.check()
    assert without_redis.claims() == 1


async def test_the_next_valkey_when_the_one_in_use_is_killed(without_redis: Brokers) -> None:
    a, b = await without_redis.pair(**QUICK)
    c = await without_redis.start(**QUICK)
    rigs = (a, b, c)
    async with Load(rigs) as load:
        for _ in range(2):
            await load.more(20)
            (holder,) = holders(*rigs)
            os.kill(own_valkey(holder).pid, signal.SIGKILL)
            await are_beyond(holder.epoch, *rigs)
        await load.more(20)
    await load.check()
    assert are_on_valkey_of(holders(*rigs)[0], *rigs)


async def test_a_broker_that_leaves_takes_its_valkey_along(without_redis: Brokers) -> None:
    a, b = await without_redis.pair(**QUICK)
    assert await produce(a, b"kept", producer_id=77, producer_epoch=0, base_sequence=0) == (NONE, 0)
    pid = own_valkey(a).pid
    await a.stop()
    assert not psutil.pid_exists(pid)
    await until(lambda: is_in(b, 2))
    again = await produce(b, b"kept", producer_id=77, producer_epoch=0, base_sequence=0)
    assert again == (NONE, 0), "a duplicate is known"
    assert await produce(b, b"more", producer_id=77, producer_epoch=0, base_sequence=1) == (NONE, 1)
    assert await stored(b) == [(0, b"kept"), (1, b"more")]


async def test_a_cluster_that_starts_again_begins_the_next_epoch(without_redis: Brokers) -> None:
    a = await without_redis.start(**QUICK)
    await create_topic(a, "t")
    assert await produce(a, b"kept") == (NONE, 0)
    await a.stop()
    b = without_redis.add(**QUICK | {"start_timeout_ms": 60_000})
    await b.start()
    assert (b.epoch, b.node.parts.cluster.servers.runs_server) == (2, True)
    assert await stored(b) == [(0, b"kept")]


async def test_a_broker_that_pauses_keeps_its_valkey(without_redis: Brokers) -> None:
    """The Valkey is a process of its own, and answers meanwhile."""
    a, b = await without_redis.pair(**QUICK)
    await a.lose_connections()
    await until(lambda: len(b.membership.members) == 1)
    assert await produce(b, b"kept") == (NONE, 0)
    a.come_back()
    await until(lambda: len(b.membership.members) == 2)
    assert (a.epoch, b.epoch) == (1, 1)


# Claims that somebody else has written -----------------------------------------------------------


async def test_a_claim_with_a_wrong_password_is_not_followed(without_redis: Brokers) -> None:
    a, b = await without_redis.pair(**QUICK)
    endpoint = own_valkey(a).endpoint
    put_claim(without_redis, 2, host=endpoint.host, port=endpoint.port, password=DEAD_PASSWORD)
    await until(lambda: is_in(a, 3) and is_in(b, 3))
    assert await produce(b, b"kept") == (NONE, 0)
    for rig in (a, b):
        assert DEAD_PASSWORD not in str(rig.health.report())


@pytest.mark.parametrize("host", ["127.0.0.1", "x" * 60, "192.0.2.1"])
async def test_a_claim_that_names_no_server_is_claimed_over(
    without_redis: Brokers, closed_port: int, host: str
) -> None:
    a = await without_redis.start(**QUICK, sequencer_probe_timeout_ms=100)
    await create_topic(a, "t")
    put_claim(without_redis, 2, host=host, port=closed_port, password=DEAD_PASSWORD)
    await until(lambda: is_in(a, 3))
    assert await produce(a, b"kept") == (NONE, 0)
    assert len(holders(a)) == 1


async def test_a_claim_is_not_followed_where_that_is_switched_off(
    beside_redis: Brokers, closed_port: int
) -> None:
    a = await beside_redis.start(**QUICK)
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        stranger.settimeout(0)
        b = beside_redis.add(**QUICK, sequencer_follow=0)
        await b.start()
        port = stranger.getsockname()[1]
        await a.stop()
        put_claim(beside_redis, 2, host="127.0.0.1", port=port, password=DEAD_PASSWORD)
        await until(lambda: is_in(b, 3))
        with pytest.raises(BlockingIOError):
            stranger.accept()
    assert b.node.parts.cluster.servers.endpoint is None


async def test_brokers_on_a_copy_of_the_bucket_are_another_cluster(without_redis: Brokers) -> None:
    """The copy has the claim that names the Valkey of the original, which still runs."""
    a = await without_redis.start(**QUICK)
    await create_topic(a, "t")
    assert await produce(a, b"kept") == (NONE, 0)
    copy = MemoryBucket()
    let_pass(0.01)  # the store's time of the copy is later
    for info in without_redis.memory.list(""):
        assert copy.create(info.key, [without_redis.memory.get(info.key).data])
    original, without_redis.memory = without_redis.memory, copy
    b = without_redis.add(**QUICK | {"start_timeout_ms": 60_000})
    await b.start()
    assert (b.epoch, b.node.parts.cluster.servers.runs_server) == (2, True)
    assert await produce(b, b"here") == (NONE, 1)
    assert await produce(a, b"there") == (NONE, 1)
    assert len(a.membership.members) == len(b.membership.members) == 1
    assert len(list(original.list(keys.EPOCHS))) == 1


# A configured Redis goes and comes back ----------------------------------------------------------


@pytest.mark.parametrize("fault", ["killed", "silent"])
async def test_an_outage_of_redis_under_load(
    beside_redis: Brokers, valkey: OwnValkey, fault: str
) -> None:
    a, b = await beside_redis.pair(**QUICK)
    async with Load([a, b]) as load:
        await load.more(20)
        if fault == "killed":
            valkey.kill()
        else:
            valkey.pause()
        await until(lambda: len(holders(a, b)) == 1 and are_on_valkey_of(*holders(a, b), a, b))
        await load.more(50)
        assert claim_of(beside_redis, a.epoch)["valkey"]["host"] == "127.0.0.1"
        if fault == "killed":
            valkey.start()
        else:
            valkey.go_on()
        await until(lambda: are_on_configured(a, b) and not holders(a, b))
        await load.more(20)
    await load.check()
    assert "valkey" not in claim_of(beside_redis, a.epoch)


async def test_a_redis_that_comes_and_goes(beside_redis: Brokers, valkey: OwnValkey) -> None:
    """Each time, it has to answer for longer."""
    a, b = await beside_redis.pair(**QUICK)
    async with Load([a, b]) as load:
        for _ in range(2):
            await load.more(10)
            valkey.kill()
            await until(lambda: len(holders(a, b)) == 1 and are_on_valkey_of(*holders(a, b), a, b))
            await load.more(10)
            valkey.start()
            await until(lambda: are_on_configured(a, b))
        await load.more(10)
    await load.check()


async def test_a_broker_that_alone_misses_redis_leaves_the_log_to_the_others(
    beside_redis: Brokers, valkey: OwnValkey, tmp_path: Path
) -> None:
    a, b = await beside_redis.pair(**QUICK)
    with Way(valkey.path, tmp_path / "way.sock") as way:
        lonely = await beside_redis.by(tmp_path / "way.sock").start(**QUICK)
        load = Load([a, b])
        for state in (State.CLOSED, State.BLACK_HOLE):
            way.be(state)
            async with load:
                await until(lambda: lonely.health.is_degraded(BrokerPart.SEQUENCER))
                await until(
                    lambda: "reach the sequencer" in lonely.health.report().get("sequencer", "")
                )
                await load.more(20)
            await load.check()
            assert not holders(a, b, lonely)
            way.be(State.OPEN)
            await until(lambda: lonely.health.ready)
            assert (a.epoch, b.epoch, lonely.epoch) == (1, 1, 1)


async def test_a_broker_that_alone_misses_redis_leaves_an_idle_log_to_the_others(
    beside_redis: Brokers, valkey: OwnValkey, tmp_path: Path
) -> None:
    """They seal its chain, and so show that they reach the sequencer."""
    a, b = await beside_redis.pair(**QUICK)
    with Way(valkey.path, tmp_path / "way.sock") as way:
        lonely = await beside_redis.by(tmp_path / "way.sock").start(**QUICK)
        way.be(State.BLACK_HOLE)
        await until(lambda: "have sealed this one" in lonely.health.report().get("sequencer", ""))
        await let_pass_async(1.0)
        assert not holders(a, b, lonely)
        way.be(State.OPEN)
        await until(lambda: lonely.health.ready)
        assert (a.epoch, b.epoch, lonely.epoch) == (1, 1, 1)


async def test_a_broker_starts_while_redis_is_down(
    beside_redis: Brokers, valkey: OwnValkey
) -> None:
    a = await beside_redis.start(**QUICK)
    await create_topic(a, "t")
    assert await produce(a, b"kept") == (NONE, 0)
    valkey.kill()
    b = beside_redis.add(**QUICK | {"start_timeout_ms": 60_000})
    await b.start()
    await until(lambda: are_on_valkey_of(*holders(a, b), a, b))
    assert await stored(b) == [(0, b"kept")]
    valkey.start()
    await until(lambda: are_on_configured(a, b))


async def test_without_a_time_out_brokers_wait(beside_redis: Brokers, valkey: OwnValkey) -> None:
    a = await beside_redis.start(**QUICK, sequencer_timeout_ms=0)
    valkey.kill()
    await until(lambda: not a.health.ready)
    await let_pass_async(3.0)
    assert not holders(a)
    assert beside_redis.claims() == 1
    valkey.start()
    await until(lambda: is_in(a, 2))
