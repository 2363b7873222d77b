"""Brokers that run, but cannot write or do not see the newest state."""

from pathlib import Path

import pytest
from kio.schema.errors import ErrorCode
from redis.asyncio import Redis

from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.stateless_broker.health import BrokerPart
from bucketlog.stateless_broker.produce.commit_steps import PutPace
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.faulty import BucketVerb, Fault
from tests.rigs.broker_rig import (
    HELD,
    LATEST,
    Rig,
    create_topic,
    end_of,
    outcome,
    produce,
    send,
    until,
)
from tests.rigs.patience import Deadline
from tests.rigs.several_brokers import QUICK, Brokers, fetch, stored
from tests.servers.own_valkey import OwnValkey
from tests.servers.way import State, Way

NONE = ErrorCode.none
NEVER_MS = 1_000_000
ALONE = QUICK | {"sequencer_timeout_ms": NEVER_MS, "seal_look_ms": 200}
"""A broker without Redis soon finds that others have sealed its chain."""
WITHDRAWS = QUICK | {
    "put_stalled_ms": 300,
    "withdrawal_ms": 0,
    "put_give_up_ms": NEVER_MS,
    "reservation_limit_ms": NEVER_MS + 1,
}


def hold_puts_of(rig: Rig) -> None:
    """From now on, the broker's PUTs of segments and seals get no answer."""

    def plan(verb: BucketVerb, key: str) -> Fault | None:
        return HELD if verb is BucketVerb.CREATE and key.startswith(keys.LOG) else None

    rig.plan = plan


def heal(rig: Rig) -> None:
    rig.plan = lambda verb, key: None
    rig.let_go()


def serving(rig: Rig) -> list[int]:
    return [member.node_id for member in rig.membership.serving]


async def brokers_and_leaders(rig: Rig) -> tuple[set[int], set[int]]:
    """Return the ids of the brokers in a Metadata response, and of the leaders of topic `t`."""
    answer = await rig.call(
        ApiKey.METADATA, 7, topics=[{"name": "t"}], allow_auto_topic_creation=False
    )
    leaders = {part.leader_id for part in answer.topics[0].partitions}
    return {each.node_id for each in answer.brokers}, leaders


async def listed(rig: Rig, version: int, timestamp: int = LATEST) -> tuple[ErrorCode, int]:
    rows = [{"partition_index": 0, "timestamp": timestamp}]
    topics = [{"name": "t", "partitions": rows}]
    answer = await rig.call(
        ApiKey.LIST_OFFSETS, version, replica_id=-1, isolation_level=0, topics=topics
    )
    row = answer.topics[0].partitions[0]
    return ErrorCode(row.error_code), int(row.offset)


async def test_a_broker_whose_puts_stall_gives_its_roles_and_its_chain_to_the_others(
    brokers: Brokers,
) -> None:
    a, b = await brokers.pair(**WITHDRAWS)
    await until(lambda: len(serving(a)) == len(serving(b)) == 2)
    assert await produce(a, b"before") == (NONE, 0)
    hold_puts_of(a)
    stuck = send(a, b"stuck", producer_id=7, producer_epoch=0, base_sequence=0)
    error, _ = await outcome(stuck)
    assert error is ErrorCode.not_leader_or_follower
    await until(lambda: serving(a) == serving(b) == [b.membership.me.node_id])
    for rig in (a, b):  # clients would forget a broker that Metadata does not list
        assert await brokers_and_leaders(rig) == ({0, 1}, {b.membership.me.node_id})
    # The client retries at the other broker, which does not wait for the first.
    again = await produce(b, b"stuck", producer_id=7, producer_epoch=0, base_sequence=0)
    assert again[0] is NONE
    assert (await outcome(send(a, b"new")))[0] is ErrorCode.not_leader_or_follower
    assert (await fetch(a, 0)).error_code is ErrorCode.not_leader_or_follower
    assert [value for _, value in await stored(b)] == [b"before", b"stuck"]
    heal(a)
    await until(lambda: len(serving(a)) == len(serving(b)) == 2)
    assert (await produce(a, b"after"))[0] is NONE
    assert [value for _, value in await stored(a)] == [b"before", b"stuck", b"after"]
    assert not a.health.is_degraded(BrokerPart.BUCKET)


