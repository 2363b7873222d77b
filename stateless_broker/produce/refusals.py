"""The errors that clients get for a batch that the sequencer has not accepted.

Invariant: a batch that may be in the log is never reported as refused. Errors after which a client
begins a new producer epoch are reported only if the fault is the producer's own.
"""

from kio.schema.errors import ErrorCode

from bucketlog.metadata.sequencer.requests import AGAINST_PRODUCERS, BatchAnswer, BatchStatus
from bucketlog.stateless_broker.produce.intake import BatchOutcome, PendingBatch
from bucketlog.stateless_broker.produce.refused_batches import RefusedBatches

REFUSALS: dict[BatchStatus, tuple[ErrorCode, str]] = {
    # Clients take this error for a success without an offset.
    BatchStatus.FORGOTTEN_DUPLICATE: (
        ErrorCode.duplicate_sequence_number,
        "the batch is in the log, and its offset is not known any more",
    ),
    BatchStatus.OUT_OF_ORDER: (
        ErrorCode.out_of_order_sequence_number,
        "the batch's first sequence does not follow the producer's last one",
    ),
    BatchStatus.UNKNOWN_PRODUCER: (
        ErrorCode.unknown_producer_id,
        "this producer is unknown: start again with sequence 0",
    ),
    # Kafka accepts any id. Clients do not retry this error; librdkafka keeps running after it.
    BatchStatus.UNASSIGNED_PRODUCER: (
        ErrorCode.invalid_producer_id_mapping,
        "this cluster has not assigned the producer id: request one with InitProducerId",
    ),
    BatchStatus.FENCED: (
        ErrorCode.invalid_producer_epoch,
        "a newer epoch of this producer has written",
    ),
    BatchStatus.UNKNOWN_TRANSACTIONAL_ID: (
        ErrorCode.invalid_producer_id_mapping,
        "the transactional id is unknown: begin with InitProducerId",
    ),
    # Clients abort after this error, and Kafka Streams continues; TRANSACTION_ABORTABLE ends it.
    BatchStatus.ABORTABLE: (
        ErrorCode.invalid_producer_epoch,
        "the transaction was aborted after its timeout",
    ),
    BatchStatus.INVALID_STATE: (
        ErrorCode.invalid_txn_state,
        "the partition was not added to a transaction",
    ),
    # Clients must not abort after this error: the transaction is prepared.
    BatchStatus.PREPARED: (
        ErrorCode.invalid_txn_state,
        "the producer has kept a prepared transaction: commit or abort it before new records",
    ),
    # Clients abort, and continue with a new epoch.
    BatchStatus.REUSED_SEQUENCE: (
        ErrorCode.unknown_producer_id,
        "a batch of an earlier transaction has these sequence numbers",
    ),
    BatchStatus.TOO_MANY_PARTITIONS: (
        ErrorCode.invalid_request,
        "the transaction has too many partitions (BUCKETLOG_TRANSACTION_PARTITIONS_MAX)",
    ),
    BatchStatus.UNKNOWN_TOPIC: (
        ErrorCode.unknown_topic_or_partition,
        "the topic or partition does not exist any more",
    ),
    BatchStatus.OFFSET_LIMIT: (
        ErrorCode.policy_violation,
        "the partition has used up its offsets (2^53): create a new topic",
    ),
    # Clients of all versions retry this error, and nothing is written.
    BatchStatus.TOO_MANY_PRODUCERS: (
        ErrorCode.not_enough_replicas,
        "the cluster has reached its limit of producers: raise BUCKETLOG_PRODUCERS_MAX, or wait "
        "until idle producers expire",
    ),
}
ABORTABLE_CODES = {
    BatchStatus.INVALID_STATE: ErrorCode.transaction_abortable,
}
"""Codes for clients that know the abortable error (KIP-890)."""
GAPS = (BatchStatus.OUT_OF_ORDER, BatchStatus.UNKNOWN_PRODUCER)
"""The answers to a batch that does not follow the producer's last one."""


def refused(
    batch: PendingBatch, answer: BatchAnswer, earlier: RefusedBatches, *, is_newest: bool
) -> BatchOutcome:
    """The outcome of a batch whose answer is neither OK nor to be repeated. `earlier` has the
    batches that this broker has refused. `is_newest`: no later epoch was claimed at the time of
    the answer. The message names topic and partition, as Kafka's do."""
    if answer.status is BatchStatus.DUPLICATE:
        return BatchOutcome(ErrorCode.none, answer.base_offset)
    where = f"{batch.topic_name}-{batch.partition.partition}"
    if answer.status in AGAINST_PRODUCERS and not is_newest:
        return BatchOutcome.not_written(
            f"{where}: a later epoch is claimed: this broker does not know its batches"
        )
    if answer.status in GAPS and earlier.excuses(batch.produced_to, answer.expected_sequence):
        return BatchOutcome.not_written(
            f"{where}: an earlier batch of this producer was refused: send that batch again first"
        )
    if answer.status is BatchStatus.MISPLACED:
        at, end = batch.header.base_offset, answer.number
        return BatchOutcome(
            ErrorCode.offset_out_of_range,
            -1,
            f"{where}: the mirrored batch of offset {at} is not next: the partition ends at {end}",
        )
    error, message = REFUSALS[answer.status]
    transaction = batch.transaction
    if transaction is not None and transaction.is_abortable_known:
        error = ABORTABLE_CODES.get(answer.status, error)
    return BatchOutcome(error, -1, f"{where}: {message}")
