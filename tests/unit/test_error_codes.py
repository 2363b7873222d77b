"""Which of Kafka's codes answers an error, for each family of requests."""

import pytest
from kio.schema.errors import ErrorCode

from bucketlog.log_format.batch import (
    BatchTooLargeError,
    CorruptBatchError,
    InvalidBatchError,
    KeylessRecordsError,
    UnsupportedMagicError,
)
from bucketlog.log_format.errors import (
    BucketUnavailableError,
    ConfigurationError,
    CorruptObjectError,
    InvalidConfigError,
    InvalidDataError,
    InvalidTopicNameError,
    ObjectNotFoundError,
    SequencerLostError,
    SequencerUnavailableError,
    UnknownTopicError,
)
from bucketlog.log_format.wire.error_codes import ApiFamily, kafka_code

AWAY = SequencerUnavailableError("away")


@pytest.mark.parametrize(
    ("error", "family", "code"),
    [
        (BatchTooLargeError("x"), ApiFamily.PRODUCE, ErrorCode.message_too_large),
        (CorruptBatchError("x"), ApiFamily.PRODUCE, ErrorCode.corrupt_message),
        (UnsupportedMagicError("x"), ApiFamily.PRODUCE, ErrorCode.invalid_record),
        (InvalidBatchError("x"), ApiFamily.PRODUCE, ErrorCode.invalid_record),
        (KeylessRecordsError("x", ()), ApiFamily.PRODUCE, ErrorCode.invalid_record),
        (UnknownTopicError("x"), ApiFamily.PRODUCE, ErrorCode.unknown_topic_or_partition),
        (InvalidDataError("x"), ApiFamily.READ, ErrorCode.kafka_storage_error),
        (CorruptObjectError("k", 0, "x"), ApiFamily.READ, ErrorCode.kafka_storage_error),
        (BucketUnavailableError("x"), ApiFamily.READ, ErrorCode.kafka_storage_error),
        (ObjectNotFoundError("k"), ApiFamily.READ, ErrorCode.kafka_storage_error),
        (InvalidConfigError("x"), ApiFamily.TOPICS, ErrorCode.invalid_config),
        (InvalidTopicNameError("x"), ApiFamily.TOPICS, ErrorCode.invalid_topic_exception),
        (TimeoutError(), ApiFamily.TOPICS, ErrorCode.request_timed_out),
        (AWAY, ApiFamily.TOPICS, ErrorCode.not_enough_replicas),
        (AWAY, ApiFamily.DELETE_RECORDS, ErrorCode.not_leader_or_follower),
        (AWAY, ApiFamily.GROUPS, ErrorCode.coordinator_not_available),
        (SequencerLostError("x"), ApiFamily.GROUPS, ErrorCode.coordinator_not_available),
        (AWAY, ApiFamily.COMMITTED_OFFSETS, ErrorCode.coordinator_load_in_progress),
        (TimeoutError(), ApiFamily.COMMITTED_OFFSETS, ErrorCode.unstable_offset_commit),
        (AWAY, ApiFamily.PRODUCER_IDS, ErrorCode.coordinator_load_in_progress),
        (TimeoutError(), ApiFamily.PRODUCER_IDS, ErrorCode.coordinator_load_in_progress),
        (ConfigurationError("x"), ApiFamily.READ, ErrorCode.unknown_server_error),
    ],
)
def test_codes(error: Exception, family: ApiFamily, code: ErrorCode) -> None:
    assert kafka_code(error, family) is code


@pytest.mark.parametrize("family", ApiFamily)
def test_every_family_has_its_own_codes(family: ApiFamily) -> None:
    """A family without any is a `KeyError` in a broker that has to answer."""
    assert kafka_code(TimeoutError(), family) is not ErrorCode.unknown_server_error
