"""A sequencer that is lost, replaced or rolled back: brokers go into the next epoch without a
restart; what was acknowledged stays, what was held is settled by the new epoch's chains alone."""

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from kio.schema.errors import ErrorCode

from bucketlog.log_format.model import SegmentId
from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.metadata.sequencer.redis_keys import KEYS
from bucketlog.metadata.sequencer.scripts import SequencerVerb as Ask
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.faulty import BucketVerb, Effect, Fault, ScriptedFaults
from bucketlog.tiered_storage.segment import Seal, encode_seal
from tests.rigs.broker_rig import HELD, Rig, create_topic, end_of, outcome, produce, send, until
from tests.rigs.several_brokers import QUICK, Brokers, stored
from tests.rigs.takeover import Load, copy_of, delete_key, put_back
from tests.servers.own_valkey import OwnValkey

NONE = ErrorCode.none
NOT_STATE = ("brokers", "nonces", "visible")
"""Keys whose loss does not end the epoch: they are made anew, or read from the bucket."""


def idempotent(sequence: int) -> dict[str, int]:
    return {"producer_id": 77, "producer_epoch": 0, "base_sequence": sequence}


def is_in(rig: Rig, epoch: int) -> bool:
    return rig.epoch == epoch and rig.health.ready


# Redis forgets -----------------------------------------------------------------------------------


async def test_an_idle_broker_begins_the_next_epoch_by_itself(rig: Rig, valkey: OwnValkey) -> None:
    assert await produce(rig, b"kept", **idempotent(0)) == (NONE, 0)
    rig.sequencer.hold(Ask.ACTIVATE)
    valkey.wipe()
    await until(lambda: rig.sequencer.held == 1)
    assert "epoch 1 is over: lost: the sequencer has no state" in rig.health.report()["writing"]
    assert await stored(rig) == [(0, b"kept")]
    assert await produce(rig, b"late", timeout=50) == (ErrorCode.request_timed_out, -1)
    answer = await rig.call(
        ApiKey.INIT_PRODUCER_ID, 4, transactional_id=None, transaction_timeout=0
    )
    assert answer.error_code is ErrorCode.coordinator_load_in_progress
    waiting = send(rig, b"waits", **idempotent(1))
    rig.sequencer.let_go()
    assert await outcome(waiting) == (NONE, 1)
    assert is_in(rig, 2)
    assert await produce(rig, b"kept", **idempotent(0)) == (NONE, 0), "a duplicate is known"
    assert await stored(rig) == [(0, b"kept"), (1, b"waits")]
    await until(lambda: rig.budget.held_bytes == 0)


@pytest.mark.parametrize("name", [key.name for key in KEYS])
async def test_any_single_key_may_get_lost_under_load(
    brokers: Brokers, valkey: OwnValkey, name: str
) -> None:
    a, b = await brokers.pair()
    async with Load([a, b]) as load:
        await load.more(10)
        delete_key(valkey.path, name)
        if name not in NOT_STATE:
            await until(lambda: is_in(a, 2) and is_in(b, 2))
        await load.more(20)
    await load.check()
    assert (a.epoch, b.epoch) == ((1, 1) if name in NOT_STATE else (2, 2))


async def test_redis_wiped_again_and_again_under_load(brokers: Brokers, valkey: OwnValkey) -> None:
    a, b = await brokers.pair()
    async with Load([a, b]) as load:
        for _ in range(5):
            await load.more(10)
            valkey.wipe()
        await load.more(20)
    await load.check()
    assert a.epoch == b.epoch >= 2
    assert brokers.claims() == a.epoch


async def test_redis_killed_and_started_empty_under_load(
    brokers: Brokers, valkey: OwnValkey
) -> None:
    a, b = await brokers.pair()
    async with Load([a, b]) as load:
        await load.more(10)
        valkey.stop()
        await until(lambda: not a.health.ready and not b.health.ready)
        assert "writing" not in a.health.report() | b.health.report(), "out of reach is not lost"
        valkey.start()
        await load.more(20)
    await load.check()
    assert is_in(a, 2)
    assert is_in(b, 2)


