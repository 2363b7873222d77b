"""The configs of topics: types, defaults, accepted values, and configs without effect here.

Source: Kafka 4.3's TopicConfig and LogConfig (names, types, defaults, values),
ThrottledReplicaListValidator, ServerTopicConfigSynonyms. The configs are in the order of
LogConfig, which decides about the first error.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from bucketlog.metadata.config_definitions import (
    LONG_MAX,
    ConfigDefinition,
    ConfigType,
    ListOf,
    OneOf,
    Range,
)
from bucketlog.metadata.topic_value_checks import (
    EncryptionKey,
    GzipLevel,
    MirrorSource,
    ThrottledReplicas,
)

CLEANUP_POLICY = "cleanup.policy"
COMPRESSION_TYPE = "compression.type"
COMPRESSION_LEVELS: Mapping[str, str] = {
    codec: f"compression.{codec}.level" for codec in ("gzip", "lz4", "zstd")
}
DELETE_RETENTION_MS = "delete.retention.ms"
ENCRYPTION_KEY_ID = "encryption.key.id"
MAX_COMPACTION_LAG_MS = "max.compaction.lag.ms"
MAX_MESSAGE_BYTES = "max.message.bytes"
MIN_CLEANABLE_DIRTY_RATIO = "min.cleanable.dirty.ratio"
MIN_COMPACTION_LAG_MS = "min.compaction.lag.ms"
MIRROR_SOURCE = "mirror.source"
RECORD_VALIDATION = "record.validation"
REMOTE_STORAGE_ENABLE = "remote.storage.enable"
RETENTION_BYTES = "retention.bytes"
RETENTION_MS = "retention.ms"
TIMESTAMP_AFTER_MAX_MS = "message.timestamp.after.max.ms"
TIMESTAMP_BEFORE_MAX_MS = "message.timestamp.before.max.ms"
TIMESTAMP_TYPE = "message.timestamp.type"
HEADER_ALONE = "header"
LOG_APPEND_TIME = "LogAppendTime"

BOOLEAN, STRING, INT = ConfigType.BOOLEAN, ConfigType.STRING, ConfigType.INT
LONG, DOUBLE, LIST = ConfigType.LONG, ConfigType.DOUBLE, ConfigType.LIST
_FILES = "Partitions have no files: objects in the bucket hold segments and indexes."
_FLUSHES = "A record is in the bucket before it is acknowledged."
_REPLICAS = "Partitions have no replicas: the bucket keeps copies."
_REMOTE = "All records are in the bucket, and brokers keep none."
_NOT_NEGATIVE = Range(0)


@dataclass(frozen=True, slots=True)
class TopicConfig(ConfigDefinition):
    """`broker_name`: the broker's config that is the default of the topic's config in Kafka (its
    synonym, KIP-226); None: there is none. `fallback`: in Kafka, that config has no default, but
    this other config has; its name and value."""

    broker_name: str | None = None
    fallback: tuple[str, str] | None = None

    def under_broker_name(self) -> "TopicConfig":
        """The same config as the broker's default, for values and errors."""
        return replace(self, name=self.broker_name or self.name)