@pytest.mark.parametrize("state", [State.CLOSED, State.BLACK_HOLE])
async def test_a_broker_that_alone_loses_redis_sends_its_clients_to_the_others(
    brokers: Brokers, valkey: OwnValkey, tmp_path: Path, state: State
) -> None:
    with Way(valkey.path, tmp_path / "way.sock") as way:
        b = await brokers.start(**QUICK)
        await create_topic(b, "t", 1)
        a = await brokers.by(tmp_path / "way.sock").start(**ALONE)
        await until(lambda: len(serving(a)) == len(serving(b)) == 2)
        assert await produce(a, b"before") == (NONE, 0)
        way.be(state)
        stuck = send(a, b"stuck", producer_id=7, producer_epoch=0, base_sequence=0)
        assert (await outcome(stuck))[0] is ErrorCode.not_leader_or_follower
        assert serving(a) == serving(b) == [b.membership.me.node_id]
        assert (await outcome(send(a, b"new")))[0] is ErrorCode.not_leader_or_follower
        again = await produce(b, b"stuck", producer_id=7, producer_epoch=0, base_sequence=0)
        assert again[0] is NONE
        way.be(State.OPEN)
        await until(lambda: len(serving(a)) == len(serving(b)) == 2)
        error, offset = await produce(a, b"after")
        assert (error, await end_of(b)) == (NONE, offset + 1)  # `b` has caught up
        assert [value for _, value in await stored(b)] == [b"before", b"stuck", b"after"]


async def test_brokers_that_all_lose_redis_keep_their_roles(
    brokers: Brokers, valkey: OwnValkey, tmp_path: Path
) -> None:
    """Nobody could seal a chain, so no broker is better than another."""
    with Way(valkey.path, tmp_path / "way.sock") as way:
        brokers.by(tmp_path / "way.sock")
        a, b = await brokers.pair(**ALONE)
        await until(lambda: len(serving(a)) == len(serving(b)) == 2)
        way.be(State.CLOSED)
        waiting = [send(rig, timeout=NEVER_MS) for rig in (a, b)]
        looked = [rig.counts.snapshot().lists for rig in (a, b)]
        await until(
            lambda: all(
                rig.counts.snapshot().lists > before + 10
                for rig, before in zip((a, b), looked, strict=True)
            )
        )
        way.be(State.OPEN)
        for sent in waiting:
            assert (await outcome(sent))[0] is NONE


async def test_the_last_broker_that_serves_keeps_its_roles(brokers: Brokers) -> None:
    only = await brokers.start(**WITHDRAWS)
    await create_topic(only, "t", 1)
    hold_puts_of(only)
    waiting = send(only)
    await until(lambda: only.health.is_degraded(BrokerPart.BUCKET))
    heard = only.sequencer.calls.total()
    await until(lambda: only.sequencer.calls.total() > heard + 20)
    assert serving(only) == [only.membership.me.node_id]
    assert only.membership.me.serves
    heal(only)
    assert await outcome(waiting) == (NONE, 0)


async def test_if_no_broker_can_write_one_keeps_its_roles(brokers: Brokers) -> None:
    a, b = await brokers.pair(**WITHDRAWS)
    await until(lambda: len(serving(a)) == len(serving(b)) == 2)
    for rig in (a, b):
        hold_puts_of(rig)
    waiting = [send(rig, timeout=NEVER_MS) for rig in (a, b)]
    await until(lambda: all(rig.health.is_degraded(BrokerPart.BUCKET) for rig in (a, b)))
    await until(lambda: sum(one.serves for one in a.membership.members) == 1)
    heal(a)
    heal(b)
    await until(lambda: len(serving(a)) == len(serving(b)) == 2)
    for sent in waiting:
        assert (await outcome(sent))[0] in (NONE, ErrorCode.not_leader_or_follower)
    for rig in (a, b):  # a broker with a sealed writer may withdraw again before it has a new one
        while (answered := (await produce(rig))[0]) is not NONE:
            assert answered is ErrorCode.not_leader_or_follower


