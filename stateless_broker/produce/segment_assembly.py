"""From waiting batches to a segment: the request to the sequencer, what its answers mean, then the
object's parts. Pure.

Invariants: batches are sorted by (topic id, partition) and stay in arrival order within one; only
offsets (and nothing a CRC covers) are written into them, in place. What may be in the log is never
called refused; what is refused is not in it. A producer is told that it is wrong only by the newest
epoch's sequencer: an older one does not know what it wrote since, and its client would not try
again.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from kio.schema.errors import ErrorCode

from bucketlog.log_format.batch import stamp_base_offset
from bucketlog.log_format.model import (
    Buffer,
    PartitionIndex,
    SegmentId,
    SegmentIndex,
    TopicId,
    TopicIdPartition,
)
from bucketlog.metadata.sequencer.requests import (
    BatchAnswer,
    BatchStatus,
    FactStatus,
    Reservation,
    WantedBatch,
    WantedPartition,
)
from bucketlog.stateless_broker.produce.intake import (
    BatchOutcome,
    FlushInput,
    PendingBatch,
    PendingFact,
)
from bucketlog.tiered_storage.segment import HEADER, batch_row, encode_footer

REFUSALS: dict[BatchStatus, tuple[ErrorCode, str]] = {
    BatchStatus.OUT_OF_ORDER: (
        ErrorCode.out_of_order_sequence_number,
        "the batch's first sequence does not follow the producer's last one",
    ),
    BatchStatus.UNKNOWN_PRODUCER: (
        ErrorCode.unknown_producer_id,
        "nothing is known of this producer here: begin again with sequence 0",
    ),
    BatchStatus.FENCED: (
        ErrorCode.invalid_producer_epoch,
        "a newer epoch of this producer has written",
    ),
    BatchStatus.UNKNOWN_TOPIC: (
        ErrorCode.unknown_topic_or_partition,
        "the topic or partition does not exist any more",
    ),
    BatchStatus.OFFSET_LIMIT: (
        ErrorCode.policy_violation,
        "the partition has used up its offsets (2^53): create a new topic",
    ),
}

AGAINST_PRODUCERS = (BatchStatus.OUT_OF_ORDER, BatchStatus.UNKNOWN_PRODUCER, BatchStatus.FENCED)


@dataclass(frozen=True, slots=True)
class Flush:
    """What goes into one reservation, in the order of its answers. A group without batches asks
    for a stamp alone; `topic_names` has its topic's."""

    groups: list[tuple[TopicIdPartition, list[PendingBatch]]]
    facts: list[PendingFact]
    topic_names: Mapping[TopicId, str] = field(default_factory=dict)

    @classmethod
    def of(cls, taken: FlushInput, topic_name: Callable[[TopicId], str | None]) -> "Flush":
        """`topic_name` answers None for a topic that is gone: nobody reads its partitions."""
        groups: dict[TopicIdPartition, list[PendingBatch]] = {}
        for batch in taken.batches:
            groups.setdefault(batch.partition, []).append(batch)
        names: dict[TopicId, str] = {}
        for partition in taken.stamps:
            name = topic_name(partition.topic_id)
            if name is not None:
                names[partition.topic_id] = name
                groups.setdefault(partition, [])
        return cls(sorted(groups.items()), taken.facts, names)

    @property
    def size(self) -> int:
        """Batches and facts."""
        return sum(len(group) for _, group in self.groups) + len(self.facts)

    def wanted(self) -> list[WantedPartition]:
        return [
            WantedPartition(
                batches[0].topic_name if batches else self.topic_names[partition.topic_id],
                partition.topic_id,
                partition.partition,
                [_wanted(batch) for batch in batches],
            )
            for partition, batches in self.groups
        ]


def _wanted(batch: PendingBatch) -> WantedBatch:
    header = batch.header
    if header.producer_id < 0:
        return WantedBatch(header.record_count, "", -1, -1)
    return WantedBatch(
        header.record_count,
        str(header.producer_id),
        header.producer_epoch,
        header.base_sequence,
    )


def holds_against_producers(reservation: Reservation) -> bool:
    """Whether the sequencer says of a producer that it is wrong."""
    return any(answer.status in AGAINST_PRODUCERS for row in reservation.batches for answer in row)


def refused(answer: BatchAnswer, *, is_newest: bool = True) -> BatchOutcome:
    """What the sequencer's answer means for the batch: neither OK nor one that is asked again.
    `is_newest`: nobody had claimed a later epoch when it was given."""
    if answer.status is BatchStatus.DUPLICATE:
        return BatchOutcome(ErrorCode.none, answer.base_offset)
    if answer.status in AGAINST_PRODUCERS and not is_newest:
        return BatchOutcome.not_written(
            "a later epoch is claimed: this broker does not know what came in it"
        )
    error, message = REFUSALS[answer.status]
    return BatchOutcome(error, -1, message)


@dataclass(frozen=True, slots=True)
class AssembledSegment:
    """A segment ready to be written. `parts` borrow the batches' frames."""

    index: SegmentIndex
    parts: list[Buffer]
    footer: bytes
    batches: list[tuple[PendingBatch, int]]
    """Accepted batches with their base offsets."""
    facts: list[PendingFact]

    def acknowledge(self) -> None:
        """The view shows the segment."""
        for batch, base_offset in self.batches:
            batch.settle(BatchOutcome(ErrorCode.none, base_offset))
        for fact in self.facts:
            fact.settle(FactStatus.OK)


def assemble(
    flush: Flush, reservation: Reservation, segment: SegmentId, *, created_ms: int
) -> AssembledSegment:
    """Stamp what was accepted and lay it out. `reservation.ticket` is set."""
    if reservation.ticket is None:
        raise ValueError("nothing was reserved")
    parts: list[Buffer] = [HEADER]
    position = len(HEADER)
    partitions = []
    accepted: list[tuple[PendingBatch, int]] = []
    for (partition, batches), answers, stamp in zip(
        flush.groups, reservation.batches, reservation.hw_stamps, strict=True
    ):
        rows = []
        stamp_alone = not batches and stamp >= 0
        for batch, answer in zip(batches, answers, strict=True):
            if answer.status is not BatchStatus.OK:
                continue
            stamp_base_offset(batch.data, answer.base_offset)
            size = len(batch.data)
            rows.append(batch_row(batch.header, answer.base_offset, position, size))
            parts.append(batch.data)
            position += size
            accepted.append((batch, answer.base_offset))
        if rows or stamp_alone:
            partitions.append(PartitionIndex(partition, stamp, tuple(rows)))
    facts = [
        fact
        for fact, status in zip(flush.facts, reservation.fact_statuses, strict=True)
        if status is FactStatus.OK
    ]
    index = SegmentIndex(
        segment=segment,
        ticket=reservation.ticket,
        low_ticket=reservation.low_ticket,
        created_ms=created_ms,
        partitions=tuple(partitions),
        facts=tuple(pending.entry for pending in facts),
    )
    footer = encode_footer(index)
    parts.append(footer)
    return AssembledSegment(index, parts, footer, accepted, facts)