@pytest.mark.parametrize("restarted", [False, True])
async def test_redis_with_an_older_copy_of_its_data(
    brokers: Brokers, valkey: OwnValkey, restarted: bool
) -> None:
    """Another server, or the same one: its tickets and offsets were given out before."""
    a, b = await brokers.pair()
    load = Load([a, b])
    async with load:
        await load.more(10)
        older = copy_of(valkey.path)
        await load.more(10)
    if restarted:
        valkey.stop()
        valkey.start()
    put_back(valkey.path, older)
    async with load:
        await load.more(20)
    await load.check()
    assert a.epoch == b.epoch >= 2


async def test_brokers_that_notice_together_share_one_claim(
    brokers: Brokers, valkey: OwnValkey
) -> None:
    rigs = [await brokers.start() for _ in range(3)]
    await create_topic(rigs[0], "t", 4)
    nodes = [rig.membership.me.node_id for rig in rigs]
    for rig in rigs:
        rig.fall_silent()  # who claims says that it lives, before it does
    rigs[0].sequencer.hold_all()
    valkey.wipe()
    await until(lambda: all(is_in(rig, 2) for rig in rigs[1:]))
    rigs[0].sequencer.let_go()
    await until(lambda: all(is_in(rig, 2) for rig in rigs))
    assert brokers.claims() == 2
    for rig in rigs:
        rig.come_back()
    await until(lambda: all(len(rig.membership.members) == 3 for rig in rigs))
    assert [rig.membership.me.node_id for rig in rigs] == nodes
    for at, rig in enumerate(rigs):
        assert await produce(rig, b"%d" % at) == (NONE, at)


# What is held ------------------------------------------------------------------------------------


async def lose_everything(valkey: OwnValkey, *rigs: Rig) -> None:
    """All of Redis; the brokers are in the next epoch when this returns."""
    wanted = [rig.epoch + 1 for rig in rigs]
    valkey.wipe()
    await until(lambda: [rig.epoch for rig in rigs] == wanted)


async def test_a_put_that_arrived_is_acknowledged_where_it_stands(
    rig: Rig, valkey: OwnValkey
) -> None:
    rig.sequencer.hold(Ask.PUBLISH)
    sent = send(rig, b"held", **idempotent(0))
    await until(lambda: rig.sequencer.held == 1)
    await lose_everything(valkey, rig)
    assert await outcome(sent) == (NONE, 0)
    rig.sequencer.let_go()
    assert await produce(rig, b"next", **idempotent(1)) == (NONE, 1)
    assert await stored(rig) == [(0, b"held"), (1, b"next")]


@pytest.mark.parametrize("late", [False, True])
async def test_a_put_that_did_not_arrive_in_time_comes_again(
    rig: Rig, valkey: OwnValkey, late: bool
) -> None:
    """Its late arrival meets the seal."""
    fault = Fault(Effect.LATER, later_ms=1_000_000) if late else HELD
    rig.plan = ScriptedFaults({BucketVerb.CREATE: [fault]})
    writer = rig.committer.writer
    first = send(rig, b"first", **idempotent(0))
    await until(lambda: len(rig.committer.awaited()) == 1)
    second = send(rig, b"second", **idempotent(1))
    await lose_everything(valkey, rig)
    assert await outcome(first) == (NONE, 0)
    assert await outcome(second) == (NONE, 1)
    rig.let_go()
    assert await produce(rig, b"third", **idempotent(2)) == (NONE, 2)
    assert rig.committer.writer != writer
    assert await stored(rig) == [(0, b"first"), (1, b"second"), (2, b"third")]
    await until(lambda: rig.budget.held_bytes == 0)


async def test_a_put_that_arrived_behind_one_that_did_not_proves_nothing(
    rig: Rig, valkey: OwnValkey
) -> None:
    rig.plan = ScriptedFaults({BucketVerb.CREATE: [HELD]})
    writer = rig.committer.writer
    first = send(rig, b"first", **idempotent(0))
    await until(lambda: rig.held == 1)
    behind = keys.segment(SegmentId(writer, len(rig.segment_keys()) + 1))
    second = send(rig, b"second", **idempotent(1))
    elsewhere = send(rig, b"elsewhere", partition=1)
    await until(lambda: rig.memory.head(behind) is not None)
    await lose_everything(valkey, rig)
    assert await outcome(first) == (NONE, 0)
    assert await outcome(second) == (NONE, 1)
    assert (await outcome(elsewhere))[0] is NONE
    assert await stored(rig) == [(0, b"first"), (1, b"second")]
    assert [value for _, value in await stored(rig, 1)] == [b"elsewhere"]


