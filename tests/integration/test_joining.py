"""Joining a cluster: one epoch for all that come, whoever dies on the way; a whole view at once."""

import asyncio
from functools import partial
from typing import Any, cast

import pytest
from kio.schema.errors import ErrorCode
from redis import Redis

from bucketlog.log_format.errors import ClusterInUseError
from bucketlog.metadata.sequencer.redis_keys import key_prefix
from bucketlog.metadata.sequencer.scripts import SequencerVerb as Ask
from bucketlog.stateless_broker.health import BrokerPart
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.faulty import BucketVerb, ScriptedFaults
from tests.rigs.broker_rig import HELD, Rig, create_topic, end_of, outcome, produce, send, until
from tests.rigs.several_brokers import QUICK, Brokers, stored
from tests.servers.own_valkey import OwnValkey

NONE = ErrorCode.none
SEGMENTS = 200
"""Redis trims streams by whole nodes, of 100 entries."""


def knows_topic(rig: Rig) -> bool:
    return rig.view.topic("t") is not None


async def test_brokers_that_start_together_share_one_epoch(brokers: Brokers) -> None:
    rigs = [brokers.add() for _ in range(3)]
    for rig in rigs:
        rig.sequencer.hold(Ask.ACTIVATE)
    starts = [asyncio.create_task(rig.start()) for rig in rigs]
    await until(lambda: any(rig.sequencer.held for rig in rigs))
    (claimant,) = [rig for rig in rigs if rig.sequencer.held]
    others = [rig for rig in rigs if rig is not claimant]
    await until(lambda: all(rig.sequencer.calls[Ask.ACTIVE_EPOCH] > 3 for rig in others))
    assert brokers.claims() == 1
    assert not any(start.done() for start in starts)
    for rig in rigs:
        rig.sequencer.let_go()
    await asyncio.gather(*starts)
    assert [rig.epoch for rig in rigs] == [1, 1, 1]
    assert brokers.claims() == 1
    assert len({rig.writer for rig in rigs}) == 3
    assert len({rig.membership.me.node_id for rig in rigs}) == 3
    await create_topic(rigs[0], "t")
    for at, rig in enumerate(rigs):
        await until(partial(knows_topic, rig))
        assert await produce(rig, b"%d" % at) == (NONE, at)
    assert await end_of(rigs[0]) == 3


async def test_a_broker_serves_even_if_redis_answers_its_first_heartbeat_too_late(
    brokers: Brokers,
) -> None:
    rig = brokers.add()
    await rig.node.begin([1])
    rig.fall_silent()  # only `serve` sends heartbeats now
    rig.sequencer.lose_answer(Ask.HEARTBEAT)
    await rig.node.serve()
    assert rig.sequencer.lost == 1
    assert rig.membership.me.serves
    assert not rig.health.is_degraded(BrokerPart.REDIS)


async def test_a_claim_of_a_dead_broker_is_passed_over(brokers: Brokers) -> None:
    dead, heir = brokers.add(**QUICK), brokers.add(**QUICK)
    dead.sequencer.hold(Ask.ACTIVATE)
    died = asyncio.create_task(dead.start())
    await until(lambda: dead.sequencer.held == 1)
    inherited = asyncio.create_task(heir.start())
    await until(lambda: heir.sequencer.calls[Ask.ACTIVE_EPOCH] > 3)
    assert brokers.claims() == 1  # it lives: it is waited for
    died.cancel()
    dead.fall_silent()
    await inherited
    assert heir.epoch == 2
    assert await create_topic(heir, "t") is NONE
    assert await produce(heir) == (NONE, 0)


