"""Groups' offsets through the commit path: when they are answered, in which order they come, and
what becomes of them with their writer, their coordinator and their epoch."""

import asyncio
from functools import partial
from uuid import UUID

import pytest

from bucketlog.log_format.errors import SequencerError
from bucketlog.log_format.model import SegmentId, TopicIdPartition
from bucketlog.metadata.facts import OffsetRow, OffsetsCommitted
from bucketlog.metadata.sequencer.requests import FactStatus, WantedGroupEntry
from bucketlog.metadata.sequencer.scripts import SequencerVerb as Ask
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.backends.memory import MemoryBucket
from bucketlog.tiered_storage.faulty import BucketVerb, ScriptedFaults
from bucketlog.tiered_storage.segment import Seal, encode_seal
from tests.rigs.broker_rig import HELD, Rig, create_topic, produce, until
from tests.rigs.patience import PATIENCE_S
from tests.servers.own_valkey import OwnValkey

OK, NOT_COORDINATOR = FactStatus.OK, FactStatus.NOT_COORDINATOR


async def take(rig: Rig, broker: str = "one") -> int:
    return (await rig.sequencer.take_group(rig.epoch, "g", broker)).term


async def commit(
    rig: Rig, term: int, offset: int, *, partition: int = 0, when_reserved: bool = False
) -> FactStatus:
    topic = rig.view.topic("t")
    assert topic is not None
    row = OffsetRow(UUID(bytes=topic.topic_id), partition, offset, -1, "")
    fact = OffsetsCommitted(group="g", committed_ms=1, offsets=(row,))
    async with asyncio.timeout(PATIENCE_S):
        return await rig.committer.commit_fact(
            fact, WantedGroupEntry("g", term), when_reserved=when_reserved
        )


def committed(rig: Rig, partition: int = 0) -> int | None:
    topic = rig.view.topic("t")
    assert topic is not None
    row = rig.view.offsets("g").get(TopicIdPartition(topic.topic_id, partition))
    return None if row is None else row.offset


def holds(rig: Rig, puts: int) -> bool:
    return rig.held == puts


async def test_an_answered_commit_is_in_the_view_and_in_the_bucket(rig: Rig) -> None:
    assert await commit(rig, await take(rig), 5) is OK
    assert committed(rig) == 5
    assert len(rig.segment_keys()) == 2  # the topic, and the commit


async def test_a_commit_may_be_answered_as_soon_as_it_is_reserved(rig: Rig) -> None:
    term = await take(rig)
    rig.plan = ScriptedFaults({BucketVerb.CREATE: [HELD]})
    assert await commit(rig, term, 5, when_reserved=True) is OK
    assert committed(rig) is None
    await until(partial(holds, rig, 1))
    rig.let_go()
    await until(lambda: committed(rig) == 5)


async def test_commits_of_an_earlier_coordinator_are_refused(rig: Rig) -> None:
    first = await take(rig)
    second = await take(rig, "two")
    for when_reserved in (False, True):
        refused = await commit(rig, first, 9, when_reserved=when_reserved)
        assert refused is NOT_COORDINATOR
    assert await commit(rig, second, 5) is OK
    assert committed(rig) == 5
    assert len(rig.segment_keys()) == 2


async def test_the_last_of_many_commits_counts(rig: Rig) -> None:
    """Many of them ride in one flush, several flushes are in flight, with produced batches."""
    term = await take(rig)
    commits = [asyncio.create_task(commit(rig, term, offset)) for offset in range(50)]
    await produce(rig)
    commits += [asyncio.create_task(commit(rig, term, offset)) for offset in range(50, 100)]
    assert set(await asyncio.gather(*commits)) == {OK}
    assert committed(rig) == 99
    assert len(rig.segment_keys()) < 20


async def seal_next(rig: Rig, segment: SegmentId) -> None:
    assert rig.memory.create(keys.segment(segment), [encode_seal(Seal(segment, rig.epoch, 1))])


@pytest.mark.parametrize("when_reserved", [False, True])
async def test_void_commits_come_again_in_their_order(rig: Rig, when_reserved: bool) -> None:
    term = await take(rig)
    writer = rig.committer.writer
    rig.plan = ScriptedFaults({BucketVerb.CREATE: [HELD, HELD]})
    commits = []
    for number, partition in ((1, 0), (2, 0), (3, 1)):  # two in flight, one in the buffer
        sent = commit(rig, term, number, partition=partition, when_reserved=when_reserved)
        commits.append(asyncio.create_task(sent))
        await until(partial(holds, rig, min(number, 2)))
    await seal_next(rig, SegmentId(writer, 1))
    rig.let_go()
    assert await asyncio.gather(*commits) == [OK] * 3
    await until(lambda: committed(rig, 1) == 3)
    assert committed(rig) == 2
    assert rig.committer.writer != writer


async def test_a_void_commit_is_refused_once_the_group_was_taken(rig: Rig) -> None:
    """It had been accepted; the bucket decided otherwise, and now it would come too late."""
    term = await take(rig)
    writer = rig.committer.writer
    rig.plan = ScriptedFaults({BucketVerb.CREATE: [HELD]})
    late = asyncio.create_task(commit(rig, term, 9))
    await until(lambda: rig.held == 1)
    taken = await rig.sequencer.take_group(rig.epoch, "g", "two")
    assert len(taken.open_tickets) == 1
    await seal_next(rig, SegmentId(writer, 1))
    rig.let_go()
    assert await late is NOT_COORDINATOR
    assert await commit(rig, taken.term, 5) is OK
    assert committed(rig) == 5
    position = await rig.sequencer.position(rig.epoch)
    assert not taken.open_tickets & position.open_tickets


async def test_commits_that_nobody_waits_for_use_no_memory(rig: Rig) -> None:
    term = await take(rig)
    rig.sequencer.hold(Ask.RESERVE)
    in_hand = asyncio.create_task(commit(rig, term, 5))
    await until(lambda: rig.sequencer.held == 1)
    waiting = [asyncio.create_task(commit(rig, term, 6)) for _ in range(100)]
    await until(lambda: bool(rig.committer.buffer))
    for one in waiting:
        one.cancel()
    await until(lambda: not rig.committer.buffer)
    rig.sequencer.let_go()
    assert await in_hand is OK
    assert committed(rig) == 5


async def test_commits_fail_when_writing_stops(rig: Rig) -> None:
    term = await take(rig)
    rig.plan = ScriptedFaults({BucketVerb.CREATE: [HELD]})
    in_flight = asyncio.create_task(commit(rig, term, 5))
    await until(lambda: rig.held == 1)
    rig.health.stop_writing("the test says so")
    with pytest.raises(SequencerError, match="the test says so"):
        await in_flight
    with pytest.raises(SequencerError, match="the test says so"):
        await commit(rig, term, 6)


async def test_the_next_epoch_has_the_offsets_and_no_coordinator(valkey: OwnValkey) -> None:
    memory = MemoryBucket()
    before = Rig(valkey.path, memory=memory)
    try:
        await before.start()
        await create_topic(before, "t", 2)
        term = await take(before)
        for partition in (0, 1):
            assert await commit(before, term, 5 + partition, partition=partition) is OK
        valkey.wipe()
    finally:
        await before.stop()
    after = Rig(valkey.path, memory=memory)
    try:
        await after.start()
        assert [committed(after, partition) for partition in (0, 1)] == [5, 6]
        assert await commit(after, term, 9) is NOT_COORDINATOR
        assert await commit(after, await take(after), 7) is OK
        assert [committed(after, partition) for partition in (0, 1)] == [7, 6]
    finally:
        await after.stop()
