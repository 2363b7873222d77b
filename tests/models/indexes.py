"""Segment indexes for tests of the pure parts, in few words: one epoch, one writer, no bytes."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from bucketlog.log_format.batch import TRANSACTIONAL
from bucketlog.log_format.control_batch import MARKER_ATTRIBUTES, MARKER_BYTES
from bucketlog.log_format.model import (
    NO_PRODUCER_ID,
    BatchIndex,
    PartitionIndex,
    SegmentId,
    SegmentIndex,
    Ticket,
    TierRow,
    TopicId,
    TopicIdPartition,
    WriterId,
)
from bucketlog.metadata.facts import (
    Fact,
    LogStartPayload,
    LogStartsMoved,
    OffsetRow,
    OffsetsCommitted,
    OffsetsForgotten,
    PartitionRow,
    PartitionsAdded,
    ProducerInitialised,
    SwapPayload,
    TierRowPayload,
    TiersSwapped,
    TiersSwept,
    TopicConfigured,
    TopicCreated,
    TopicDeleted,
    TransactionalIdsForgotten,
    TransactionEnded,
    TransactionKept,
    TransactionOffsets,
    encode_fact,
)

WRITER = WriterId("a" * 32)


def topic_id(number: int) -> TopicId:
    return TopicId(UUID(int=number).bytes)


def partition(topic: int, number: int = 0) -> TopicIdPartition:
    return TopicIdPartition(topic_id(topic), number)


def create(topic: int, partitions: int = 1, name: str | None = None) -> Fact:
    """Topic 1 is `t1`."""
    return TopicCreated(topic_id=UUID(int=topic), name=name or f"t{topic}", partitions=partitions)


def delete(topic: int) -> Fact:
    return TopicDeleted(topic_id=UUID(int=topic), name=f"t{topic}")


def grow(topic: int, partitions: int) -> Fact:
    return PartitionsAdded(topic_id=UUID(int=topic), name=f"t{topic}", partitions=partitions)


def configure(topic: int, configs: Mapping[str, str | None], *, replaces_all: bool = False) -> Fact:
    return TopicConfigured(
        topic_id=UUID(int=topic), name=f"t{topic}", configs=configs, replaces_all=replaces_all
    )


def commit(
    group: str,
    offsets: Mapping[TopicIdPartition, int],
    *,
    at: int = 0,
    expires: int | None = None,
    metadata: str = "",
) -> Fact:
    """Committed `at` ms, in the leader epoch that is a tenth of the offset."""
    rows = (
        OffsetRow(UUID(bytes=topic), number, offset, offset // 10, metadata)
        for (topic, number), offset in offsets.items()
    )
    return OffsetsCommitted(group=group, committed_ms=at, expires_ms=expires, offsets=tuple(rows))


def forget(group: str, *partitions: TopicIdPartition) -> Fact:
    """Without partitions, all."""
    rows = tuple(PartitionRow(UUID(bytes=topic), number) for topic, number in partitions)
    return OffsetsForgotten(group=group, partitions=rows or None)


def initialise(
    transactional_id: str, producer_id: int, epoch: int = 0, *, version: int = 2, at: int = 0
) -> Fact:
    return ProducerInitialised(
        id=transactional_id,
        producer_id=producer_id,
        producer_epoch=epoch,
        timeout_ms=60_000,
        version=1 if version == 1 else 2,
        at_ms=at,
    )


def keep(
    transactional_id: str, pair: tuple[int, int], kept: tuple[int, int], *, at: int = 0
) -> Fact:
    """An init for `pair` that keeps the transaction begun by `kept`."""
    return TransactionKept(
        id=transactional_id,
        producer_id=pair[0],
        producer_epoch=pair[1],
        timeout_ms=60_000,
        version=2,
        two_phase=True,
        at_ms=at,
        txn_producer_id=kept[0],
        txn_producer_epoch=kept[1],
    )


def end(
    transactional_id: str,
    producer_id: int,
    epoch: int = 0,
    *,
    commit: bool,
    at: int = 0,
    follower: tuple[int, int] | None = None,
) -> Fact:
    """The next epoch is one higher, unless `follower` names the next pair."""
    next_producer_id, next_epoch = follower or (producer_id, epoch + 1)
    return TransactionEnded(
        id=transactional_id,
        producer_id=producer_id,
        producer_epoch=epoch,
        committed=commit,
        next_producer_id=next_producer_id,
        next_epoch=next_epoch,
        by="client",
        version=2,
        at_ms=at,
    )


def send_offsets(
    transactional_id: str,
    producer_id: int,
    epoch: int,
    group: str,
    offsets: Mapping[TopicIdPartition, int],
    *,
    at: int = 0,
    metadata: str = "",
) -> Fact:
    rows = (
        OffsetRow(UUID(bytes=topic), number, offset, -1, metadata)
        for (topic, number), offset in offsets.items()
    )
    return TransactionOffsets(
        id=transactional_id,
        producer_id=producer_id,
        producer_epoch=epoch,
        group=group,
        offsets=tuple(rows),
        at_ms=at,
    )


def forget_ids(*transactional_ids: str) -> Fact:
    return TransactionalIdsForgotten(ids=transactional_ids)


def tier_row(
    start: int, end: int, name: str = "", *, manifest: bool = False, size: int = 1000
) -> TierRow:
    """Named after its offsets where nothing is said."""
    return TierRow(start, end, name or f"{start}-{end}", manifest, size, size - 100, end, 1)


def swap(
    where: TopicIdPartition,
    start: int,
    end: int,
    *added: TierRow,
    replaced: Sequence[str] = (),
    removed: Sequence[tuple[int, str]] = (),
    cleaned_to: int = -1,
) -> SwapPayload:
    rows = tuple(TierRowPayload(*each) for each in added)
    topic = UUID(bytes=where.topic_id)
    return SwapPayload(
        topic, where.partition, start, end, tuple(replaced), rows, tuple(removed), cleaned_to
    )


def swapped(*swaps: SwapPayload, planned: tuple[int, int] = (1, 0)) -> Fact:
    return TiersSwapped(planned=planned, swaps=swaps)


def begin(starts: Mapping[TopicIdPartition, int]) -> Fact:
    rows = (
        LogStartPayload(UUID(bytes=topic), number, start)
        for (topic, number), start in starts.items()
    )
    return LogStartsMoved(partitions=tuple(rows))


def swept(epoch: int, ticket: int) -> Fact:
    return TiersSwept(below=(epoch, ticket))


def row(
    base_offset: int,
    records: int = 1,
    *,
    at: tuple[int, int] = (16, 100),
    timestamp: int = 0,
    producer: tuple[int, int, int] = (NO_PRODUCER_ID, -1, -1),
) -> BatchIndex:
    """`at`: position and length; `producer`: id, epoch, first sequence."""
    producer_id, epoch, sequence = producer
    position, length = at
    return BatchIndex(
        base_offset,
        position,
        length,
        records,
        records - 1,
        timestamp,
        producer_id,
        epoch,
        0,
        sequence,
    )


def in_transaction(
    base_offset: int, producer_id: int, epoch: int = 0, sequence: int = 0, *, records: int = 1
) -> BatchIndex:
    """A batch of an open transaction."""
    batch = row(base_offset, records, producer=(producer_id, epoch, sequence))
    return batch._replace(attributes=TRANSACTIONAL)


def marker(base_offset: int, producer_id: int, epoch: int = 0) -> BatchIndex:
    """What it says stands in a fact of its segment."""
    batch = row(base_offset, at=(16, MARKER_BYTES), producer=(producer_id, epoch, -1))
    return batch._replace(attributes=MARKER_ATTRIBUTES)


def segment(
    ticket: int,
    rows: dict[TopicIdPartition, Sequence[BatchIndex]] | None = None,
    *facts: Fact,
    epoch: int = 1,
) -> SegmentIndex:
    """Its seq is its ticket."""
    return SegmentIndex(
        SegmentId(WRITER, ticket),
        Ticket(epoch, ticket),
        ticket,
        0,
        tuple(PartitionIndex(key, 0, tuple(batches)) for key, batches in (rows or {}).items()),
        tuple(encode_fact(fact) for fact in facts),
    )
