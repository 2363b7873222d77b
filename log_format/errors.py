"""The exceptions bucketlog raises. Few, and each says what to do.

BucketlogError                 code, retriable, remedy
├── ConfigurationError         a setting is wrong: change it
│   ├── UnknownNameError       no topic, group or record of that name or offset: choose another
│   ├── ChangesOffError        the console may not change the log: start it with --changes
│   ├── ReplaysOffError        the console has no folder for replays: start it with one
│   ├── QueryFailedError       a query of the console is wrong, or over its limits: change it
│   ├── SqlRefusedError        the SQL of a query is not one SELECT within the limits: change it
│   ├── BadFormError           a request to the console has no form, or too large a form
│   └── NoLogError             the bucket holds no log: check the URL
├── InvalidDataError           bytes do not follow the format: they are refused, nothing is lost
│   ├── MalformedRequestError  a frame is not a request: the connection is closed
│   ├── InvalidRegexError  subscribe by a regular expression that RE2 accepts
│   ├── InvalidTopicNameError  choose a name that Kafka allows
│   ├── InvalidConfigError     a topic config or its value is unknown: change it
│   │   └── ConfigRefusedError  a config of a broker or a subscription cannot be set so
│   ├── UnknownTopicError      no such topic or partition
│   ├── CorruptBatchError      a batch's length or checksum is wrong: send it again
│   ├── UnsupportedMagicError  a message set of before Kafka 0.11: use a newer client
│   ├── UnsupportedCompressionError  zstd in an old Produce request: use a newer client
│   ├── BatchTooLargeError     a batch is larger than max.message.bytes
│   ├── MirroredTopicError     a mirror alone writes to a mirrored topic
│   ├── InvalidTimestampError  a timestamp out of range, or LogAppendTime set by a producer
│   ├── InvalidBatchError      a batch's content makes no sense
│   │   └── KeylessRecordsError  a compacted topic's records need keys
│   ├── KeyRefusedError        an encryption key is unknown, deleted or denied: give its right
│   ├── BrokenSealError        an encrypted batch was changed or moved: restore it
│   ├── SealedRecordsError     the records are encrypted: read them with their key
│   ├── UnreadableBatchError   a stored batch does not decode as Kafka's format
│   ├── BadValueError          a JSON value does not fit its column: a dead letter
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
│   ├── WriterFencedError      this writer was sealed: continue with a new one
│   └── SequencerLostError     it lost state, or it is another one: a new epoch is needed
├── SchemaRegistryError         the schema registry refused
│   ├── SchemaRegistryUnavailableError  retriable: unreachable, 5xx, throttling
│   └── IncompatibleSchemaError  the subject's compatibility forbids the schema
├── ConcurrentUseError         a second thread uses a consumer: give each thread its consumer
├── ClusterInUseError          another live broker or process holds it
├── ClusterStartError          the embedded cluster did not start, or a process of it ended
├── SharedClusterError         as another test worker saw it
├── PageTimeoutError           retriable: a page of the console took longer than its limit
├── CheckRefusedError          retriable: a check of the log runs, or has just ended: wait
├── ReplayRefusedError         retriable: the console runs a replay: wait for its end, or stop it
├── ReplayFolderError          the console's folder for replays cannot be written: make room
├── ReplayTooLargeError        a replay of the console is over its limits: choose a smaller range
├── QueryRefusedError          retriable: the console runs other queries: try again
├── OutputTooLargeError        a process of the console wrote too much: choose a smaller range
├── StillReadingError          retriable: the console reads the bucket for the first time
├── BrokersBusyError           retriable: other pages of the console are asking the brokers
├── OutcomeUnknownError        brokers gave no answer to a change of the console: look at the log
├── PlanGoneError              a plan of the console was applied, or is too old: make it again
├── OtherOriginError           no page of the console sent the request: use the page's button
├── PagesBusyError             retriable: the console computes as many pages as it may
├── NotDecodedError            a value on a page of the console has no schema, or does not fit it
├── UnknownSchemaError         the console's decoding process needs the schema with the request
├── SchemaProcessError         retriable: a process that gets schemas or decodes has ended
│   ├── SchemaProcessBusyError  retriable: it is starting, or has another request
│   └── SchemaProcessSlowError  retriable: it did not answer in time, and was ended
├── KeyUnavailableError        retriable: the service of encryption keys does not answer
├── KeysUnavailableError       the keys of the provider of tokens cannot be loaded
├── NewerSchemaError           retriable: a schema was registered during an ingest; ingest again
├── IngestConflictError        retriable: another ingest has committed the batch
├── TaskProcessError           retriable: a process that ran a task of an ingest ended
├── BatchKeysError             the keys of a batch of changes need more memory than the limit
├── OtherTableError            a library or a defect ended the turn of a table: others continue
├── CommitContentionError      retriable: other writers of a table won each try of a commit
├── CatalogDownError           retriable: the catalog behind a REST catalog does not answer
├── ReprocessConflictError     retriable: others changed a table while dead letters were read
├── MirrorError                 a copy cannot continue, or the clusters differ
└── LogError                   the broker answered a client with a Kafka error code
    └── TransactionAbortedError  retriable: nothing of the transaction is visible; run it again
"""