async def test_a_claimant_that_is_slow_is_passed_over_and_joins_later(brokers: Brokers) -> None:
    slow, heir = brokers.add(), brokers.add(claim_wait_ms=100)
    slow.sequencer.hold(Ask.ACTIVATE)
    started = asyncio.create_task(slow.start())
    await until(lambda: slow.sequencer.held == 1)
    await heir.start()
    assert heir.epoch == 2
    await create_topic(heir, "t")
    slow.sequencer.let_go()
    await started
    assert slow.epoch == 2  # its claim was wasted
    assert brokers.claims() == 2
    assert await produce(heir) == (NONE, 0)
    assert await produce(slow) == (NONE, 1)


async def test_an_epoch_that_becomes_active_during_the_look_is_joined(
    brokers: Brokers, valkey: OwnValkey
) -> None:
    a, b = await brokers.pair()
    a.sequencer.hold(Ask.HEARTBEAT)
    b.sequencer.hold(Ask.ACTIVE_EPOCH)
    valkey.wipe()
    await until(lambda: a.sequencer.held > 0 and b.sequencer.held > 0)
    assert brokers.claims() == 1
    a.sequencer.let_go()
    await until(lambda: a.epoch == 2)
    b.sequencer.let_go()
    await until(lambda: b.epoch > 1)
    assert (a.epoch, b.epoch, brokers.claims()) == (2, 2, 2)


async def test_after_a_wipe_a_new_broker_begins_an_epoch_and_the_others_follow(
    brokers: Brokers, valkey: OwnValkey
) -> None:
    old, _ = await brokers.pair(heartbeat_interval_ms=700)
    assert await produce(old, b"kept") == (NONE, 0)
    valkey.wipe()
    new = await brokers.start()
    assert new.epoch >= 2
    assert await stored(new) == [(0, b"kept")]
    assert await produce(old, b"follows") == (NONE, 1)
    assert await produce(new, b"next") == (NONE, 2)
    for rig in (new, old):
        assert await end_of(rig) == 3
        assert await stored(rig) == [(0, b"kept"), (1, b"follows"), (2, b"next")]


async def test_a_writer_is_not_given_where_a_higher_epoch_is_claimed(brokers: Brokers) -> None:
    """Registered, then checked: whoever claimed lists it or is seen by it."""
    old, _ = await brokers.pair()
    writers = brokers.writers()
    brokers.claim(2)
    with pytest.raises(ClusterInUseError, match="epoch 2"):
        await old.node.parts.cluster.starter.register_writer(1)
    assert brokers.writers() == writers + 1


@pytest.mark.parametrize("kept", [5000, 1])
async def test_footers_come_by_the_stream_where_it_has_them(brokers: Brokers, kept: int) -> None:
    """It keeps at least `kept`; the others are read from the bucket."""
    a = await brokers.start(stream_segments_max=kept)
    await create_topic(a, "t")
    for at in range(SEGMENTS):
        assert await produce(a, b"%d" % at) == (NONE, at)
    (entries,) = [await a.sequencer.read_visible(a.epoch, 0, block_ms=1)]
    told = {keys.segment(entry.segment) for entry in entries}
    read: set[str] = set()

    def note(verb: BucketVerb, key: str) -> None:
        if verb is BucketVerb.GET:
            read.add(key)

    b = brokers.add()
    b.plan = note
    await b.start()
    assert {key for key in read if key.startswith(keys.LOG)} == set(a.segment_keys()) - told
    assert await stored(b) == [(at, b"%d" % at) for at in range(SEGMENTS)]
    assert (len(told) < SEGMENTS) == (kept == 1)


@pytest.mark.parametrize("footer", [b"no footer", b""])
async def test_a_footer_that_the_stream_has_damaged_is_read_from_the_bucket(
    brokers: Brokers, valkey: OwnValkey, footer: bytes
) -> None:
    a = await brokers.start()
    await create_topic(a, "t")
    assert await produce(a, b"kept") == (NONE, 0)
    stream = key_prefix(brokers.cluster_id, 0) + "visible"
    with Redis(unix_socket_path=str(valkey.path)) as redis:
        ((last, fields),) = cast(Any, redis.xrevrange(stream, count=1))
        redis.delete(stream)
        redis.xadd(stream, fields | {b"index": footer}, id=last)
    b = await brokers.start()
    assert await stored(b) == [(0, b"kept")]