async def test_what_is_being_reserved_comes_after_what_is_void(rig: Rig, valkey: OwnValkey) -> None:
    rig.plan = ScriptedFaults({BucketVerb.CREATE: [HELD]})
    sent = [send(rig, b"void", **idempotent(0))]
    await until(lambda: rig.held == 1)
    rig.sequencer.hold(Ask.RESERVE)
    sent.append(send(rig, b"in hand", **idempotent(1)))
    await until(lambda: rig.sequencer.held == 1)
    sent.append(send(rig, b"waits", **idempotent(2)))
    await lose_everything(valkey, rig)
    rig.sequencer.let_go()
    assert [await outcome(one) for one in sent] == [(NONE, 0), (NONE, 1), (NONE, 2)]
    assert await stored(rig) == [(0, b"void"), (1, b"in hand"), (2, b"waits")]


@pytest.mark.parametrize("step", [Ask.FENCE, Ask.REGISTER_WRITER])
async def test_while_a_writer_is_being_given_up(rig: Rig, valkey: OwnValkey, step: Ask) -> None:
    """Its void batches are in the chain's keeping before the fence, in the buffer after it."""
    rig.plan = ScriptedFaults({BucketVerb.CREATE: [HELD, HELD]})
    sent = [send(rig, b"one", **idempotent(0))]
    await until(lambda: rig.held == 1)
    sent.append(send(rig, b"two", **idempotent(1)))
    await until(lambda: rig.held == 2)
    sent.append(send(rig, b"three", **idempotent(2)))
    rig.sequencer.hold(step)
    segment = SegmentId(rig.writer, len(rig.segment_keys()))
    assert rig.memory.create(keys.segment(segment), [encode_seal(Seal(segment, 1, 1))])
    rig.let_go(0)
    await until(lambda: rig.sequencer.held == 1)
    valkey.wipe()
    await until(lambda: "writing" in rig.health.report())
    rig.sequencer.let_go()
    assert [await outcome(one) for one in sent] == [(NONE, at) for at in range(3)]
    rig.let_go()
    assert await stored(rig) == [(0, b"one"), (1, b"two"), (2, b"three")]
    assert rig.epoch == 2
    await until(lambda: rig.budget.held_bytes == 0)


async def test_topic_changes_that_were_held_are_settled(rig: Rig, valkey: OwnValkey) -> None:
    """The one that is in the log is not made again, the one that is not is."""
    rig.sequencer.hold(Ask.PUBLISH)
    there = asyncio.create_task(create_topic(rig, "there"))
    await until(lambda: rig.sequencer.held == 1)
    rig.plan = ScriptedFaults({BucketVerb.CREATE: [HELD]})
    again = asyncio.create_task(create_topic(rig, "again"))
    await until(lambda: rig.held == 1)
    await lose_everything(valkey, rig)
    assert await there is NONE
    rig.sequencer.let_go()
    assert await again is NONE
    assert {topic.name for topic in rig.view.topics()} == {"t", "there", "again"}


async def test_a_client_that_gives_up_between_epochs_is_not_written(
    rig: Rig, valkey: OwnValkey
) -> None:
    rig.plan = ScriptedFaults({BucketVerb.CREATE: [HELD]})
    void = send(rig, b"void", timeout=300)
    await until(lambda: rig.held == 1)
    rig.sequencer.hold(Ask.ACTIVATE)
    valkey.wipe()
    await until(lambda: rig.sequencer.held == 1)
    assert await produce(rig, b"waits", timeout=20) == (ErrorCode.request_timed_out, -1)
    assert await outcome(void) == (ErrorCode.request_timed_out, -1)
    rig.sequencer.let_go()
    assert await produce(rig, b"next") == (NONE, 0)
    assert await stored(rig) == [(0, b"next")]
    await until(lambda: rig.budget.held_bytes == 0)


# Others ------------------------------------------------------------------------------------------

STEPS = [
    pytest.param(
        lambda verb, key: verb is BucketVerb.CREATE and key.startswith(keys.EPOCHS), id="claim"
    ),
    pytest.param(
        lambda verb, key: verb is BucketVerb.LIST and key.startswith(keys.WRITERS), id="list"
    ),
    pytest.param(
        lambda verb, key: verb is BucketVerb.CREATE and key.startswith(keys.LOG), id="seal"
    ),
    pytest.param(lambda verb, key: verb is BucketVerb.GET and key.startswith(keys.LOG), id="fold"),
    pytest.param(
        lambda verb, key: verb is BucketVerb.CREATE and key.startswith(keys.WRITERS), id="register"
    ),
]