class BucketlogError(Exception):
    """Error of bucketlog; all others are its subclasses. Raised by all parts.

    Errors can be pickled, with all their fields.

    Attributes:
        message: What went wrong.
        remedy: What to do; empty if the message says it.
        code: Stable word for programs, such as CONFIGURATION.
        retriable: Whether the same call may succeed later.

    Examples:
        >>> try:
        ...     bucketlog.Topic("not a name")
        ... except bucketlog.BucketlogError as error:
        ...     print(error.code)
        CONFIGURATION
    """

    code = "ERROR"
    retriable = False

    def __init__(self, message: str, *, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message} ({self.remedy})" if self.remedy else self.message

    def __reduce__(self) -> tuple[object, ...]:
        """Errors cross processes with all their fields, whatever their constructors take."""
        return _restored, (type(self), self.args, self.__dict__)


def _restored(
    kind: type[BucketlogError], args: tuple[object, ...], fields: dict[str, object]
) -> BucketlogError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(fields)
    return error


class ConfigurationError(BucketlogError):
    """Error of an argument or a setting that is not valid. Raised by all parts. Change the
    argument.

    Examples:
        >>> try:
        ...     bucketlog.Topic("not a name")
        ... except bucketlog.ConfigurationError as error:
        ...     print(error.message)
        'not a name' is not a topic name
    """

    code = "CONFIGURATION"


class InvalidDataError(BucketlogError):
    """Error of data that does not have its declared format. Raised by producers, consumers and
    `replay`.

    Examples:
        >>> with log.producer() as producer:
        ...     try:
        ...         producer.send(orders, "an order")
        ...     except bucketlog.InvalidDataError as error:
        ...         print(error.code)
        INVALID_DATA
    """

    code = "INVALID_DATA"


class InvalidTopicNameError(InvalidDataError):
    code = "INVALID_TOPIC_EXCEPTION"


class InvalidConfigError(InvalidDataError):
    """Of a topic: there is none of that name, or it does not take the value."""

    code = "INVALID_CONFIG"


class ConfigRefusedError(InvalidConfigError):
    """Of a broker, or of a subscription to clients' metrics."""

    code = "INVALID_REQUEST"


class UnknownTopicError(InvalidDataError):
    code = "UNKNOWN_TOPIC_OR_PARTITION"


class CorruptObjectError(BucketlogError):
    """Error of a damaged object in the bucket. Raised by `replay` and `bucketlog verify`.

    Attributes:
        key: Key of the object.
        position: First byte that is damaged.
        reason: What is wrong there.

    Examples:
        >>> try:
        ...     for record in bucketlog.replay("s3://bucket/prefix", orders):
        ...         print(record.value.id)
        ... except bucketlog.CorruptObjectError as error:
        ...     print(f"{error.key} is damaged at byte {error.position}")
        1
        2
    """

    code = "CORRUPT_OBJECT"

    def __init__(self, key: str, position: int, reason: str, *, remedy: str = "") -> None:
        super().__init__(f"object {key!r} is damaged at byte {position}: {reason}", remedy=remedy)
        self.key = key
        self.position = position
        self.reason = reason


