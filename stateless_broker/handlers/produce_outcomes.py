"""Outcomes of batches that the broker refuses before it commits them."""

from kio.schema.errors import ErrorCode

from bucketlog.log_format.batch import (
    InvalidTimestampError,
    KeylessRecordsError,
    MirroredTopicError,
    RefusedRecord,
)
from bucketlog.log_format.errors import BucketlogError
from bucketlog.log_format.wire.error_codes import ApiFamily, kafka_code
from bucketlog.metadata.topic_configs import MIRROR_SOURCE
from bucketlog.stateless_broker.produce.intake import BatchOutcome

UNKNOWN_ID = BatchOutcome(ErrorCode.unknown_topic_id, -1)
UNKNOWN_PARTITION = BatchOutcome(ErrorCode.unknown_topic_or_partition, -1)
"""The outcome has no message, as in Kafka: the client decides how long the topic name is."""
INTERNAL_TOPIC = BatchOutcome(ErrorCode.invalid_topic_exception, -1)
"""The outcome for an internal topic of Kafka. Clients do not retry its error."""
NOT_AUTHORIZED = BatchOutcome(ErrorCode.topic_authorization_failed, -1)
ID_NOT_AUTHORIZED = BatchOutcome(ErrorCode.transactional_id_authorization_failed, -1)
LED_BY_OTHERS = BatchOutcome(
    ErrorCode.not_leader_or_follower,
    -1,
    "this broker is stopping or cannot write: refresh the metadata, and use the new leader",
)
MIRROR_NOT_AUTHORIZED = BatchOutcome(
    ErrorCode.cluster_authorization_failed, -1, "a mirror needs CLUSTER_ACTION on the cluster"
)


def mirror_error(topic: str, source: str) -> MirroredTopicError:
    if source:
        return MirroredTopicError(
            f"topic {topic!r} is a mirror ({MIRROR_SOURCE}={source}): producers may write after "
            "the cut-over (`bucketlog mirror`), which deletes this config"
        )
    return MirroredTopicError(
        f"topic {topic!r} is not a mirror: its config {MIRROR_SOURCE} is not set"
    )


def refusal_of(error: BucketlogError) -> BatchOutcome:
    """The outcome of a rejected batch, with the rejected records if they are known (KIP-467)."""
    records: tuple[RefusedRecord, ...] = ()
    if isinstance(error, KeylessRecordsError | InvalidTimestampError):
        records = error.refused
    return BatchOutcome(kafka_code(error, ApiFamily.PRODUCE), -1, error.message, records)
