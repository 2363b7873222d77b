"""Jobs of compaction on a bucket: they write what was planned, and say what they wrote."""

from collections.abc import AsyncIterator

import pytest

from bucketlog.log_format.errors import BucketRefusedError, CorruptObjectError, InvalidDataError
from bucketlog.log_format.model import Ticket, TierObject, TierRow, TopicIdPartition
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.backends.memory import MemoryBucket
from bucketlog.tiered_storage.backends.threaded import ThreadedBucket
from bucketlog.tiered_storage.manifest import decode_manifest
from bucketlog.tiered_storage.partition_segment import HEADER, check_partition_segment
from bucketlog.tiered_storage.tier_plan import ManifestPlan, ManifestTrim, SplitPlan
from bucketlog.tiered_storage.tier_writing import TierChange, TierWriter
from tests.rigs.split_logs import Ids, SplitLog

PLANNED = Ticket(1, 40)


class Job:
    def __init__(self, memory: MemoryBucket) -> None:
        self.memory = memory
        self.spent: list[int] = []
        self.bucket = ThreadedBucket(memory)
        self.ids = Ids()
        self.writer = self.begun(10**6)

    def begun(self, target: int) -> TierWriter:
        return TierWriter(
            bucket=self.bucket,
            planned=PLANNED,
            spend=self.spend,
            new_id=self.ids,
            now_ms=lambda: 7,
            segment_bytes_target=target,
            requests_in_flight=3,
        )

    async def spend(self, size_bytes: int) -> None:
        self.spent.append(size_bytes)

    def batches(self, partition: TopicIdPartition, row: TierRow) -> bytes:
        there = TierObject(partition, row.start, row.name, row.manifest)
        data = bytes(self.memory.get(keys.tier_object(there)).data)
        index = check_partition_segment(there, data)
        assert (index.end, len(data), index.batch_bytes) == (
            row.end,
            row.size_bytes,
            row.batch_bytes,
        )
        assert keys.planned_below(row.name, "") == PLANNED
        return data[len(HEADER) : index.batches_end]


@pytest.fixture
def log() -> SplitLog:
    return SplitLog(9)


@pytest.fixture
async def job(log: SplitLog) -> AsyncIterator[Job]:
    job = Job(log.bucket)
    yield job
    await job.bucket.close()


async def test_a_split_is_written_and_said(log: SplitLog, job: Job) -> None:
    plan = log.plan(below=4)
    changes = await job.writer.split(plan)
    assert [change.partition for change in changes] == sorted(plan.ranges)
    for change in changes:
        wanted = plan.ranges[change.partition]
        assert (change.start, change.end, change.replaced) == (wanted.start, wanted.end, ())
        found = b"".join(job.batches(change.partition, row) for row in change.added)
        assert found == b"".join(log.batches[change.partition])
    assert job.spent == [each.batch_bytes for each in plan.segments]


async def test_windows_are_joined_and_listed(log: SplitLog, job: Job) -> None:
    """Two windows of objects of one batch each; they are joined, and listed in a manifest."""
    rows: dict[TopicIdPartition, list[TierRow]] = {}
    batches: dict[TopicIdPartition, bytes] = {}
    for change in await job.begun(1).split(log.plan()):
        rows[change.partition] = list(change.added)
        batches[change.partition] = b"".join(log.batches[change.partition])
    for partition, mine in rows.items():
        change = await job.writer.join(partition, mine[1:4])
        assert change.replaced == tuple(row.name for row in mine[1:4])
        assert (change.start, change.end) == (mine[1].start, mine[3].end)
        (one,) = change.added
        mine[1:4] = [one]
        assert b"".join(job.batches(partition, row) for row in mine) == batches[partition]
        listed = await job.writer.list_rows(partition, ManifestPlan(None, tuple(mine[:2])))
        (manifest,) = listed.added
        assert listed.replaced == tuple(row.name for row in mine[:2])
        more = await job.writer.list_rows(partition, ManifestPlan(manifest, tuple(mine[2:4])))
        assert more.replaced == (manifest.name, *(row.name for row in mine[2:4]))
        (larger,) = more.added
        assert (larger.segments, larger.start, larger.end) == (4, mine[0].start, mine[3].end)
        assert await job.writer.read_manifest(partition, larger) == mine[:4]
        trimmed = await job.writer.trim(
            partition, larger, ManifestTrim(tuple(mine[1:4]), tuple(mine[:1]))
        )
        (left,) = trimmed.added
        there = TierObject(partition, left.start, left.name, True)
        data = log.bucket.get(keys.tier_object(there)).data
        assert decode_manifest(there, data) == mine[1:4]
        assert trimmed == TierChange(
            partition,
            larger.start,
            larger.end,
            (larger.name,),
            (left,),
            ((mine[0].start, mine[0].name),),
        )


async def test_what_is_gone_or_damaged_ends_the_job_and_nothing_is_written(
    log: SplitLog, job: Job
) -> None:
    plan = log.plan()
    gone = keys.segment(plan.segments[4].segment)
    data = bytearray(log.bucket.get(gone).data)
    log.bucket.delete([gone])
    with pytest.raises(CorruptObjectError, match="it is gone"):
        await job.writer.split(plan)
    data[20] ^= 1
    assert log.bucket.create(gone, [data])
    with pytest.raises(CorruptObjectError, match=gone):
        await job.writer.split(plan)
    lacking = SplitPlan(plan.segments[:4], plan.ranges)
    with pytest.raises(InvalidDataError, match="were expected"):
        await job.writer.split(lacking)
    assert list(log.bucket.list(keys.SEGMENTS)) == []


async def test_an_object_that_is_there_already_is_not_taken_for_one_s_own(
    log: SplitLog, job: Job
) -> None:
    plan = log.plan()
    await job.writer.split(plan)
    job.ids.again()
    with pytest.raises(BucketRefusedError, match="already"):
        await job.writer.split(plan)
