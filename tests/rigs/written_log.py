"""Logs for tests, written as a cluster writes them: registrations, chains, facts, stamps, seals.

A sequencer in a few lines: it hands out offsets and tickets in order and knows which reservations
are open. What lands in the bucket, and when, is the test's choice.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

from bucketlog.log_format.batch import Codec, read_header
from bucketlog.log_format.control_batch import Marker, encode_marker
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
    OffsetRow,
    PartitionsAdded,
    ProducerInitialised,
    TopicCreated,
    TopicDeleted,
    TransactionEnded,
    TransactionOffsets,
    encode_fact,
)
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.bucket import SyncBucket
from bucketlog.tiered_storage.segment import HEADER, Seal, batch_row, encode_footer, encode_seal

START_MS = 1_700_000_000_000
MARKER_PRODUCERS = 1 << 50


@dataclass
class ReservedSegment:
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


@dataclass
class _Transaction:
    """The running transaction of a producer, or what is left of the last one."""

    parts: dict[TopicIdPartition, None] = field(default_factory=dict)
    sequences: dict[TopicIdPartition, int] = field(default_factory=dict)


class WrittenLog:
    """Collect with `create_topic`, `append`, …; then `flush`, or `reserve` and `land` by hand."""

    def __init__(self, bucket: SyncBucket, *, epoch: int = 1) -> None:
        self.bucket = bucket
        self.epoch = epoch
        self.ticket = 0
        self.next_offset: dict[TopicIdPartition, int] = {}
        self.topics: dict[str, tuple[TopicId, int]] = {}
        self.open: dict[SegmentId, ReservedSegment] = {}
        self.visible: dict[TopicIdPartition, list[BatchIndex]] = {}
        self._next_seq: dict[WriterId, int] = {}
        self._ids = 0
        self._transactions: dict[int, _Transaction] = {}
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
        self.entry(encode_fact(fact))

    def entry(self, entry: FactEntry) -> None:
        """A fact as it is stored."""
        self._waiting.facts.append(entry)

    def partition(self, name: str, partition: int) -> TopicIdPartition:
        return TopicIdPartition(self.topics[name][0], partition)

    def append(
        self,
        name: str,
        partition: int,
        records: Sequence[DecodedRecord],
        *,
        codec: Codec = Codec.NONE,
        append_time_ms: int | None = None,
        producer_id: int = NO_PRODUCER_ID,
        transactional: bool = False,
    ) -> list[DecodedRecord]:
        """One batch for the next segment; returns the records at their offsets. `transactional`:
        in the running transaction of the producer, which owns the id `transactional_id_of`."""
        key = self.partition(name, partition)
        base = self.next_offset.get(key, 0)
        placed = [record._replace(offset=base + at) for at, record in enumerate(records)]
        self.next_offset[key] = base + len(placed)
        sequence = -1
        if transactional:
            running = self._transaction(producer_id)
            running.parts[key] = None
            sequence = running.sequences.get(key, 0)
            running.sequences[key] = sequence + len(placed)
        batch = encode_batch(
            placed,
            codec=codec,
            append_time_ms=append_time_ms,
            producer_id=producer_id,
            producer_epoch=0 if transactional else -1,
            base_sequence=sequence,
            transactional=transactional,
        )
        self.append_batch(key, batch)
        if append_time_ms is not None:
            placed = [record._replace(timestamp=append_time_ms) for record in placed]
        return placed

    def append_batch(self, key: TopicIdPartition, batch: bytes) -> None:
        self._waiting.batches.setdefault(key, []).append(batch)

    def _transaction(self, producer_id: int) -> _Transaction:
        if producer_id not in self._transactions:
            self._transactions[producer_id] = _Transaction()
            self.fact(
                ProducerInitialised(
                    id=transactional_id_of(producer_id),
                    producer_id=producer_id,
                    producer_epoch=0,
                    timeout_ms=60_000,
                    version=1,
                    at_ms=START_MS,
                )
            )
        return self._transactions[producer_id]

    def send_offsets(
        self, producer_id: int, group: str, offsets: dict[TopicIdPartition, int]
    ) -> None:
        """In the running transaction, for the next segment."""
        self._transaction(producer_id)
        rows = ((UUID(bytes=key.topic_id), key.partition, at) for key, at in offsets.items())
        self.fact(
            TransactionOffsets(
                id=transactional_id_of(producer_id),
                producer_id=producer_id,
                producer_epoch=0,
                group=group,
                offsets=tuple(OffsetRow(*row, -1, "") for row in rows),
                at_ms=START_MS,
            )
        )

    def end_transaction(self, producer_id: int, *, commit: bool) -> None:
        """A marker in each partition of the transaction, and the fact, for the next segment. The
        epoch remains, as for clients of version 1."""
        running = self._transaction(producer_id)
        for key in running.parts:
            base = self.next_offset.get(key, 0)
            self.next_offset[key] = base + 1
            batch = encode_marker(
                Marker(commit, self.epoch),
                base_offset=base,
                producer_id=producer_id,
                producer_epoch=0,
                timestamp_ms=START_MS,
            )
            self.append_batch(key, batch)
        running.parts.clear()
        self.fact(
            TransactionEnded(
                id=transactional_id_of(producer_id),
                producer_id=producer_id,
                producer_epoch=0,
                committed=commit,
                next_producer_id=producer_id,
                next_epoch=0,
                by="client",
                version=1,
                at_ms=START_MS,
            )
        )

    def marker(self, name: str, partition: int) -> None:
        """A transaction of its own that ends without a batch, for the next segment."""
        producer_id = MARKER_PRODUCERS + len(self._transactions)
        self._transaction(producer_id).parts[self.partition(name, partition)] = None
        self.end_transaction(producer_id, commit=True)

    def stamp(self, name: str, partition: int) -> None:
        """Let the next segment carry a stamp of a partition that it has no batch of."""
        self._waiting.stamps.add(self.partition(name, partition))

    def reserve(self, writer: WriterId | None = None) -> ReservedSegment:
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
        reserved = ReservedSegment(index, b"".join([*parts, encode_footer(index)]))
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

    def land(self, reserved: ReservedSegment, *, publish: bool = True) -> None:
        """The PUT arrives; with `publish`, the sequencer hears of it."""
        assert self.bucket.create(reserved.key, [reserved.data])
        if publish:
            self.publish(reserved)

    def publish(self, reserved: ReservedSegment) -> None:
        self.open.pop(reserved.index.segment)
        for part in reserved.index.partitions:
            self.visible.setdefault(part.partition, []).extend(part.batches)

    def void(self, reserved: ReservedSegment) -> None:
        """Its writer is sealed in its place."""
        segment = reserved.index.segment
        seal = encode_seal(Seal(segment, self.epoch, reserved.index.created_ms))
        assert self.bucket.create(reserved.key, [seal])
        for other in [other for other in self.open if other.writer == segment.writer]:
            if other.seq >= segment.seq:
                self.open.pop(other)

    def flush(self, writer: WriterId | None = None) -> ReservedSegment:
        reserved = self.reserve(writer)
        self.land(reserved)
        return reserved


def transactional_id_of(producer_id: int) -> str:
    return f"id of {producer_id}"


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
