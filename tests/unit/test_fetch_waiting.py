"""A waiting Fetch: what a wake-up costs, and when it ends the wait."""

import asyncio
from uuid import UUID

import pytest
from kio.schema.errors import ErrorCode

from bucketlog.log_format.model import TopicIdPartition
from bucketlog.metadata.facts import TopicDeleted
from bucketlog.metadata.partition_log import PartitionLog
from bucketlog.stateless_broker.fetch.watching import TimerWheel
from tests.models.partition_batches import PARTITION, Planned, made
from tests.rigs.broker_rig import until
from tests.rigs.tiered_log import MIB, TOPIC, FetchAnswer, TieredLog

WAIT_MS = 60_000


def nth(number: int) -> TopicIdPartition:
    return TopicIdPartition(PARTITION.topic_id, PARTITION.partition + number)


class WatchedLog(TieredLog):
    """Partitions of equal batches, and how often a waiting Fetch has counted each of them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, partitions: int) -> None:
        super().__init__(partitions=partitions)
        self.partitions = [nth(number) for number in range(partitions)]
        self.counted: list[TopicIdPartition] = []
        self.ends = dict.fromkeys(self.partitions, 0)
        count = self.tier.available_bytes

        def counting(
            partition: TopicIdPartition, log: PartitionLog, offset: int, limit: int
        ) -> int:
            self.counted.append(partition)
            return count(partition, log, offset, limit)

        monkeypatch.setattr(self.tier, "available_bytes", counting)

    def grow(self, partition: TopicIdPartition) -> int:
        """One batch more; its size in bytes."""
        (batch,) = made([Planned(0, 1, 1)], self.ends[partition])
        self.ends[partition] += 1
        self.append([batch], partition)
        return len(batch)

    async def begin_fetch(self, min_bytes: int) -> "asyncio.Task[list[FetchAnswer]]":
        """A Fetch of all partitions that waits for `min_bytes` and has counted all of them."""
        wanted = [(partition, 0, MIB) for partition in self.partitions]
        grown = sum(end > 0 for end in self.ends.values())
        task = asyncio.create_task(self.fetch_all(wanted, wait_ms=WAIT_MS, min_bytes=min_bytes))
        await until(lambda: len(self.counted) == grown)
        await asyncio.sleep(0)
        self.counted.clear()
        return task

    async def grow_and_count(self, partition: TopicIdPartition) -> list[TopicIdPartition]:
        """What is counted because of one batch more."""
        self.counted.clear()
        self.grow(partition)
        await until(lambda: partition in self.counted)
        return list(self.counted)


async def test_a_wake_up_counts_only_what_has_grown(monkeypatch: pytest.MonkeyPatch) -> None:
    log = WatchedLog(monkeypatch, partitions=100)
    size, *_ = [log.grow(partition) for partition in log.partitions]
    task = await log.begin_fetch(min_bytes=110 * size)
    for number in (7, 7, 99, 0, 7):
        assert await log.grow_and_count(nth(number)) == [nth(number)]
    for number in range(10, 15):
        assert not task.done()
        log.grow(nth(number))
    assert sum(len(found.data) for found in await task) == 110 * size


async def test_what_was_deleted_meanwhile_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    log = WatchedLog(monkeypatch, partitions=3)
    size = log.grow(nth(0))
    task = await log.begin_fetch(min_bytes=3 * size)
    log.begin_at(1)
    await until(lambda: log.counted == [nth(0)])
    assert await log.grow_and_count(nth(1)) == [nth(1)]
    assert await log.grow_and_count(nth(2)) == [nth(2)]
    assert not task.done()
    log.grow(nth(1))
    await until(task.done)
    assert [len(found.data) for found in await task] == [0, 2 * size, size]


async def test_a_deletion_ends_the_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TimerWheel, "add", lambda *_: 0)  # no deadline ends it
    log = WatchedLog(monkeypatch, partitions=2)
    log.grow(nth(0))
    task = await log.begin_fetch(min_bytes=MIB)
    log.tell(TopicDeleted(topic_id=UUID(bytes=PARTITION.topic_id), name=TOPIC))
    await until(task.done)
    errors = [found.error for found in await task]
    assert errors == [ErrorCode.unknown_topic_or_partition] * 2
    assert log.watchers.watched == 0


async def test_a_watch_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    log = WatchedLog(monkeypatch, partitions=3)
    log.grow(nth(0))
    task = await log.begin_fetch(min_bytes=MIB)
    assert log.watchers.watched == 3
    task.cancel()
    await asyncio.wait({task})
    assert log.watchers.watched == 0