class DataLossError(BucketlogError):
    """Error of a reader whose next records were deleted, by retention or by a user. Raised by
    `replay` and Spark.

    Examples:
        >>> try:
        ...     for record in bucketlog.replay("s3://bucket/prefix", orders, offsets={0: 1}):
        ...         print(record.value.id)
        ... except bucketlog.DataLossError as error:
        ...     print(error.remedy)
        2
    """

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
    """Error of a schema registry. Raised by formats of `SchemaRegistry`.

    Examples:
        >>> registry = bucketlog.SchemaRegistry("http://localhost:1", timeout_s=0.1)
        >>> try:
        ...     registry.latest("orders-value")
        ... except bucketlog.SchemaRegistryError as error:
        ...     print(error.code)
        SCHEMA_REGISTRY_UNAVAILABLE
    """

    code = "SCHEMA_REGISTRY"


class SchemaRegistryUnavailableError(SchemaRegistryError):
    code = "SCHEMA_REGISTRY_UNAVAILABLE"
    retriable = True


class IncompatibleSchemaError(SchemaRegistryError):
    """Error of a schema that the compatibility rule of its subject forbids. Raised by formats of
    `SchemaRegistry`.

    Examples:
        >>> issubclass(bucketlog.IncompatibleSchemaError, bucketlog.SchemaRegistryError)
        True
    """

    code = "INCOMPATIBLE_SCHEMA"


class ConcurrentUseError(BucketlogError):
    """Error of a second thread that uses a consumer. Raised by consumers, which are for one thread
    at a time.

    Examples:
        >>> import threading
        >>> with log.consumer(orders, start="earliest") as consumer:
        ...     record = next(consumer)
        ...     def read():
        ...         try:
        ...             consumer.poll(timeout_s=0)
        ...         except bucketlog.ConcurrentUseError as error:
        ...             print(error.code)
        ...     thread = threading.Thread(target=read)
        ...     thread.start()
        ...     thread.join()
    """

    code = "CONCURRENT_USE"


class ClusterInUseError(BucketlogError):
    """Error of a data folder or a bucket that another cluster uses. Raised by `EmbeddedCluster`.

    Examples:
        >>> from bucketlog import EmbeddedCluster
        >>> with EmbeddedCluster("data"):
        ...     try:
        ...         EmbeddedCluster("data").start()
        ...     except bucketlog.ClusterInUseError as error:
        ...         print(error.code)
        CLUSTER_IN_USE
    """

    code = "CLUSTER_IN_USE"


TRANSACTION_ABORTABLE = 120


class LogError(BucketlogError):
    """Error that a broker, or librdkafka, reports. Raised by all methods that ask a broker.

    Attributes:
        code: Kafka's name of the error, such as UNKNOWN_TOPIC_OR_PARTITION.
        kafka_code: Number of the error in Kafka's protocol. Numbers below -1 are librdkafka's, such
            as -195 for TRANSPORT.
        retriable: Whether the same call may succeed later.

    Examples:
        >>> try:
        ...     log.topics.create("orders")
        ... except bucketlog.LogError as error:
        ...     print(error.code, error.kafka_code, error.retriable)
        TOPIC_ALREADY_EXISTS 36 False
    """

    def __init__(
        self, message: str, *, code: str, kafka_code: int, retriable: bool, remedy: str = ""
    ) -> None:
        super().__init__(message, remedy=remedy)
        self.code = code
        self.kafka_code = kafka_code
        self.retriable = retriable


class TransactionAbortedError(LogError):
    """Error of a transaction that was aborted: none of its records becomes visible. Raised by
    `Transaction`. Run the transaction again.

    Examples:
        >>> def charge():
        ...     with log.transaction("billing-1") as transaction:
        ...         transaction.send(orders, Order(id="3", amount=1.5), key="ann")
        >>> for attempt in range(3):
        ...     try:
        ...         charge()
        ...         break
        ...     except bucketlog.TransactionAbortedError:
        ...         continue
        >>> attempt
        0
    """

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
    *(BucketlogError, ClusterInUseError, ConcurrentUseError, ConfigurationError),
    *(
        CorruptObjectError,
        DataLossError,
        IncompatibleSchemaError,
        InvalidDataError,
        LogError,
        SchemaRegistryError,
    ),
    TransactionAbortedError,
):
    # names of the package: tracebacks, dead letters and pickles say bucketlog.ConfigurationError
    _public.__module__ = "bucketlog"
