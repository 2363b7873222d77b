"""Compaction by real brokers: what is read stays what was read, whoever compacts or dies."""

import asyncio

import pytest
from kio.schema.errors import ErrorCode

from bucketlog.inspect.verify import verify_log
from bucketlog.inspect.verify_report import Damage
from bucketlog.log_format.errors import BucketError, BucketRefusedError
from bucketlog.log_format.model import TierRow, TopicIdPartition
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.faulty import BucketVerb, Fault, FaultPlan
from tests.integration.test_deletion import Clock, names
from tests.rigs.broker_rig import Rig, create_topic, end_of, produce
from tests.rigs.readable_log import contents_of
from tests.rigs.several_brokers import Brokers, stored
from tests.servers.own_valkey import OwnValkey

NONE = ErrorCode.none
SOON = {"compaction_interval_ms": 1, "compaction_age_ms_min": 1, "partition_segment_bytes": 400}
"""Segments that are a millisecond old are split at once; objects of 200 bytes are full."""
PARTITIONS = range(4)


@pytest.fixture
def clock(brokers: Brokers) -> Clock:
    return Clock(brokers)


async def write(rig: Rig, rounds: int = 5, *, pad: bytes = b"") -> None:
    for number in range(rounds):
        for partition in PARTITIONS:
            value = b"%d of %d" % (number, partition) + pad
            assert (await produce(rig, value, partition=partition))[0] is NONE


async def everything(rig: Rig) -> list[list[tuple[int, bytes]]]:
    return [await stored(rig, partition) for partition in PARTITIONS]


def tier(rig: Rig, partition: int = 0) -> list[TierRow]:
    topic = rig.view.topic("t")
    assert topic is not None
    log = rig.view.log(TopicIdPartition(topic.topic_id, partition))
    assert log is not None
    return log.tier.rows


async def compact(rig: Rig, *, later_ms: int = 100) -> int:
    rig.clock_ms += later_ms
    return await rig.duties.compactor.round()


async def caught_up(*rigs: Rig) -> None:
    for rig in rigs:
        await end_of(rig)


def without_brokers(brokers: Brokers, rig: Rig) -> list[list[bytes]]:
    topic = rig.view.topic("t")
    assert topic is not None
    found = contents_of(brokers.memory)
    return [found[TopicIdPartition(topic.topic_id, number)].batches for number in PARTITIONS]


def damage(brokers: Brokers) -> list[Damage]:
    return verify_log(brokers.memory).damage


async def test_what_was_split_is_read_as_before_by_everybody(brokers: Brokers) -> None:
    a, b = await brokers.pair(**SOON)
    await write(a)
    before, bare = await everything(a), without_brokers(brokers, a)
    assert await compact(a) == 4
    await caught_up(a, b)
    for rig in (a, b):
        assert [len(tier(rig, partition)) for partition in PARTITIONS] == [1] * 4
        assert all(not len(log.batches.segments) for log in rig.view.logs().values())
        assert await everything(rig) == before
    assert without_brokers(brokers, a) == bare
    assert damage(brokers) == []
    await write(b, 1)
    assert [rows[:-1] for rows in await everything(b)] == before


async def test_younger_segments_wait(brokers: Brokers) -> None:
    rig = await brokers.start(compaction_interval_ms=1000, compaction_age_ms_min=10)
    await create_topic(rig, "t", 4)
    await write(rig, 1)
    assert await compact(rig, later_ms=999) == 0
    assert await compact(rig, later_ms=1) == 4


async def test_small_ones_are_merged_and_old_ones_listed(brokers: Brokers) -> None:
    rig = await brokers.start(**SOON)
    await create_topic(rig, "t", 4)
    for _ in range(20):
        await write(rig, 1)
        await compact(rig)
    assert len(tier(rig)) < 10
    for _ in range(66):  # large ones
        await write(rig, 1, pad=bytes(200))
        await compact(rig)
    assert tier(rig)[0].manifest
    assert len(tier(rig)) < 66
    before = await everything(rig)
    assert [offset for offset, _ in before[0]] == list(range(len(before[0])))
    assert await rig.checkpointer.write() is not None
    beside = await brokers.start(**SOON)
    assert await everything(beside) == before
    assert len(without_brokers(brokers, rig)[0]) == len(before[0])
    assert damage(brokers) == []


async def test_two_at_once_and_one_of_them_counts(brokers: Brokers) -> None:
    a, b = await brokers.pair(**SOON)
    await write(a)
    before = await everything(b)
    await asyncio.gather(compact(a), compact(b))
    await caught_up(a, b)
    assert tier(a) == tier(b)
    assert len(tier(a)) == 1
    assert len(names(brokers, keys.SEGMENTS)) == 8
    assert await everything(a) == await everything(b) == before


async def test_a_job_that_dies_in_the_middle_changes_nothing(brokers: Brokers) -> None:
    rig = await brokers.start(**SOON)
    await create_topic(rig, "t", 4)
    await write(rig)
    before = await everything(rig)
    rig.plan = failing_after(2)
    with pytest.raises(BucketError):
        await compact(rig)
    assert len(names(brokers, keys.SEGMENTS)) == 2
    assert tier(rig) == []
    rig.plan = failing_after(1000)
    assert await compact(rig) == 4
    assert await everything(rig) == before


def failing_after(count: int) -> FaultPlan:
    left = [count]

    def plan(verb: BucketVerb, key: str) -> Fault | None:
        if verb is BucketVerb.CREATE and key.startswith(keys.SEGMENTS):
            left[0] -= 1
            if left[0] < 0:
                return Fault(error=BucketRefusedError("not now"))
        return None

    return plan


async def test_what_nobody_names_goes_and_what_was_replaced(
    brokers: Brokers, clock: Clock, valkey: OwnValkey
) -> None:
    """Log segments, merged segments, and those of a job that came too late, a safety age later."""
    a, b = await brokers.pair(**SOON)
    await write(a)
    await asyncio.gather(compact(a), compact(b))
    await write(a)
    await compact(a)
    for _ in range(8):
        await write(a, 1)
        await compact(a)
    before = await everything(a)
    for _ in range(4):
        for _ in range(2):
            await write(a, 1)
            assert await a.checkpointer.write() is not None
        await a.duties.deleter.round()
        clock.pass_hours(25)
    deleted = a.epochs.work._broker.counts.upkeep.deleted_by_kind
    assert deleted["tier objects"] > 0
    assert deleted["orphans"] == 4
    assert deleted["segments"] > 20
    named = {row.name for number in PARTITIONS for row in tier(a, number)}
    left = [keys.parse_tier_object(info.key) for info in brokers.memory.list(keys.SEGMENTS)]
    assert {there.name for there in left} == named
    await caught_up(b)
    for rig in (a, b):
        assert [rows[: len(before[0])] for rows in await everything(rig)] == before
    assert damage(brokers) == []
    await a.stop()
    await b.stop()
    valkey.wipe()
    after = await brokers.start(**SOON)
    assert [rows[: len(before[0])] for rows in await everything(after)] == before
    after.clock_ms = a.clock_ms
    assert await compact(after) > 0
    assert [rows[: len(before[0])] for rows in await everything(after)] == before
