"""Reading for fetches: how often the bucket is asked, and for what."""

import asyncio

import pytest

from bucketlog.log_format.errors import BucketUnavailableError, CorruptObjectError
from bucketlog.log_format.model import BatchIndex, SegmentId, TopicId, TopicIdPartition, WriterId
from bucketlog.metadata.partition_log import PartitionLog, StoredRange
from bucketlog.stateless_broker.fetch.read_ahead import ReadAhead
from bucketlog.stateless_broker.fetch.reading import RANGES_AT_ONCE, RangeReader, ReadLimits
from bucketlog.stateless_broker.fetch.segment_cache import SegmentCache
from bucketlog.stateless_broker.health import BrokerPart, Health
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.backends.memory import MemoryBucket
from bucketlog.tiered_storage.backends.threaded import ThreadedBucket
from bucketlog.tiered_storage.bucket import Body, Span, Suffix
from bucketlog.tiered_storage.counting import CountingBucket
from tests.rigs.broker_rig import until
from tests.rigs.patience import end_task

MIB = 1 << 20
PARTITION = TopicIdPartition(TopicId(bytes(16)), 0)


class Gated(ThreadedBucket):
    """Records the requests; answers when `open` is set. It answers on the event loop, so that the
    order of its answers, and with it the number of requests, does not depend on threads."""

    def __init__(self, objects: MemoryBucket) -> None:
        super().__init__(objects)
        self.objects = objects
        self.asked: list[tuple[str, int, int]] = []
        self.open = asyncio.Event()
        self.open.set()
        self.stuck: set[str] = set()
        """What is never answered."""

    async def get(self, key: str, span: Span | Suffix | None = None) -> Body:
        assert isinstance(span, Span)
        self.asked.append((key, span.start, span.length))
        await (asyncio.Event() if key in self.stuck else self.open).wait()
        await asyncio.sleep(0)
        return self.objects.get(key, span)