_CONFIGS = (
    TopicConfig(
        "segment.bytes",
        INT,
        "1073741824",
        "The size of a segment's file in Kafka.",
        Range(1024 * 1024),
        _FILES,
        broker_name="log.segment.bytes",
    ),
    TopicConfig(
        "segment.ms",
        LONG,
        "604800000",
        "The age at which Kafka begins a new segment.",
        Range(1),
        _FILES,
        broker_name="log.roll.ms",
        fallback=("log.roll.hours", "168"),
    ),
    TopicConfig(
        "segment.jitter.ms",
        LONG,
        "0",
        "By how much Kafka varies the age of segments.",
        _NOT_NEGATIVE,
        _FILES,
        broker_name="log.roll.jitter.ms",
        fallback=("log.roll.jitter.hours", "0"),
    ),
    TopicConfig(
        "segment.index.bytes",
        INT,
        "10485760",
        "The size of an index's file in Kafka.",
        Range(4),
        _FILES,
        broker_name="log.index.size.max.bytes",
    ),
    TopicConfig(
        "flush.messages",
        LONG,
        str(LONG_MAX),
        "After how many records Kafka flushes the log to disk.",
        Range(1),
        _FLUSHES,
        broker_name="log.flush.interval.messages",
    ),
    TopicConfig(
        "flush.ms",
        LONG,
        str(LONG_MAX),
        "After what time Kafka flushes the log to disk.",
        _NOT_NEGATIVE,
        _FLUSHES,
        broker_name="log.flush.interval.ms",
        fallback=("log.flush.scheduler.interval.ms", str(LONG_MAX)),
    ),
    TopicConfig(
        RETENTION_BYTES,
        LONG,
        "-1",
        "How many bytes of a partition are kept. Negative: no limit.",
        broker_name="log.retention.bytes",
    ),
    TopicConfig(
        RETENTION_MS,
        LONG,
        "604800000",
        "How long records are kept. -1: no limit.",
        Range(-1),
        broker_name="log.retention.ms",
        fallback=("log.retention.hours", "168"),
    ),
    TopicConfig(
        MAX_MESSAGE_BYTES,
        INT,
        "1048588",
        "The size of the largest record batch, as it is compressed.",
        _NOT_NEGATIVE,
        broker_name="message.max.bytes",
    ),
    TopicConfig(
        "index.interval.bytes",
        INT,
        "4096",
        "How many bytes lie between two entries of an index in Kafka.",
        _NOT_NEGATIVE,
        _FILES,
        broker_name="log.index.interval.bytes",
    ),
    TopicConfig(
        DELETE_RETENTION_MS,
        LONG,
        "86400000",
        "How long tombstones stay in compacted topics.",
        _NOT_NEGATIVE,
        broker_name="log.cleaner.delete.retention.ms",
    ),
    TopicConfig(
        MIN_COMPACTION_LAG_MS,
        LONG,
        "0",
        "How long a record stays uncompacted at least.",
        _NOT_NEGATIVE,
        broker_name="log.cleaner.min.compaction.lag.ms",
    ),
    TopicConfig(
        MAX_COMPACTION_LAG_MS,
        LONG,
        str(LONG_MAX),
        "How long a record stays uncompacted at most.",
        Range(1),
        broker_name="log.cleaner.max.compaction.lag.ms",
    ),
    TopicConfig(
        "file.delete.delay.ms",
        LONG,
        "60000",
        "How long Kafka keeps the file of a deleted segment.",
        _NOT_NEGATIVE,
        "Objects are deleted after a safety age, which is a setting of the broker.",
        broker_name="log.segment.delete.delay.ms",
    ),
    TopicConfig(
        MIN_CLEANABLE_DIRTY_RATIO,
        DOUBLE,
        "0.5",
        "Which part of a log must be dirty before the log is compacted.",
        Range(0, 1),
        broker_name="log.cleaner.min.cleanable.ratio",
    ),
    TopicConfig(
        CLEANUP_POLICY,
        LIST,
        "delete",
        "delete: delete records by age and size. compact: keep the latest record of each key. An "
        "empty list: keep all records.",
        ListOf(("compact", "delete")),
        broker_name="log.cleanup.policy",
    ),
    TopicConfig(
        "unclean.leader.election.enable",
        BOOLEAN,
        "false",
        "Whether a replica that lacks records may become the leader in Kafka.",
        no_effect=_REPLICAS,
        broker_name="unclean.leader.election.enable",
    ),
    TopicConfig(
        "min.insync.replicas",
        INT,
        "1",
        "How many replicas must have a record before Kafka acknowledges it (acks=all).",
        Range(1),
        _FLUSHES,
        broker_name="min.insync.replicas",
    ),
    TopicConfig(
        COMPRESSION_TYPE,
        STRING,
        "producer",
        "The codec of stored batches. Brokers recompress batches of another codec. producer: the "
        "batches keep the producer's compression.",
        OneOf(("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")),
        broker_name=COMPRESSION_TYPE,
    ),
    TopicConfig(
        COMPRESSION_LEVELS["gzip"],
        INT,
        "-1",
        "The level of gzip, for topics with compression.type=gzip.",
        GzipLevel(),
        broker_name=COMPRESSION_LEVELS["gzip"],
    ),
    TopicConfig(
        COMPRESSION_LEVELS["lz4"],
        INT,
        "9",
        "The level of lz4, for topics with compression.type=lz4.",
        Range(1, 17),
        broker_name=COMPRESSION_LEVELS["lz4"],
    ),
    TopicConfig(
        COMPRESSION_LEVELS["zstd"],
        INT,
        "3",
        "The level of zstd, for topics with compression.type=zstd.",
        Range(-131_072, 22),
        broker_name=COMPRESSION_LEVELS["zstd"],
    ),
    TopicConfig(
        "preallocate",
        BOOLEAN,
        "false",
        "Whether Kafka allocates the file of a new segment in full.",
        no_effect=_FILES,
        broker_name="log.preallocate",
    ),
    TopicConfig(
        TIMESTAMP_TYPE,
        STRING,
        "CreateTime",
        "CreateTime: the producer's timestamps. LogAppendTime: the broker's.",
        OneOf(("CreateTime", LOG_APPEND_TIME)),
        broker_name="log.message.timestamp.type",
    ),
    TopicConfig(
        TIMESTAMP_BEFORE_MAX_MS,
        LONG,
        str(LONG_MAX),
        "How far a record's timestamp may be behind the broker's clock.",
        _NOT_NEGATIVE,
        broker_name="log.message.timestamp.before.max.ms",
    ),
    TopicConfig(
        TIMESTAMP_AFTER_MAX_MS,
        LONG,
        "3600000",
        "How far a record's timestamp may be ahead of the broker's clock.",
        _NOT_NEGATIVE,
        broker_name="log.message.timestamp.after.max.ms",
    ),
    TopicConfig(
        "leader.replication.throttled.replicas",
        LIST,
        "",
        "Replicas whose replication Kafka slows down at the leader.",
        ThrottledReplicas(),
        _REPLICAS,
    ),
    TopicConfig(
        "follower.replication.throttled.replicas",
        LIST,
        "",
        "Replicas whose replication Kafka slows down at the follower.",
        ThrottledReplicas(),
        _REPLICAS,
    ),
    TopicConfig(
        REMOTE_STORAGE_ENABLE,
        BOOLEAN,
        "false",
        "Kafka's tiered storage. As in a Kafka cluster without it, true is refused.",
        no_effect=_REMOTE,
    ),
    TopicConfig(
        "local.retention.ms",
        LONG,
        "-2",
        "With tiered storage, how long Kafka keeps records on disks. -2: as retention.ms.",
        Range(-2),
        _REMOTE,
        broker_name="log.local.retention.ms",
    ),
    TopicConfig(
        "local.retention.bytes",
        LONG,
        "-2",
        "With tiered storage, how many bytes Kafka keeps on disks. -2: as retention.bytes.",
        Range(-2),
        _REMOTE,
        broker_name="log.local.retention.bytes",
    ),
    TopicConfig(
        "remote.log.copy.disable",
        BOOLEAN,
        "false",
        "Whether Kafka's tiered storage copies nothing more.",
        no_effect=_REMOTE,
    ),
    TopicConfig(
        "remote.log.delete.on.disable",
        BOOLEAN,
        "false",
        "Whether Kafka deletes tiered records when tiered storage is switched off.",
        no_effect=_REMOTE,
    ),
    TopicConfig(
        ENCRYPTION_KEY_ID,
        STRING,
        "",
        "The key that encrypts new records (docs/encryption.md). Empty: no encryption.",
        EncryptionKey(),
    ),
    TopicConfig(
        MIRROR_SOURCE,
        STRING,
        "",
        "The ids of the cluster and the topic that `bucketlog mirror` copies from. While the "
        "config is set, brokers refuse all producers except the mirror. The cut-over deletes the "
        "config.",
        MirrorSource(),
    ),
    TopicConfig(
        RECORD_VALIDATION,
        STRING,
        "full",
        "full: each record is checked before the batch is acknowledged. header: only the batch's "
        "header and CRC are checked. Compacted topics are always checked in full.",
        OneOf(("full", HEADER_ALONE)),
        broker_name=RECORD_VALIDATION,
    ),
)
TOPIC_CONFIGS: Mapping[str, TopicConfig] = {config.name: config for config in _CONFIGS}
"""All configs of topics. They are Kafka's, except those in `OWN_CONFIGS`."""
OWN_CONFIGS = frozenset({ENCRYPTION_KEY_ID, MIRROR_SOURCE, RECORD_VALIDATION})