def test_a_store_that_is_always_slow_stalls_no_put() -> None:
    pace = PutPace(2000)
    assert pace.stalled_s == 2.0
    for _ in range(100):
        pace.ended(3.0)
    assert 11.5 < pace.stalled_s <= 12.0
    for _ in range(100):
        pace.ended(0.1)
    assert pace.stalled_s == 2.0


async def test_offsets_that_need_the_newest_records_are_not_answered_beside_a_later_epoch(
    brokers: Brokers,
) -> None:
    a = await brokers.start()
    await create_topic(a, "t", 1)
    assert await produce(a) == (NONE, 0)
    assert await end_of(a) == 1
    brokers.claim(a.epoch + 1)
    assert await listed(a, 7) == (ErrorCode.leader_not_available, -1)
    assert (await listed(a, 7, timestamp=2**62))[0] is ErrorCode.leader_not_available
    assert await listed(a, 7, timestamp=-2) == (NONE, 0)
    rows = [{"partition_index": 0, "offset": 1}]
    topics = [{"name": "t", "partitions": rows}]
    answer = await a.call(ApiKey.DELETE_RECORDS, 1, topics=topics, timeout=20_000)
    assert answer.topics[0].partitions[0].error_code is ErrorCode.not_leader_or_follower


async def test_an_idle_broker_finds_that_others_have_begun_a_later_epoch(brokers: Brokers) -> None:
    a = await brokers.start(claim_look_ms=20, claim_wait_ms=50)
    epoch = a.epoch
    brokers.claim(epoch + 1)
    await until(lambda: a.epochs.work.epoch > epoch + 1)


async def test_a_broker_whose_process_ends_is_succeeded_before_any_time_out(
    brokers: Brokers,
) -> None:
    """Its roles, its node id and what waits for its open segment."""
    a, b = await brokers.pair(
        session_timeout_ms=NEVER_MS, reservation_limit_ms=NEVER_MS, heartbeat_interval_ms=100
    )
    await until(lambda: len(serving(a)) == len(serving(b)) == 2)
    hold_puts_of(a)
    stuck = send(a, b"stuck", producer_id=7, producer_epoch=0, base_sequence=0)
    await until(lambda: a.held > 0)
    behind = send(b, b"behind")
    await brokers.until_lifelines_are_seen()
    await a.lose_connections()
    assert (await outcome(behind))[0] is NONE
    assert serving(b) == [b.membership.me.node_id]
    successor = await brokers.start(node_id=a.membership.me.node_id, session_timeout_ms=NEVER_MS)
    await until(lambda: len(serving(b)) == len(serving(successor)) == 2)
    heal(a)
    await stuck


async def test_a_broker_that_lives_keeps_its_roles_when_its_lifeline_ends(
    brokers: Brokers,
) -> None:
    a, b = await brokers.pair(session_timeout_ms=NEVER_MS, heartbeat_interval_ms=100)
    await until(lambda: len(serving(a)) == len(serving(b)) == 2)
    writers, members = brokers.writers(), a.membership.members
    async with Redis(unix_socket_path=str(brokers.redis)) as redis:
        for _ in range(3):
            assert await redis.client_kill_filter(_type="pubsub") >= 2
            channels = f"*{brokers.cluster_id}*"
            deadline = Deadline("the lifelines do not begin anew")
            while len(await redis.pubsub_channels(channels)) < 3:
                await deadline.pause_async()
    assert a.membership.members == b.membership.members == members
    assert brokers.writers() == writers
    assert (await produce(a))[0] is (await produce(b))[0] is NONE