class Reading:
    def __init__(
        self, *, recent: int = 1, history: int = 2, read_ms_max: int = 60_000, cached: int = MIB
    ) -> None:
        self.objects = MemoryBucket()
        self.bucket = Gated(self.objects)
        self.cache = SegmentCache(recent_bytes_max=cached, history_bytes_max=64 * MIB)
        self.health = Health()
        self.reader = RangeReader(
            self.bucket, self.cache, self.health, limits=ReadLimits(recent, history, read_ms_max)
        )

    def put(self, seq: int, size: int) -> SegmentId:
        segment = SegmentId(WriterId("w"), seq)
        data = bytes((seq + at) % 251 for at in range(251)) * (size // 251 + 1)
        data = data[:size]
        assert self.objects.create(keys.segment(segment), [data])
        return segment

    def bytes_of(self, wanted: StoredRange) -> bytes:
        span = Span(wanted.position, wanted.length)
        return bytes(self.objects.get(keys.object_key(wanted.object), span).data)


async def test_what_was_written_here_is_not_asked_for() -> None:
    reading = Reading()
    segment = SegmentId(WriterId("w"), 0)
    reading.cache.became_visible(segment, 6, [b"abc", b"def"])
    assert b"".join(await reading.reader.read([StoredRange(segment, 1, 4)])) == b"bcde"
    assert reading.bucket.asked == []
    assert reading.reader.counts.bytes_from_memory == 4


async def test_a_recent_segment_is_read_once_and_whole_for_all_who_wait() -> None:
    reading = Reading()
    segment = reading.put(0, 1000)
    reading.cache.became_visible(segment, 1000)
    reading.bucket.open.clear()
    wanted = [StoredRange(segment, start, 10) for start in range(0, 1000, 100)]
    waiting = [asyncio.create_task(reading.reader.read([one])) for one in wanted]
    await until(lambda: len(reading.bucket.asked) == 1)
    reading.bucket.open.set()
    for one, parts in zip(wanted, await asyncio.gather(*waiting), strict=True):
        assert b"".join(parts) == reading.bytes_of(one)
    await reading.reader.read(wanted)
    assert reading.bucket.asked == [(keys.segment(segment), 0, 1000)]


async def test_what_is_old_is_read_as_it_is_wanted_and_kept() -> None:
    reading = Reading()
    segment = reading.put(0, 1000)
    assert len(b"".join(await reading.reader.read([StoredRange(segment, 100, 200)]))) == 200
    inner = StoredRange(segment, 150, 50)
    assert b"".join(await reading.reader.read([inner])) == reading.bytes_of(inner)
    assert reading.bucket.asked == [(keys.segment(segment), 100, 200)]
    await reading.reader.read([StoredRange(segment, 250, 100)])
    assert reading.bucket.asked[1:] == [(keys.segment(segment), 250, 100)]


async def test_history_has_a_way_of_its_own_which_is_counted_with_the_other() -> None:
    reading = Reading()
    newest, oldest = reading.put(1, 100), reading.put(0, 100)
    reading.cache.became_visible(newest, 100)
    counting, aside = CountingBucket(reading.bucket), Gated(reading.objects)
    reader = RangeReader(
        counting,
        reading.cache,
        reading.health,
        history=counting.beside(aside),
        limits=ReadLimits(1, 1, 60_000),
    )
    for segment in (newest, oldest):
        wanted = StoredRange(segment, 0, 100)
        assert b"".join(await reader.read([wanted])) == reading.bytes_of(wanted)
    assert reading.bucket.asked == [(keys.segment(newest), 0, 100)]
    assert aside.asked == [(keys.segment(oldest), 0, 100)]
    assert (counting.snapshot().gets, counting.snapshot().bytes_out) == (2, 200)


async def test_history_never_takes_the_tails_turn() -> None:
    reading = Reading(recent=1, history=2)
    old = [StoredRange(reading.put(seq, 100), 0, 100) for seq in range(5)]
    newest = reading.put(9, 100)
    reading.cache.became_visible(newest, 100)
    reading.bucket.open.clear()
    behind = [asyncio.create_task(reading.reader.read([one])) for one in old]
    await until(lambda: len(reading.bucket.asked) == 2)
    tail = asyncio.create_task(reading.reader.read([StoredRange(newest, 0, 10)]))
    await until(lambda: len(reading.bucket.asked) == 3)
    assert reading.bucket.asked[2][0] == keys.segment(newest)
    reading.bucket.open.set()
    await asyncio.gather(tail, *behind)


async def test_who_catches_up_reads_in_large_requests() -> None:
    """A client that asks for a megabyte at a time reads 64 MiB of one object."""
    reading = Reading()
    total, batch = 64 * MIB, 128 * 1024
    segment = reading.put(0, total)
    log = PartitionLog(PARTITION)
    for number in range(total // batch):
        log.append(segment, BatchIndex(number, number * batch, batch, 1, 0, 0, -1, -1, 0, -1))
    ahead = ReadAhead(reading.reader, bytes_ahead=8 * MIB)
    offset = read = 0
    while ranges := log.ranges(offset, MIB, at_least_one=True):
        ahead.note(PARTITION, log, offset, ranges)
        ahead.ask()
        parts = await reading.reader.read(ranges)
        assert b"".join(parts) == b"".join(map(reading.bytes_of, ranges))
        read += sum(len(part) for part in parts)
        offset += MIB // batch
    assert read == total
    assert len(reading.bucket.asked) == total // (8 * MIB)
    assert reading.reader.counts.requests == len(reading.bucket.asked)


@pytest.mark.parametrize(("together", "requests"), [(12, 70), (3, 110), (1, 240)])
async def test_those_who_catch_up_together_read_objects_whole(together: int, requests: int) -> None:
    """12 partitions of which each object has 600 KB: so many of them are asked for at a time. Who
    is not there yet when others begin is not read for."""
    reading = Reading()
    count, run, objects = 12, 600_000, 64
    logs = [PartitionLog(PARTITION) for _ in range(count)]
    for seq in range(objects):
        segment = reading.put(seq, count * run)
        for number, log in enumerate(logs):
            log.append(segment, BatchIndex(seq, number * run, run, 1, 0, 0, -1, -1, 0, -1))
    ahead = ReadAhead(reading.reader, bytes_ahead=8 * MIB)
    for offset in range(objects):
        for first in range(0, count, together):
            asked = []
            for number in range(first, first + together):
                ranges = logs[number].ranges(offset, MIB, at_least_one=True)
                partition = TopicIdPartition(PARTITION.topic_id, number)
                ahead.note(partition, logs[number], offset, ranges)
                asked += ranges
            ahead.ask()
            parts = await reading.reader.read(asked)
            assert b"".join(parts) == b"".join(map(reading.bytes_of, asked))
    assert len(reading.bucket.asked) <= requests


def test_who_catches_up_on_many_partitions_gets_a_batch_of_each_at_least() -> None:
    reading = Reading()
    ahead = ReadAhead(reading.reader, bytes_ahead=8 * MIB)
    batch = StoredRange(SegmentId(WriterId("w"), 0), 0, MIB)
    assert ahead.bounded(batch, 10 * MIB, 1) == 8 * MIB
    assert ahead.bounded(batch, 10 * MIB, 16) == 2 * MIB
    assert ahead.bounded(batch, 10 * MIB, 1000) == MIB
    assert ahead.bounded(batch, 1000, 1000) == 1000
    reading.cache.became_visible(SegmentId(WriterId("w"), 0), MIB)
    assert ahead.bounded(batch, 10 * MIB, 1000) == 10 * MIB


async def test_whoever_gives_up_leaves_few_requests_behind() -> None:
    """Others wait for those."""
    reading = Reading(history=2)
    many = [StoredRange(reading.put(seq, 10), 0, 10) for seq in range(10 * RANGES_AT_ONCE)]
    other = StoredRange(reading.put(10_000, 10), 0, 10)
    reading.bucket.open.clear()
    given_up = asyncio.create_task(reading.reader.read(many))
    await until(lambda: len(reading.bucket.asked) == 2)
    given_up.cancel()
    await asyncio.wait([given_up])
    reading.bucket.open.set()
    await reading.reader.read([other])
    assert len(reading.bucket.asked) <= RANGES_AT_ONCE + 1


async def test_what_is_there_in_time_is_answered_up_to_the_first_that_is_not() -> None:
    reading = Reading(recent=4, history=4, read_ms_max=500)
    ranges = [StoredRange(reading.put(seq, 10), 0, 10) for seq in range(6)]
    await reading.reader.read(ranges[4:5])
    stuck = keys.object_key(ranges[3].object)
    reading.bucket.stuck.add(stuck)
    assert await reading.reader.read(ranges) == [reading.bytes_of(one) for one in ranges[:3]]
    assert reading.health.is_degraded(BrokerPart.READING)
    assert await reading.reader.read(ranges[2:]) == [reading.bytes_of(ranges[2])]
    with pytest.raises(BucketUnavailableError):
        await reading.reader.read(ranges[3:])


async def test_a_bucket_that_does_not_answer_is_told() -> None:
    reading = Reading(read_ms_max=20)
    segment = reading.put(0, 100)
    reading.bucket.open.clear()
    with pytest.raises(BucketUnavailableError, match="20 ms"):
        await reading.reader.read([StoredRange(segment, 0, 10)])
    assert reading.health.degraded
    reading.bucket.open.set()


async def test_reading_recovers_without_a_reader() -> None:
    reading = Reading(read_ms_max=20)
    wanted = StoredRange(reading.put(0, 100), 10, 50)
    recovery = asyncio.create_task(reading.reader.recover())
    reading.bucket.open.clear()
    with pytest.raises(BucketUnavailableError):
        await reading.reader.read([wanted])
    key = keys.object_key(wanted.object)
    await until(lambda: reading.bucket.asked[1:2] == [(key, 10, 1)])
    assert reading.health.is_degraded(BrokerPart.READING)
    reading.bucket.open.set()
    await until(lambda: not reading.health.is_degraded(BrokerPart.READING))
    await end_task(recovery)


async def test_an_object_that_ends_too_early_is_named() -> None:
    reading = Reading()
    segment = reading.put(0, 100)
    with pytest.raises(CorruptObjectError, match="ends before byte 120") as told:
        await reading.reader.read([StoredRange(segment, 90, 30)])
    assert (told.value.key, told.value.position) == (keys.segment(segment), 100)
    assert reading.cache.find(StoredRange(segment, 90, 10)) is None
