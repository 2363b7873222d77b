"""Checkpoints by real brokers: written from the bucket, held against the view, begun with."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from random import Random
from uuid import uuid4

import pytest
from kio.schema.errors import ErrorCode

from bucketlog.log_format.checkpoint import Checkpoint
from bucketlog.log_format.errors import SequencerLostError
from bucketlog.log_format.model import Ticket, TopicIdPartition
from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.metadata.checkpoint import partitions_contradiction, restored
from bucketlog.metadata.facts import TopicCreated, encode_fact
from bucketlog.metadata.fold import fold
from bucketlog.metadata.view import View
from bucketlog.stateless_broker.epochs.committed_log import CommittedLog
from bucketlog.stateless_broker.epochs.joining import read_visible_log
from bucketlog.stateless_broker.health import BrokerPart
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.backends.threaded import ThreadedBucket
from bucketlog.tiered_storage.bucket import SyncBucket
from bucketlog.tiered_storage.checkpoint import encode_checkpoint, newest_first
from bucketlog.tiered_storage.faulty import BucketVerb, Fault
from bucketlog.tiered_storage.log_cut_reading import read_checkpoint, read_tails
from tests.models.indexes import commit
from tests.rigs.broker_rig import HELD, Rig, create_topic, end_of, outcome, produce, send, until
from tests.rigs.checkpoints import indexes_of, write_checkpoint
from tests.rigs.several_brokers import QUICK, Brokers, stored
from tests.servers.own_valkey import OwnValkey

NONE = ErrorCode.none


def checkpoints(bucket: SyncBucket) -> list[str]:
    return [info.key for info in newest_first(bucket.list(keys.CHECKPOINTS))]


def newer_than(bucket: SyncBucket, newest: str) -> bool:
    return any(key > newest for key in checkpoints(bucket))


def assert_is_what_is_below(bucket: SyncBucket, made: Checkpoint) -> None:
    below = [i for i in indexes_of(bucket, read_tails(bucket, None)) if i.ticket < made.ticket]
    state, expected = restored(made), fold(below)
    assert state.topics == expected.topics
    assert partitions_contradiction(state, expected) is None
    assert state.groups == expected.groups
    assert made.segments == len(below)


def only_of(prefix: str, fault: Fault) -> Callable[[BucketVerb, str], Fault | None]:
    return lambda verb, key: fault if verb is BucketVerb.CREATE and key.startswith(prefix) else None


def spoil(bucket: SyncBucket, key: str) -> None:
    data = bytearray(bucket.get(key).data)
    data[-1] ^= 1
    bucket.delete([key])
    assert bucket.create(key, [bytes(data)])


async def test_one_is_written_when_it_is_time_and_two_are_kept(brokers: Brokers) -> None:
    rig = await brokers.start(checkpoint_interval_ms=20)
    await create_topic(rig, "t", 4)
    newest = ""
    for number in range(4):
        for _ in range(2):  # the low ticket of the second is above the first
            assert (await produce(rig, b"%d" % number))[0] is NONE
        await until(partial(newer_than, brokers.memory, newest))
        newest = checkpoints(brokers.memory)[0]
    await until(lambda: len(checkpoints(brokers.memory)) == 2)
    made = read_checkpoint(brokers.memory)
    assert made is not None
    assert_is_what_is_below(brokers.memory, made)
    assert rig.health.ready


async def test_nothing_new_is_not_written(rig: Rig) -> None:
    assert await rig.checkpointer.write() is None  # the topic's own segment is below no low ticket
    await produce(rig)
    assert await rig.checkpointer.write() is not None
    assert await rig.checkpointer.write() is None
    assert len(checkpoints(rig.memory)) == 1


async def test_a_checkpoint_beyond_the_limit_is_not_written(brokers: Brokers) -> None:
    rig = await brokers.start(checkpoint_interval_ms=20, checkpoint_bytes_max=100)
    await create_topic(rig, "t")
    for _ in range(2):
        assert (await produce(rig))[0] is NONE
    await until(lambda: "checkpoints" in rig.health.report())
    reason = rig.health.report()["checkpoints"]
    assert "more than the limit of 100" in reason
    assert "BUCKETLOG_CHECKPOINT_BYTES_MAX" in reason
    assert checkpoints(brokers.memory) == []


async def test_many_segments_make_it_early(brokers: Brokers) -> None:
    rig = await brokers.start(checkpoint_segments=5)
    await create_topic(rig, "t")
    for number in range(8):
        await produce(rig, b"%d" % number)
    await until(lambda: bool(checkpoints(brokers.memory)))


async def test_a_segment_in_flight_is_left_for_later(brokers: Brokers) -> None:
    slow, quick = await brokers.pair()
    slow.plan = only_of(keys.LOG, HELD)
    waiting = send(slow, b"late", partition=1)
    await until(lambda: slow.held == 1)
    for number in range(3):
        assert await produce(quick, b"%d" % number) == (NONE, number)
    made = await quick.checkpointer.write()
    assert made is not None
    slow.let_go()
    assert await outcome(waiting) == (NONE, 0)
    assert_is_what_is_below(brokers.memory, made)
    assert made.segments == 1
    await produce(quick, b"3")
    later = await quick.checkpointer.write()
    assert later is not None
    assert_is_what_is_below(brokers.memory, later)
    assert later.segments == 5


async def test_a_cold_start_reads_it_and_what_is_after_it(
    valkey: OwnValkey, brokers: Brokers
) -> None:
    first = await brokers.start()
    await create_topic(first, "t", 4)
    for number in range(30):
        assert await produce(first, b"%d" % number) == (NONE, number)
    assert await first.checkpointer.write() is not None
    assert await produce(first, b"30") == (NONE, 30)
    await first.stop()
    valkey.wipe()
    second = brokers.add()
    await second.start()
    assert second.epoch == 2
    gets = second.counts.snapshot().gets
    assert gets < 10, gets
    assert await stored(second) == [(number, b"%d" % number) for number in range(31)]
    assert await produce(second, b"31") == (NONE, 31)
    made = await second.checkpointer.write()
    assert made is not None
    assert made.ticket.epoch == 2
    assert made.segments == 32
    assert_is_what_is_below(brokers.memory, made)


async def test_producers_are_known_from_it(valkey: OwnValkey, brokers: Brokers) -> None:
    first = await brokers.start()
    await create_topic(first, "t", 4)
    send_as = partial(produce, producer_id=7, producer_epoch=0)
    for number in range(3):
        assert await send_as(first, base_sequence=number) == (NONE, number)
    made = write_checkpoint(brokers.memory)
    await first.stop()
    valkey.wipe()
    second = await brokers.start()
    made = write_checkpoint(brokers.memory, active_epoch=2)
    assert made.segments == 4
    await second.stop()
    valkey.wipe()
    third = await brokers.start()
    assert await send_as(third, base_sequence=2) == (NONE, 2)
    assert await send_as(third, base_sequence=4) == (
        ErrorCode.out_of_order_sequence_number,
        -1,
    )
    assert await send_as(third, base_sequence=3) == (NONE, 3)


async def test_who_joins_begins_with_it(brokers: Brokers) -> None:
    first = await brokers.start(stream_segments_max=1)
    await create_topic(first, "t", 4)
    for number in range(250):
        await produce(first, b"%d" % number)
    assert await first.checkpointer.write() is not None
    await produce(first, b"250")
    second = brokers.add()
    await second.start()
    assert second.epoch == 1
    assert second.counts.snapshot().gets < 10
    assert await stored(second) == await stored(first)
    assert await produce(second, b"251") == (NONE, 251)
    assert await end_of(first) == 252


async def test_a_damaged_one_is_passed_over(
    valkey: OwnValkey, brokers: Brokers, caplog: pytest.LogCaptureFixture
) -> None:
    first = await brokers.start()
    await create_topic(first, "t", 4)
    for _ in range(2):
        for _ in range(3):
            await produce(first)
        assert await first.checkpointer.write() is not None
    newest, older = checkpoints(brokers.memory)
    spoil(brokers.memory, newest)
    await produce(first)
    with caplog.at_level(logging.ERROR):
        made = await first.checkpointer.write()
    assert newest in caplog.text
    assert made is not None
    assert_is_what_is_below(brokers.memory, made)
    assert checkpoints(brokers.memory) == [keys.checkpoint(made.ticket), newest, older]
    await first.stop()
    valkey.wipe()
    for key in checkpoints(brokers.memory):
        spoil(brokers.memory, key)
    second = await brokers.start()
    assert await end_of(second) == 7


async def test_what_the_view_contradicts_is_not_written(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    for partition in range(2):
        await produce(rig, partition=partition)
        await produce(rig, partition=partition)
    topic = rig.view.topic("t")
    assert topic is not None
    log = rig.view.log(TopicIdPartition(topic.topic_id, 0))
    assert log is not None
    log._positions[0] += 1
    with caplog.at_level(logging.ERROR):
        assert await rig.checkpointer.write() is None
    assert f"batches of partition 0 of topic {topic.topic_id.hex()}" in caplog.text
    assert checkpoints(rig.memory) == []
    assert not rig.health.ready
    assert "differ" in rig.health.report()["checkpoints"]
    log._positions[0] -= 1
    assert await rig.checkpointer.write() is not None
    assert rig.health.ready


@pytest.mark.parametrize(
    "what", ["a batch less", "a batch more", "a topic less", "a topic more", "an offset more"]
)
async def test_every_kind_of_contradiction_is_seen(rig: Rig, what: str) -> None:
    """The view is rebuilt from other segments than the bucket has."""
    await create_topic(rig, "u")
    await produce(rig, b"x", partition=3)
    await produce(rig, b"y")
    await produce(rig, b"z")
    indexes = indexes_of(rig.memory, read_tails(rig.memory, None))
    indexes.sort(key=lambda index: index.ticket)
    match what:
        case "a batch less":
            del indexes[2]
        case "a batch more":
            batch = indexes[2].partitions[0]
            elsewhere = replace(batch, partition=batch.partition._replace(partition=2))
            indexes[2] = replace(indexes[2], partitions=(batch, elsewhere))
        case "a topic less":
            del indexes[1]
        case "a topic more":
            fact = TopicCreated(topic_id=uuid4(), name="w", partitions=1)
            indexes[2] = replace(indexes[2], facts=(encode_fact(fact),))
        case _:
            fact_of_group = commit("g", {indexes[2].partitions[0].partition: 1})
            indexes[2] = replace(indexes[2], facts=(encode_fact(fact_of_group),))
    rig.view.become(View.of([]))  # what is shown never gets less in one step
    rig.view.become(View.of(indexes))
    assert await rig.checkpointer.write() is None
    assert "differ" in rig.health.report()["checkpoints"]


async def test_another_broker_writes_them_when_the_first_in_line_is_gone(brokers: Brokers) -> None:
    rigs = list(await brokers.pair(checkpoint_interval_ms=50, **QUICK))
    await until(lambda: all(len(rig.membership.members) == 2 for rig in rigs))
    line = [rig.membership.place_in_line(BrokerPart.CHECKPOINTS) for rig in rigs]
    assert sorted(line) == [0, 1]
    await rigs[line.index(0)].stop()
    heir = rigs[line.index(1)]
    while not checkpoints(brokers.memory):
        assert (await produce(heir))[0] is NONE
    made = read_checkpoint(brokers.memory)
    assert made is not None
    assert_is_what_is_below(brokers.memory, made)


async def test_one_that_is_written_while_an_epoch_starts_is_begun_with(
    valkey: OwnValkey, brokers: Brokers
) -> None:
    first = await brokers.start()
    await create_topic(first, "t", 4)
    for number in range(5):
        await produce(first, b"%d" % number)
    await first.stop()
    valkey.wipe()
    second = brokers.add()
    made: list[Checkpoint] = []

    def plan(verb: BucketVerb, key: str) -> Fault | None:
        if verb is BucketVerb.CREATE and key.startswith(keys.LOG) and not made:
            made.append(write_checkpoint(brokers.memory))
        return None

    second.plan = plan
    await second.start()
    assert made[0].ticket == Ticket(1, 5)
    assert await stored(second) == [(number, b"%d" % number) for number in range(5)]


async def test_under_load_each_is_what_is_below_it_and_no_contradiction_is_seen(
    brokers: Brokers,
) -> None:
    """Two brokers; batches, topics that come and go, and checkpoints all the while."""
    rigs = await brokers.pair()
    random = Random(1)
    ended = False

    async def load(rig: Rig, name: str) -> None:
        for number in range(40):
            await produce(rig, b"%d" % number, partition=random.randrange(4))
            if number % 5 == 2:
                assert await create_topic(rig, name) is NONE
            if number % 5 == 4:
                await rig.call(ApiKey.DELETE_TOPICS, 5, topic_names=[name], timeout=20_000)

    async def check() -> int:
        made = 0
        while not ended:
            for rig in rigs:
                written = await rig.checkpointer.write()
                if written is not None:
                    assert_is_what_is_below(brokers.memory, written)
                    made += 1
                assert rig.health.ready, rig.health.report()
        return made

    checking = asyncio.create_task(check())
    await asyncio.gather(*(load(rig, f"u{at}") for at, rig in enumerate(rigs)))
    ended = True
    assert await checking > 5


async def test_a_sequencer_that_knows_less_than_a_checkpoint_is_lost(rig: Rig) -> None:
    committed = CommittedLog(ThreadedBucket(rig.memory), footer_reads_in_flight=1)
    await produce(rig)
    await produce(rig)
    made = write_checkpoint(rig.memory)
    log = await read_visible_log(rig.epoch, sequencer=rig.sequencer, committed=committed)
    assert log.checkpoint == made
    assert len(log.segments) == 1
    ahead = replace(made, ticket=Ticket(1, 4))
    assert rig.memory.create(keys.checkpoint(ahead.ticket), [encode_checkpoint(ahead)])
    with pytest.raises(SequencerLostError, match="ticket 3 of epoch 1 is not settled"):
        await read_visible_log(rig.epoch, sequencer=rig.sequencer, committed=committed)