Step = Callable[[BucketVerb, str], bool]


def hold_and_fall_silent(rig: Rig, step: Step, verb: BucketVerb, key: str) -> Fault | None:
    if not step(verb, key):
        return None
    rig.fall_silent()
    return HELD


@pytest.mark.parametrize("step", STEPS)
async def test_a_claimant_that_dies_on_the_way_is_passed_over_and_follows(
    brokers: Brokers, valkey: OwnValkey, step: Step
) -> None:
    """Dead for all that the other sees; then it is back, and its late requests change nothing."""
    a, b = await brokers.pair(**QUICK, known_batches_max=0)
    assert await produce(a, b"a", **idempotent(0)) == (NONE, 0)
    b.sequencer.hold_all()
    await until(lambda: b.sequencer.on_their_way == 0)
    a.plan = partial(hold_and_fall_silent, a, step)
    valkey.wipe()
    await until(lambda: a.held > 0)
    b.sequencer.let_go()
    assert await produce(b, b"b", **idempotent(1)) == (NONE, 1)
    a.plan = ScriptedFaults({})
    a.come_back()
    a.let_go()
    assert await produce(a, b"again", **idempotent(2)) == (NONE, 2)
    for rig in (a, b):
        assert await end_of(rig) == 3
        assert await stored(rig) == [(0, b"a"), (1, b"b"), (2, b"again")]
    assert a.epoch == b.epoch


async def test_a_broker_that_reaches_only_the_old_redis_meets_a_seal(
    brokers: Brokers, tmp_path: Path
) -> None:
    """Its acknowledged records stay in the log; its new writes do not get there. It waits while the
    other broker works, then takes the log back."""
    old = await brokers.start(takeover_quiet_ms=1500)
    await create_topic(old, "t", 4)
    assert await produce(old, b"acknowledged", **idempotent(0)) == (NONE, 0)
    (tmp_path / "other").mkdir()
    other = OwnValkey(tmp_path / "other")
    other.start()
    new = Rig(other.path, memory=brokers.memory, cluster_id=brokers.cluster_id)
    try:
        await new.start()
        assert new.epoch == 2
        assert await produce(new, b"new", **idempotent(1)) == (NONE, 1)
        late = send(old, b"late", partition=1)
        await until(lambda: "epoch 2 has sealed" in old.health.report().get("writing", ""))
        asked = old.sequencer.calls[Ask.ACTIVE_EPOCH]
        await until(lambda: old.sequencer.calls[Ask.ACTIVE_EPOCH] > asked + 3)
        assert brokers.claims() == 2
        assert await stored(old) == [(0, b"acknowledged")], "it reads on"
        assert await produce(new, b"newer", **idempotent(2)) == (NONE, 2)
        assert new.epoch == 2
        assert await outcome(late) == (NONE, 0)
        assert old.epoch == 3
        assert await stored(old) == [(0, b"acknowledged"), (1, b"new"), (2, b"newer")]
    finally:
        await new.stop()
        other.stop()


async def test_a_zombie_of_an_old_epoch_settles_what_it_held(
    brokers: Brokers, valkey: OwnValkey
) -> None:
    """It slept through the end of its epoch with a PUT on its way."""
    zombie, other = await brokers.pair(**QUICK)
    zombie.plan = ScriptedFaults({BucketVerb.CREATE: [HELD]})
    held = send(zombie, b"held", **idempotent(0))
    await until(lambda: zombie.held == 1)
    zombie.sequencer.hold_all()
    await until(lambda: zombie.sequencer.on_their_way == 0)
    valkey.wipe()
    await until(lambda: is_in(other, 2))
    assert await produce(other, b"other") == (NONE, 0)
    assert zombie.epoch == 1
    zombie.let_go()
    await until(lambda: "epoch 2 has sealed" in zombie.health.report().get("writing", ""))
    zombie.sequencer.let_go()
    assert await outcome(held) == (NONE, 1)
    for rig in (zombie, other):
        assert await end_of(rig) == 2
        assert await stored(rig) == [(0, b"other"), (1, b"held")]
