"""Logs for tests, written as a cluster writes them: registrations, chains, facts, stamps, seals.

A sequencer in a few lines: it hands out offsets and tickets in order and knows which reservations
are open. What lands in the bucket, and when, is the test's choice.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

from bucketlog.log_format.batch import Codec, read_header
from bucketlog.log_format.model import (
    NO_PRODUCER_ID,
    BatchIndex,
    FactEntry,
    PartitionIndex,
    SegmentId,
    SegmentIndex,
    Ticket,
    TopicId,
    TopicIdPartition,
    WriterId,
)
from bucketlog.log_format.records import DecodedRecord, Header, encode_batch
from bucketlog.metadata.facts import (
    Fact,
    PartitionsAdded,
    TopicCreated,
    TopicDeleted,
    encode_fact,
)
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.bucket import SyncBucket
from bucketlog.tiered_storage.segment import HEADER, Seal, batch_row, encode_footer, encode_seal
from bucketlog.tiered_storage.transaction_outcomes import Marker

START_MS = 1_700_000_000_000


@dataclass
class Reserved:
    """A segment with its offsets and its ticket, whose object may or may not be in the bucket."""

    index: SegmentIndex
    data: bytes

    @property
    def key(self) -> str:
        return keys.segment(self.index.segment)


@dataclass
class _Waiting:
    batches: dict[TopicIdPartition, list[bytes]] = field(default_factory=dict)
    facts: list[FactEntry] = field(default_factory=list)
    stamps: set[TopicIdPartition] = field(default_factory=set)


class WrittenLog:
    """Collect with `create_topic`, `append`, …; then `flush`, or `reserve` and `land` by hand."""

    def __init__(self, bucket: SyncBucket, *, epoch: int = 1) -> None:
        self.bucket = bucket
        self.epoch = epoch
        self.ticket = 0
        self.next_offset: dict[TopicIdPartition, int] = {}
        self.topics: dict[str, tuple[TopicId, int]] = {}
        self.open: dict[SegmentId, Reserved] = {}
        self.visible: dict[TopicIdPartition, list[BatchIndex]] = {}
        self._next_seq: dict[WriterId, int] = {}
        self._ids = 0
        self._waiting = _Waiting()
        self.first_writer = self.register()

    def _fresh_id(self) -> UUID:
        self._ids += 1
        return UUID(int=(self.epoch << 64) + self._ids, version=4)

    def register(self) -> WriterId:
        writer = WriterId(self._fresh_id().hex)
        assert self.bucket.create(keys.writer_registration(self.epoch, writer), [b"{}"])
        self._next_seq[writer] = 0
        return writer

    def create_topic(self, name: str, partitions: int = 1) -> TopicId:
        topic_id = self._fresh_id()
        self.topics[name] = (TopicId(topic_id.bytes), partitions)
        self.fact(TopicCreated(topic_id=topic_id, name=name, partitions=partitions))
        return TopicId(topic_id.bytes)

    def delete_topic(self, name: str) -> None:
        topic_id, _ = self.topics.pop(name)
        self.fact(TopicDeleted(topic_id=UUID(bytes=topic_id), name=name))

    def add_partitions(self, name: str, total: int) -> None:
        topic_id, _ = self.topics[name]
        self.topics[name] = (topic_id, total)
        self.fact(PartitionsAdded(topic_id=UUID(bytes=topic_id), name=name, partitions=total))

    def fact(self, fact: Fact) -> None:
        """For the next segment."""
        self._waiting.facts.append(encode_fact(fact))

    def partition(self, name: str, partition: int) -> TopicIdPartition:
        return TopicIdPartition(self.topics[name][0], partition)

    def append(
        self,
        name: str,
        partition: int,
        records: Sequence[DecodedRecord],
        *,
        codec: Codec = Codec.NONE,
        control: bool = False,
        append_time_ms: int | None = None,
        producer_id: int = NO_PRODUCER_ID,
        transactional: bool = False,
    ) -> list[DecodedRecord]:
        """One batch for the next segment; returns the records at their offsets."""
        key = self.partition(name, partition)
        base = self.next_offset.get(key, 0)
        placed = [record._replace(offset=base + at) for at, record in enumerate(records)]
        self.next_offset[key] = base + len(placed)
        batch = encode_batch(
            placed,
            codec=codec,
            control=control,
            append_time_ms=append_time_ms,
            producer_id=producer_id,
            transactional=transactional,
        )
        self.append_batch(key, batch)
        if append_time_ms is not None:
            placed = [record._replace(timestamp=append_time_ms) for record in placed]
        return placed

    def append_batch(self, key: TopicIdPartition, batch: bytes) -> None:
        self._waiting.batches.setdefault(key, []).append(batch)

    def end_transaction(self, name: str, partition: int, producer_id: int, *, commit: bool) -> None:
        """A control batch for the next segment (KIP-98)."""
        kind = Marker.COMMIT if commit else Marker.ABORT
        marker = DecodedRecord(0, START_MS, struct.pack(">hh", 0, kind), struct.pack(">hi", 0, 0))
        self.append(
            name, partition, [marker], control=True, producer_id=producer_id, transactional=True
        )

    def stamp(self, name: str, partition: int) -> None:
        """Let the next segment carry a stamp of a partition that it has no batch of."""
        self._waiting.stamps.add(self.partition(name, partition))

    def reserve(self, writer: WriterId | None = None) -> Reserved:
        """Give what waits a place in a chain; nothing is written."""
        writer = self.first_writer if writer is None else writer
        waiting, self._waiting = self._waiting, _Waiting()
        segment = SegmentId(writer, self._next_seq[writer])
        self._next_seq[writer] += 1
        partitions = []
        parts = [HEADER]
        position = len(HEADER)
        for key in sorted(waiting.batches.keys() | waiting.stamps):
            rows = []
            for batch in waiting.batches.get(key, []):
                rows.append(row_of(batch, position))
                parts.append(batch)
                position += len(batch)
            partitions.append(PartitionIndex(key, self._stamp(key, rows), tuple(rows)))
        low = min((reserved.index.ticket.number for reserved in self.open.values()), default=None)
        index = SegmentIndex(
            segment=segment,
            ticket=Ticket(self.epoch, self.ticket),
            low_ticket=self.ticket if low is None else low,
            created_ms=START_MS + self.ticket,
            partitions=tuple(partitions),
            facts=tuple(waiting.facts),
        )
        self.ticket += 1
        reserved = Reserved(index, b"".join([*parts, encode_footer(index)]))
        self.open[segment] = reserved
        return reserved

    def _stamp(self, key: TopicIdPartition, rows: Sequence[BatchIndex]) -> int:
        """With batches the lowest open base offset, else `next`, both before this reservation.
        Without, the high watermark shown: the end of the last visible batch below an open one."""
        bases = [
            row.base_offset
            for reserved in self.open.values()
            for part in reserved.index.partitions
            if part.partition == key
            for row in part.batches
        ]
        if rows:
            return min([*bases, rows[0].base_offset])
        shown = self.visible.get(key, [])
        lowest = min(bases, default=self.next_offset.get(key, 0))
        return max((row.next_offset for row in shown if row.base_offset < lowest), default=0)

    def land(self, reserved: Reserved, *, publish: bool = True) -> None:
        """The PUT arrives; with `publish`, the sequencer hears of it."""
        assert self.bucket.create(reserved.key, [reserved.data])
        if publish:
            self.publish(reserved)

    def publish(self, reserved: Reserved) -> None:
        self.open.pop(reserved.index.segment)
        for part in reserved.index.partitions:
            self.visible.setdefault(part.partition, []).extend(part.batches)

    def void(self, reserved: Reserved) -> None:
        """Its writer is sealed in its place."""
        segment = reserved.index.segment
        seal = encode_seal(Seal(segment, self.epoch, reserved.index.created_ms))
        assert self.bucket.create(reserved.key, [seal])
        for other in [other for other in self.open if other.writer == segment.writer]:
            if other.seq >= segment.seq:
                self.open.pop(other)

    def flush(self, writer: WriterId | None = None) -> Reserved:
        reserved = self.reserve(writer)
        self.land(reserved)
        return reserved


def row_of(batch: bytes, position: int) -> BatchIndex:
    header = read_header(batch)
    return batch_row(header, header.base_offset, position, len(batch))


def some_records(count: int, *, tag: str = "r", headers: bool = False) -> list[DecodedRecord]:
    """Records that tell themselves apart; keys and values are null now and then."""
    return [
        DecodedRecord(
            0,
            START_MS + at * 1000,
            None if at % 7 == 3 else b"%s-key-%d" % (tag.encode(), at % 5),
            None if at % 11 == 5 else b"%s-value-%d" % (tag.encode(), at),
            (Header("trace", b"%d" % at), Header("empty", None)) if headers and at % 2 else (),
        )
        for at in range(count)
    ]
