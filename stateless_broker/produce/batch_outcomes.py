"""What a client is told of a batch that is not accepted, or that was never written. Pure.

Invariant: what may be in the log is never called refused; what is refused is not in it. A producer
is told that it is wrong only by the newest epoch's sequencer: an older one does not know what it
wrote since, and its client would not try again.
"""

from kio.schema.errors import ErrorCode

from bucketlog.metadata.sequencer.requests import BatchAnswer, BatchStatus, Reservation
from bucketlog.stateless_broker.produce.produce_buffer import BatchOutcome

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


def holds_against_producers(reservation: Reservation) -> bool:
    """Whether it says of a producer that it is wrong."""
    return any(answer.status in AGAINST_PRODUCERS for row in reservation.batches for answer in row)


def refused(answer: BatchAnswer, *, is_newest: bool = True) -> BatchOutcome:
    """What the sequencer's answer means for the batch: neither OK nor one that is asked again.
    `is_newest`: nobody had claimed a later epoch when it was given."""
    if answer.status is BatchStatus.DUPLICATE:
        return BatchOutcome(ErrorCode.none, answer.base_offset)
    if answer.status in AGAINST_PRODUCERS and not is_newest:
        return not_written("a later epoch is claimed: this broker does not know what came in it")
    error, message = REFUSALS[answer.status]
    return BatchOutcome(error, -1, message)


def not_written(reason: str) -> BatchOutcome:
    """NOT_ENOUGH_REPLICAS: retriable, and it says that nothing was appended."""
    return BatchOutcome(ErrorCode.not_enough_replicas, -1, reason)
