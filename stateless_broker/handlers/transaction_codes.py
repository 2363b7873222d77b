"""Kafka's error codes for what the sequencer says of a transactional id.

Clients of before KIP-890 do not know TRANSACTION_ABORTABLE. They get codes after which they abort
and ask for a new epoch; PRODUCER_FENCED, INVALID_PRODUCER_EPOCH and INVALID_TXN_STATE from a
coordinator would end them. Kafka Streams knows TRANSACTION_ABORTABLE and yet ends after it. So the
offsets of a transaction that was aborted after its timeout get a code for all clients after which
Streams gives its tasks back and continues. Source: Kafka's TransactionManager and StreamsProducer,
librdkafka's rdkafka_txnmgr.c.
"""

from collections.abc import Mapping

from kio.schema.errors import ErrorCode

from bucketlog.metadata.sequencer.requests import FactStatus

FENCED_KNOWN_FROM = 2
"""AddPartitionsToTxn, AddOffsetsToTxn and EndTxn: PRODUCER_FENCED (KIP-588)."""
INIT_FENCED_KNOWN_FROM = 4
ABORTABLE_KNOWN_FROM = 4
"""AddOffsetsToTxn, EndTxn and TxnOffsetCommit."""
VERIFIED_ABORTABLE_FROM = 5
OFFSETS_LOADING_FROM = 2

_ALWAYS: Mapping[FactStatus, ErrorCode] = {
    FactStatus.OK: ErrorCode.none,
    FactStatus.DONE: ErrorCode.none,
    FactStatus.UNKNOWN_TRANSACTIONAL_ID: ErrorCode.invalid_producer_id_mapping,
    FactStatus.INVALID_STATE: ErrorCode.invalid_txn_state,
    FactStatus.WAIT: ErrorCode.concurrent_transactions,
    FactStatus.AGAIN: ErrorCode.not_coordinator,
    FactStatus.TOO_MANY: ErrorCode.policy_violation,
    FactStatus.NOT_COORDINATOR: ErrorCode.not_coordinator,
}


def init_code(status: FactStatus, version: int) -> ErrorCode:
    if status is FactStatus.FENCED:
        return _fenced(version, INIT_FENCED_KNOWN_FROM)
    return _ALWAYS[status]


def end_code(status: FactStatus, version: int, *, is_commit: bool) -> ErrorCode:
    if status is FactStatus.FENCED:
        return _fenced(version, FENCED_KNOWN_FROM)
    if status is FactStatus.ABORTABLE:
        if version >= ABORTABLE_KNOWN_FROM:
            return ErrorCode.transaction_abortable
        return ErrorCode.unknown_producer_id if is_commit else ErrorCode.none
    return _ALWAYS[status]


def add_code(status: FactStatus, version: int) -> ErrorCode:
    """AddOffsetsToTxn, and AddPartitionsToTxn of clients."""
    if status is FactStatus.FENCED:
        return _fenced(version, FENCED_KNOWN_FROM)
    if status in (FactStatus.ABORTABLE, FactStatus.TOO_MANY) and version >= ABORTABLE_KNOWN_FROM:
        return ErrorCode.transaction_abortable
    if status is FactStatus.ABORTABLE:
        return ErrorCode.unknown_producer_id
    return _ALWAYS[status]


def verified_code(status: FactStatus, version: int) -> ErrorCode:
    """AddPartitionsToTxn of brokers, from version 4 on."""
    if status is FactStatus.INVALID_STATE and version >= VERIFIED_ABORTABLE_FROM:
        return ErrorCode.transaction_abortable
    return add_code(status, version)


def offsets_code(outcome: FactStatus | ErrorCode, version: int) -> ErrorCode:
    """TxnOffsetCommit; an error of the group stays as it is."""
    if isinstance(outcome, ErrorCode):
        return outcome
    if outcome is FactStatus.FENCED:
        return ErrorCode.invalid_producer_epoch
    if outcome is FactStatus.WAIT:
        is_known = version >= OFFSETS_LOADING_FROM
        loading = ErrorCode.coordinator_load_in_progress
        return loading if is_known else ErrorCode.coordinator_not_available
    if outcome is FactStatus.ABORTABLE:
        return ErrorCode.illegal_generation
    may_abort = (FactStatus.INVALID_STATE, FactStatus.TOO_MANY)
    if outcome in may_abort and version >= ABORTABLE_KNOWN_FROM:
        return ErrorCode.transaction_abortable
    return _ALWAYS[outcome]


def _fenced(version: int, known_from: int) -> ErrorCode:
    is_known = version >= known_from
    return ErrorCode.producer_fenced if is_known else ErrorCode.invalid_producer_epoch