async def test_what_is_open_when_a_broker_joins_comes_by_the_stream(brokers: Brokers) -> None:
    a = await brokers.start()
    await create_topic(a, "t", 4)
    assert await produce(a, b"before") == (NONE, 0)
    a.plan = ScriptedFaults({BucketVerb.CREATE: [HELD]})
    pending = send(a, b"pending", partition=0)
    await until(lambda: a.held == 1)
    puts = a.counts.snapshot().creates
    decided = send(a, b"decided", partition=1)  # in the bucket, and behind `pending` in its chain
    await until(lambda: a.counts.snapshot().creates == puts + 1 and len(a.segment_keys()) == 3)
    b = await brokers.start()
    assert await stored(b) == [(0, b"before")]
    assert await end_of(b, 1) == 0
    assert await stored(b, 1) == []
    a.let_go()
    assert await outcome(pending) == (NONE, 1)
    assert await outcome(decided) == (NONE, 0)
    assert await end_of(b) == 2
    assert await stored(b) == [(0, b"before"), (1, b"pending")]
    assert await stored(b, 1) == [(0, b"decided")]


async def test_a_new_epoch_stamps_the_gaps_that_it_finds(
    brokers: Brokers, valkey: OwnValkey
) -> None:
    """An offset reserved and never written, the records behind it in the bucket, nobody produces:
    readers of the bucket alone get past it."""
    a, b = await brokers.pair()
    a.plan = ScriptedFaults({BucketVerb.CREATE: [HELD]})
    lost = send(a, b"lost")
    await until(lambda: a.held == 1)
    segments = len(b.segment_keys())
    behind = send(b, b"behind")
    await until(lambda: len(b.segment_keys()) > segments)
    assert brokers.read_without_brokers(a) == (0, 1)
    valkey.wipe()
    assert await outcome(behind) == (NONE, 1)
    c = await brokers.start()
    assert (await stored(c))[0] == (1, b"behind")
    await until(lambda: brokers.read_without_brokers(c)[0] >= 2)
    a.let_go()
    assert await outcome(lost) == (NONE, 2)
    assert await end_of(c) == 3
    assert await stored(c) == [(1, b"behind"), (2, b"lost")]


async def test_a_broker_that_comes_back_from_silence_is_a_member_again(brokers: Brokers) -> None:
    a, b = await brokers.pair(**QUICK)
    await until(lambda: len(a.membership.members) == len(b.membership.members) == 2)
    a.fall_silent()
    await until(lambda: len(b.membership.members) == 1)
    assert b.membership.controller() == b.membership.me
    a.come_back()
    await until(lambda: len(b.membership.members) == 2)
    assert a.membership.controller() == b.membership.controller()


async def test_a_live_broker_lists_and_reads_nothing_that_it_has_seen(
    brokers: Brokers, valkey: OwnValkey
) -> None:
    """Neither the claimant nor who follows it; whoever comes anew reads them."""
    a, b = await brokers.pair()
    for sequence in range(5):
        assert await produce(a, b"seen") == (NONE, sequence)
    assert await end_of(b) == 5
    read: list[str] = []

    def note(verb: BucketVerb, key: str) -> None:
        if (verb is BucketVerb.GET and key.startswith(keys.LOG)) or (verb, key) == (
            BucketVerb.LIST,
            keys.LOG,
        ):
            read.append(key)

    a.plan = b.plan = note
    valkey.wipe()
    await until(lambda: all(rig.epoch == 2 and rig.health.ready for rig in (a, b)))
    assert await end_of(a) == await end_of(b) == 5
    assert not read
    late = brokers.add()
    late.plan = note
    await late.start()
    assert await end_of(late) == 5
    assert len(read) == 7, "a listing and six footers"
