"""Jobs on a `WrittenLog`, done as brokers do them: objects first, then the entry that names them,
for the next segment of the log."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from bucketlog.log_format.batch import read_header
from bucketlog.log_format.model import Ticket, TierObject, TierRow, TopicIdPartition
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.manifest import encode_manifest
from bucketlog.tiered_storage.partition_segment import (
    PartitionSegmentWriter,
    check_partition_segment,
)
from tests.models.indexes import begin, swap, swapped
from tests.rigs.written_log import START_MS, ReservedSegment, WrittenLog


class Batch(NamedTuple):
    base_offset: int
    next_offset: int
    data: bytes


def batch_of(data: bytes) -> Batch:
    header = read_header(data)
    return Batch(header.base_offset, header.next_offset, data)


def batches_in(flushed: ReservedSegment) -> Iterator[tuple[TopicIdPartition, Batch]]:
    for part in flushed.index.partitions:
        for row in part.batches:
            yield (
                part.partition,
                batch_of(flushed.data[row.position : row.position + row.length]),
            )


class WrittenTier:
    def __init__(self, log: WrittenLog) -> None:
        self.log = log
        self._names = 0

    def _name(self) -> str:
        self._names += 1
        return keys.tier_name(Ticket(self.log.epoch, self.log.ticket), f"{self._names:016x}")

    def write(
        self, partition: TopicIdPartition, start: int, end: int, batches: Sequence[Batch]
    ) -> TierRow:
        """An object that nothing names yet."""
        writer = PartitionSegmentWriter(partition, start)
        for batch in batches:
            header = read_header(batch.data)
            writer.describe(
                header.base_offset,
                header.next_offset,
                len(batch.data),
                0 if header.is_control else header.record_count,
                header.max_timestamp,
            )
            writer.append(batch.data)
        made = writer.finish(end, self._name(), START_MS)
        assert self.log.bucket.create(keys.tier_object(made.there), made.parts)
        return made.row

    def split(self, partition: TopicIdPartition, batches: Sequence[Batch], start: int) -> TierRow:
        """`batches` leave the log segments, if the tier ends at `start`."""
        end = batches[-1].next_offset
        row = self.write(partition, start, end, batches)
        planned = (self.log.epoch, self.log.ticket)
        self.log.fact(swapped(swap(partition, start, end, row), planned=planned))
        return row

    def merge(self, partition: TopicIdPartition, rows: Sequence[TierRow]) -> TierRow:
        batches = [batch for row in rows for batch in self.read(partition, row)]
        row = self.write(partition, rows[0].start, rows[-1].end, batches)
        self._replace(partition, rows, row)
        return row

    def list_in_manifest(self, partition: TopicIdPartition, rows: Sequence[TierRow]) -> TierRow:
        made = encode_manifest(partition, rows, self._name())
        assert self.log.bucket.create(keys.tier_object(made.there), [made.data])
        self._replace(partition, rows, made.row)
        return made.row

    def _replace(self, partition: TopicIdPartition, rows: Sequence[TierRow], row: TierRow) -> None:
        planned = (self.log.epoch, self.log.ticket)
        start, end = rows[0].start, rows[-1].end
        names = [each.name for each in rows]
        self.log.fact(swapped(swap(partition, start, end, row, replaced=names), planned=planned))

    def begin_at(self, partition: TopicIdPartition, log_start: int) -> None:
        self.log.fact(begin({partition: log_start}))

    def read(self, partition: TopicIdPartition, row: TierRow) -> list[Batch]:
        there = TierObject.of(partition, row)
        data = bytes(self.log.bucket.get(keys.tier_object(there)).data)
        check_partition_segment(there, data)
        found, at = [], 16
        while at < 16 + row.batch_bytes:
            size = read_header(data, at).size_bytes
            found.append(batch_of(data[at : at + size]))
            at += size
        return found
