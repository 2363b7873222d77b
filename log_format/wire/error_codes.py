"""The one mapping from bucketlog's errors to Kafka's error codes.

An error means different things to different requests. If the sequencer is unavailable, producers
have to look for another leader, and group members for another coordinator.
"""

from collections.abc import Mapping
from enum import Enum, auto

from kio.schema.errors import ErrorCode

from bucketlog.log_format.batch import (
    BatchTooLargeError,
    CorruptBatchError,
    InvalidTimestampError,
    MirroredTopicError,
    UnsupportedCompressionError,
)
from bucketlog.log_format.encryption_errors import (
    BrokenSealError,
    KeyRefusedError,
    KeyUnavailableError,
)
from bucketlog.log_format.errors import (
    BucketError,
    ConfigRefusedError,
    CorruptObjectError,
    InvalidConfigError,
    InvalidDataError,
    InvalidTopicNameError,
    SequencerError,
    TooManyGroupsError,
    UnknownTopicError,
)


class ApiFamily(Enum):
    """Requests that map each error to the same code."""

    PRODUCE = auto()
    READ = auto()
    """Fetch, ListOffsets."""
    DELETE_RECORDS = auto()
    TOPICS = auto()
    GROUPS = auto()
    COMMITTED_OFFSETS = auto()
    """OffsetFetch, which waits for open commits (KIP-447)."""
    PRODUCER_IDS = auto()
    """InitProducerId, also with a transactional id."""
    TRANSACTIONS = auto()
    """AddPartitionsToTxn, AddOffsetsToTxn, TxnOffsetCommit, EndTxn."""


_CODES: Mapping[type[BaseException], ErrorCode] = {
    BatchTooLargeError: ErrorCode.message_too_large,
    BrokenSealError: ErrorCode.corrupt_message,
    BucketError: ErrorCode.kafka_storage_error,
    ConfigRefusedError: ErrorCode.invalid_request,
    CorruptBatchError: ErrorCode.corrupt_message,
    CorruptObjectError: ErrorCode.kafka_storage_error,
    InvalidConfigError: ErrorCode.invalid_config,
    InvalidTimestampError: ErrorCode.invalid_timestamp,
    MirroredTopicError: ErrorCode.policy_violation,
    InvalidTopicNameError: ErrorCode.invalid_topic_exception,
    KeyRefusedError: ErrorCode.topic_authorization_failed,
    KeyUnavailableError: ErrorCode.kafka_storage_error,
    TimeoutError: ErrorCode.request_timed_out,
    TooManyGroupsError: ErrorCode.policy_violation,
    UnknownTopicError: ErrorCode.unknown_topic_or_partition,
    UnsupportedCompressionError: ErrorCode.unsupported_compression_type,
}
_CODES_IN: Mapping[ApiFamily, Mapping[type[BaseException], ErrorCode]] = {
    # also of message sets of magic 0 and 1, as in Kafka: a request of version 3 has magic 2
    ApiFamily.PRODUCE: {InvalidDataError: ErrorCode.invalid_record},
    ApiFamily.READ: {InvalidDataError: ErrorCode.kafka_storage_error},
    ApiFamily.DELETE_RECORDS: {SequencerError: ErrorCode.not_leader_or_follower},
    ApiFamily.TOPICS: {SequencerError: ErrorCode.not_enough_replicas},
    ApiFamily.GROUPS: {SequencerError: ErrorCode.coordinator_not_available},
    ApiFamily.COMMITTED_OFFSETS: {
        SequencerError: ErrorCode.coordinator_load_in_progress,
        TimeoutError: ErrorCode.unstable_offset_commit,
    },
    ApiFamily.TRANSACTIONS: {
        SequencerError: ErrorCode.coordinator_not_available,
        TimeoutError: ErrorCode.coordinator_not_available,
    },
    # Kafka answers the same while no producer id is available (RPCProducerIdManager). Clients of
    # every age retry, and none looks for a coordinator, which an idempotent producer lacks.
    ApiFamily.PRODUCER_IDS: {
        SequencerError: ErrorCode.coordinator_load_in_progress,
        TimeoutError: ErrorCode.coordinator_load_in_progress,
    },
}


def kafka_code(error: BaseException, family: ApiFamily) -> ErrorCode:
    """The code of the error's class, or of the nearest class above it that has one."""
    of_family = _CODES_IN[family]
    for each in type(error).__mro__:
        code = of_family.get(each) or _CODES.get(each)
        if code is not None:
            return code
    return ErrorCode.unknown_server_error
