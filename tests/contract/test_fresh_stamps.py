"""Readers of the bucket alone, beside a real sequencer (docs/format/segment.md, hw stamps): a void
reservation of an idle partition stops them until a fresh stamp is committed."""

from uuid import UUID

import pytest

from bucketlog.log_format.model import (
    PartitionIndex,
    SegmentId,
    SegmentIndex,
    Ticket,
    TopicIdPartition,
    WriterId,
)
from bucketlog.log_format.records import encode_batch
from bucketlog.metadata.facts import TopicCreated, encode_fact
from bucketlog.metadata.fold import fold
from bucketlog.metadata.sequencer.requests import FenceResult, FenceStatus, PublishStatus
from bucketlog.metadata.view import View, ViewChange
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.backends.memory import MemoryBucket
from bucketlog.tiered_storage.log_cut_reading import read_log
from bucketlog.tiered_storage.segment import HEADER, Seal, encode_footer, encode_seal
from tests.rigs.readable_log import readable_in
from tests.rigs.written_log import row_of, some_records
from tests.servers.sequencing import Sequencing, plain


class Log:
    """Partition 0 of `t`: reserved on the server, written into a bucket as brokers do."""

    def __init__(self, sequencing: Sequencing) -> None:
        self.sequencing = sequencing
        self.bucket = MemoryBucket()
        self.partition = TopicIdPartition(sequencing.topic_ids["t"], 0)
        self.seqs = {sequencing.a: 0, sequencing.b: 0}
        for writer in self.seqs:
            assert self.bucket.create(keys.writer_registration(1, writer), [b"{}"])
        created = TopicCreated(topic_id=UUID(bytes=self.partition.topic_id), name="t", partitions=2)
        segment = self.next_segment(sequencing.a)
        self.put(SegmentIndex(segment, Ticket(1, 0), 0, 0, (), (encode_fact(created),)))

    def next_segment(self, writer: WriterId) -> SegmentId:
        self.seqs[writer] += 1
        return SegmentId(writer, self.seqs[writer] - 1)

    async def reserve(self, writer: WriterId, records: int) -> tuple[SegmentIndex, bytes]:
        """A segment with one batch, or with a stamp alone; nothing is written yet."""
        wanted = [plain(records)] if records else []
        answer = await self.sequencing.ask(writer, {("t", 0): wanted})
        assert answer.ticket is not None
        batch = b""
        if records:
            base = answer.batches[0][0].base_offset
            batch = encode_batch(
                [
                    record._replace(offset=base + at)
                    for at, record in enumerate(some_records(records))
                ]
            )
        rows = (row_of(batch, len(HEADER)),) if batch else ()
        part = PartitionIndex(self.partition, answer.hw_stamps[0], rows)
        segment = self.next_segment(writer)
        return SegmentIndex(segment, answer.ticket, answer.low_ticket, 0, (part,), ()), batch

    def put(self, index: SegmentIndex, batch: bytes = b"") -> None:
        body = [HEADER, batch, encode_footer(index)]
        assert self.bucket.create(keys.segment(index.segment), body)

    async def write(self, writer: WriterId, records: int) -> tuple[SegmentIndex, PublishStatus]:
        index, batch = await self.reserve(writer, records)
        self.put(index, batch)
        return index, await self.sequencing.publish(writer, index.segment.seq)

    async def seal(self, segment: SegmentId) -> FenceResult:
        body = [encode_seal(Seal(segment, 1, 0))]
        assert self.bucket.create(keys.segment(segment), body)
        return await self.sequencing.fence(*segment)

    def read(self) -> tuple[int, int]:
        """The end that a reader of the bucket alone finds, and the batches it withholds."""
        found = readable_in(read_log(self.bucket))[self.partition]
        return found.end_offset, found.withheld


@pytest.fixture
def log(sequencing: Sequencing) -> Log:
    return Log(sequencing)


async def test_a_reader_stalls_at_a_void_reservation_until_a_fresh_stamp(log: Log) -> None:
    a, b = log.sequencing.a, log.sequencing.b
    await log.write(a, 100)
    void, _ = await log.reserve(b, 10)
    later, status = await log.write(a, 10)
    assert (later.partitions[0].hw_stamp, status) == (100, PublishStatus.DECIDED)
    assert log.read() == (100, 1)
    fence = await log.seal(void.segment)
    assert fence == FenceResult(FenceStatus.FENCED, void.segment.seq)
    assert log.read() == (100, 1)
    fresh, _ = await log.reserve(a, 0)
    assert fresh.partitions == (PartitionIndex(log.partition, 120, ()),)
    assert log.read() == (100, 1)
    log.put(fresh)
    assert log.read() == (120, 0)


async def test_a_void_tail_moves_no_stamp(log: Log) -> None:
    """Its offsets may be given out again by the next epoch."""
    a, b = log.sequencing.a, log.sequencing.b
    await log.write(a, 100)
    void, _ = await log.reserve(b, 10)
    await log.seal(void.segment)
    fresh, _ = await log.write(a, 0)
    assert fresh.partitions[0].hw_stamp == 100
    assert log.read() == (100, 0)


async def test_a_fresh_stamp_that_is_void_counts_for_nothing(log: Log) -> None:
    """Its writer was sealed before it: its object stands behind the seal."""
    a, b = log.sequencing.a, log.sequencing.b
    c = await log.sequencing.writer()
    log.seqs[c] = 0
    assert log.bucket.create(keys.writer_registration(1, c), [b"{}"])
    await log.write(a, 100)
    void, _ = await log.reserve(b, 10)
    await log.write(a, 10)
    await log.seal(void.segment)
    sealed, _ = await log.reserve(c, 1)
    fresh, _ = await log.reserve(c, 0)
    log.put(fresh)
    await log.seal(sealed.segment)
    assert log.read() == (100, 1)


async def test_fold_and_view_take_a_stamp_alone(log: Log) -> None:
    a = log.sequencing.a
    await log.write(a, 3)
    fresh, status = await log.write(a, 0)
    assert status is PublishStatus.VISIBLE
    segments = read_log(log.bucket).segments
    assert segments[-1] == fresh
    assert fold(segments).partitions[log.partition].next_offset == 3
    view = View()
    for index in segments[:-1]:
        view.apply(index)
    assert view.apply(fresh) == ViewChange([], [])
    gone = PartitionIndex(TopicIdPartition(log.partition.topic_id, 99), 7, ())
    assert fold([*segments[:-1], segment_with(fresh, gone)]).topics == fold(segments).topics


def segment_with(index: SegmentIndex, part: PartitionIndex) -> SegmentIndex:
    """A stamp of a partition that is no more."""
    return SegmentIndex(
        index.segment, index.ticket, index.low_ticket, index.created_ms, (part,), index.facts
    )
