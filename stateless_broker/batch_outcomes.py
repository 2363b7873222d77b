"""What a client is told of a batch that is not accepted, or that was never written. Pure.

Invariant: what may be in the log is never called refused; what is refused is not in it.
"""

from kio.schema.errors import ErrorCode

from metadata.sequencer.requests import BatchAnswer, BatchStatus
from stateless_broker.produce_buffer import Outcome

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


def refused(answer: BatchAnswer) -> Outcome:
    """What the sequencer's answer means for the batch: neither OK nor one that is asked again."""
    if answer.status is BatchStatus.DUPLICATE:
        return Outcome(ErrorCode.none, answer.base_offset)
    error, message = REFUSALS[answer.status]
    return Outcome(error, -1, message)


def not_written(reason: str) -> Outcome:
    """NOT_ENOUGH_REPLICAS: retriable, and it says that nothing was appended."""
    return Outcome(ErrorCode.not_enough_replicas, -1, reason)
