"""The exceptions bucketlog raises. Few, and each says what to do.

BucketlogError                 code, retriable, remedy
├── ConfigurationError         a setting is wrong: change it
│   └── NoLogError             the bucket holds no log: check the URL
├── InvalidDataError           bytes do not follow the format: they are refused, nothing is lost
│   ├── MalformedRequestError  a frame is not a request: the connection is closed
│   ├── InvalidTopicNameError  choose a name that Kafka allows
│   ├── InvalidConfigError     a topic config or its value is unknown: change it
│   ├── UnknownTopicError      no such topic or partition
│   ├── CorruptBatchError      a batch's length or checksum is wrong: send it again
│   ├── UnsupportedMagicError  a message set of before Kafka 0.11: use a newer client
│   ├── UnsupportedCompressionError  zstd in an old Produce request: use a newer client
│   ├── BatchTooLargeError     a batch is larger than max.message.bytes
│   ├── InvalidTimestampError  a timestamp out of range, or LogAppendTime set by a producer
│   ├── InvalidBatchError      a batch's content makes no sense
│   │   └── KeylessRecordsError  a compacted topic's records need keys
│   ├── UnreadableBatchError   a stored batch does not decode as Kafka's format
│   └── UnreadableRecordError  a record does not decode as its topic was declared
├── CorruptObjectError         stored bytes are damaged: names key and position
├── DataLossError              what was to be read next is deleted
├── BucketError                the bucket answered with an error
│   ├── ObjectNotFoundError    no object under that key
│   ├── StaleCheckpointError   retriable: what was begun with may lack what is deleted: begin again
│   ├── BucketUnavailableError retriable: timeout, 5xx, throttling, connection lost
│   └── BucketRefusedError     fatal: access denied, no such bucket, precondition unsupported
├── SequencerError             Redis, the sequencer
│   ├── SequencerUnavailableError  retriable: unreachable, or the answer was lost
│   ├── TooManyGroupsError     the cluster has reached its limit of consumer groups
│   ├── WriterFencedError      this writer was sealed: go on with a new one
│   └── SequencerLostError     it lost state, or it is another one: a new epoch is needed
├── SchemaRegistryError         the schema registry refused
│   ├── SchemaRegistryUnavailableError  retriable: unreachable, 5xx, throttling
│   └── IncompatibleSchemaError  the subject's compatibility forbids the schema
├── ClusterInUseError          another live broker or process holds it
├── ClusterStartError          the embedded cluster did not start, or a process of it ended
├── SharedClusterError         as another test worker saw it
├── KeysUnavailableError       the keys of the provider of tokens cannot be loaded
├── IngestConflictError        retriable: another ingest has committed the batch
└── LogError                   the broker answered a client with a Kafka error code
    └── TransactionAbortedError  retriable: nothing of the transaction is visible; run it again
"""


class BucketlogError(Exception):
    """`code` is a stable word for programs; `remedy` tells a person what to do."""

    code = "ERROR"
    retriable = False

    def __init__(self, message: str, *, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message} ({self.remedy})" if self.remedy else self.message


class ConfigurationError(BucketlogError):
    code = "CONFIGURATION"


class InvalidDataError(BucketlogError):
    code = "INVALID_DATA"


class InvalidTopicNameError(InvalidDataError):
    code = "INVALID_TOPIC_EXCEPTION"


class InvalidConfigError(InvalidDataError):
    """Of a topic: there is none of that name, or it does not take the value."""

    code = "INVALID_CONFIG"


class UnknownTopicError(InvalidDataError):
    code = "UNKNOWN_TOPIC_OR_PARTITION"


class CorruptObjectError(BucketlogError):
    """`key` names the object and `position` the first byte that cannot be trusted."""

    code = "CORRUPT_OBJECT"

    def __init__(self, key: str, position: int, reason: str, *, remedy: str = "") -> None:
        super().__init__(f"object {key!r} is damaged at byte {position}: {reason}", remedy=remedy)
        self.key = key
        self.position = position
        self.reason = reason

    def __reduce__(self) -> tuple[type["CorruptObjectError"], tuple[str, int, str]]:
        return type(self), (self.key, self.position, self.reason)


class DataLossError(BucketlogError):
    """What was to be read next is not there any more: retention or a deletion was faster."""

    code = "DATA_LOSS"


class BucketError(BucketlogError):
    code = "BUCKET"


class ObjectNotFoundError(BucketError):
    code = "OBJECT_NOT_FOUND"

    def __init__(self, key: str) -> None:
        super().__init__(f"no object {key!r} in the bucket")
        self.key = key


class StaleCheckpointError(BucketError):
    code = "STALE_CHECKPOINT"
    retriable = True


class BucketUnavailableError(BucketError):
    code = "BUCKET_UNAVAILABLE"
    retriable = True


class BucketRefusedError(BucketError):
    code = "BUCKET_REFUSED"


class SequencerError(BucketlogError):
    code = "SEQUENCER"


class SequencerUnavailableError(SequencerError):
    code = "SEQUENCER_UNAVAILABLE"
    retriable = True


class WriterFencedError(SequencerError):
    code = "WRITER_FENCED"


class SequencerLostError(SequencerError):
    code = "SEQUENCER_LOST"


class TooManyGroupsError(SequencerError):
    """The cluster has reached its limit of consumer groups."""

    code = "POLICY_VIOLATION"
    retriable = True


class SchemaRegistryError(BucketlogError):
    code = "SCHEMA_REGISTRY"


class SchemaRegistryUnavailableError(SchemaRegistryError):
    code = "SCHEMA_REGISTRY_UNAVAILABLE"
    retriable = True


class IncompatibleSchemaError(SchemaRegistryError):
    code = "INCOMPATIBLE_SCHEMA"


class ClusterInUseError(BucketlogError):
    code = "CLUSTER_IN_USE"


TRANSACTION_ABORTABLE = 120


class LogError(BucketlogError):
    """`kafka_code` is the number in Kafka's protocol guide, `code` its name.

    Numbers below -1 are librdkafka's own, for what no broker said: -195 is TRANSPORT.
    """

    def __init__(
        self, message: str, *, code: str, kafka_code: int, retriable: bool, remedy: str = ""
    ) -> None:
        super().__init__(message, remedy=remedy)
        self.code = code
        self.kafka_code = kafka_code
        self.retriable = retriable


class TransactionAbortedError(LogError):
    """The transaction was aborted: nothing of it will become visible. Run it again."""

    code = "TRANSACTION_ABORTABLE"
    retriable = True

    def __init__(self, message: str) -> None:
        super().__init__(
            message,
            code=type(self).code,
            kafka_code=TRANSACTION_ABORTABLE,
            retriable=True,
            remedy="run the transaction again",
        )


for _public in (
    *(BucketlogError, ClusterInUseError, ConfigurationError, CorruptObjectError, DataLossError),
    *(IncompatibleSchemaError, InvalidDataError, LogError, SchemaRegistryError),
    TransactionAbortedError,
):
    # names of the package: tracebacks, dead letters and pickles say bucketlog.ConfigurationError
    _public.__module__ = "bucketlog"
