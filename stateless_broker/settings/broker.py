"""The broker's settings: data only. Each is an environment variable with the prefix `BUCKETLOG_`.

Every limit carries its unit in its name. Kafka's own names are in the descriptions where there
is one.
"""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

from pydantic import Field, model_validator
from pydantic_settings import SettingsConfigDict

from bucketlog.log_format.compression import MAX_DECOMPRESSED_BYTES
from bucketlog.log_format.model import TOPIC_PARTITIONS_MAX
from bucketlog.log_format.wire.frames import ITEMS_MAX
from bucketlog.metadata.topic_configs import (
    MAX_MESSAGE_BYTES,
    RECORD_VALIDATION,
    RETENTION_BYTES,
    RETENTION_MS,
    TIMESTAMP_AFTER_MAX_MS,
    TIMESTAMP_BEFORE_MAX_MS,
)
from bucketlog.metadata.topic_defaults import TopicDefaults
from bucketlog.stateless_broker.settings.audit import AuditSettings
from bucketlog.stateless_broker.settings.authorization import AuthorizationSettings
from bucketlog.stateless_broker.settings.cluster import ClusterSettings
from bucketlog.stateless_broker.settings.connections import ConnectionSettings
from bucketlog.stateless_broker.settings.consumer_groups import ConsumerGroupSettings
from bucketlog.stateless_broker.settings.encryption import EncryptionSettings
from bucketlog.stateless_broker.settings.fetch import FetchSettings
from bucketlog.stateless_broker.settings.listeners import ListenerSettings
from bucketlog.stateless_broker.settings.logins import OAUTHBEARER, LoginSettings
from bucketlog.stateless_broker.settings.quotas import QuotaSettings
from bucketlog.stateless_broker.settings.served_console import ServedConsoleSettings
from bucketlog.stateless_broker.settings.share_groups import ShareGroupSettings
from bucketlog.stateless_broker.settings.telemetry import TelemetrySettings
from bucketlog.stateless_broker.settings.tenants import TenantSettings
from bucketlog.stateless_broker.settings.tls import TlsSettings
from bucketlog.stateless_broker.settings.transactions import TransactionSettings
from bucketlog.stateless_broker.settings.types import (
    MIB,
    AtLeastMinusOne,
    LongNotNegative,
    NotNegative,
    Percent,
    Positive,
    Quantile,
)
from bucketlog.stateless_broker.settings.upkeep import UpkeepSettings

TOPIC_DEFAULTS = {
    MAX_MESSAGE_BYTES: "message_max_bytes",
    RECORD_VALIDATION: "record_validation",
    RETENTION_BYTES: "log_retention_bytes",
    RETENTION_MS: "log_retention_ms",
    TIMESTAMP_AFTER_MAX_MS: "log_message_timestamp_after_max_ms",
    TIMESTAMP_BEFORE_MAX_MS: "log_message_timestamp_before_max_ms",
}
"""Settings that are brokers' defaults of topic configs."""

SEAL_MS = 500
"""The time that brokers need to seal the chain of a broker whose session has ended."""


class RecordValidation(StrEnum):
    """Checks of a produced batch before it is acknowledged."""

    FULL = "full"
    HEADER = "header"


class BrokerSettings(
    ListenerSettings,
    TlsSettings,
    LoginSettings,
    AuditSettings,
    AuthorizationSettings,
    QuotaSettings,
    ServedConsoleSettings,
    TelemetrySettings,
    ClusterSettings,
    ConnectionSettings,
    ConsumerGroupSettings,
    ShareGroupSettings,
    EncryptionSettings,
    FetchSettings,
    TenantSettings,
    TransactionSettings,
    UpkeepSettings,
):
    model_config = SettingsConfigDict(env_prefix="BUCKETLOG_", frozen=True)

    bucket_url: str = Field(description="Bucket of the log: s3://bucket/prefix or file:///folder.")
    redis_url: str | None = Field(
        None,
        description="The sequencer: redis://, rediss://, unix://, redis+sentinel:// or "
        "redis+cluster:// URL (docs/redis.md). Default: a broker runs a Valkey.",
    )
    shard: NotNegative = Field(0, description="The shard of the cluster this broker serves.")

    state_key_file: Path | None = Field(
        None,
        description="File with the keys that sign checkpoints, floors and manifests: one key per "
        "line, in hexadecimal (docs/operations.md#signed-state). Default: nothing is signed.",
    )
    state_unsigned_accepted: bool = Field(
        False,
        description="With a key file: whether to act on unsigned checkpoints, floors and "
        "manifests, too. Use it while a cluster begins to sign.",
    )

    node_id: NotNegative | None = Field(
        None, description="broker.id; default: the lowest that no live broker has."
    )
    zone: str = Field("", description="broker.rack: the availability zone this broker is in.")

    flush_interval_ms: NotNegative | None = Field(
        None,
        description="Shortest time between flushes; 0: group commit. Default: 250 on S3, else 0.",
    )
    flush_bytes: Positive = Field(8 * MIB, description="Waiting bytes that start a flush early.")
    flush_batches_max: Positive = Field(
        2_000,
        description="Limit of batches in a flush. A flush starts early when this many wait.",
    )
    flush_stamps_max: Positive = Field(
        5_000,
        description="Limit of partitions that get only a fresh high watermark in a flush "
        "(stamp_interval_ms).",
    )
    puts_in_flight: Positive = Field(2, description="Number of segments that are written at once.")
    produce_buffer_bytes: Positive = Field(
        256 * MIB,
        description="Memory of received requests; at the limit, sockets are not read.",
    )
    produce_buffer_address_percent_max: Percent = Field(
        25,
        description="Percentage of produce_buffer_bytes that one address may hold. A larger frame "
        "is accepted if its address holds no other.",
    )
    put_hedge_quantile: Quantile | None = Field(
        None,
        description="A PUT is sent twice if it is slower than this share of recent PUTs. 0: never. "
        "Default: 0.95 on S3, else 0.",
    )
    put_hedge_percent_max: Annotated[int, Field(ge=0, le=100)] = Field(
        10, description="At most this percentage of PUTs is sent twice."
    )
    put_retry_ms: Positive = Field(2000, description="The longest pause before a PUT is retried.")
    put_stalled_ms: Positive = Field(
        2000,
        description="A PUT that takes longer than this, and longer than four times the usual time, "
        "means that this broker cannot write.",
    )
    put_give_up_ms: Positive = Field(
        10_000,
        description="If a PUT takes longer, the writer is sealed and a new writer continues.",
    )
    reservation_limit_ms: Positive = Field(
        15_000, description="Other brokers seal a writer whose segment is open for longer."
    )

    request_bytes_max: Positive = Field(100 * MIB, description="socket.request.max.bytes")
    other_request_bytes_max: Positive = Field(
        4 * MIB, description="Limit of the size of a request, except Produce."
    )
    request_items_max: Positive = Field(
        ITEMS_MAX,
        description="Limit of topics, partitions, members and other items in a request.",
    )
    request_bytes_per_s_min: Positive = Field(
        4_096, description="A connection that sends a request more slowly is closed."
    )
    request_slow_ms_max: Positive = Field(
        10_000, description="How long a request may be slower than request_bytes_per_s_min."
    )
    batch_records_max: Positive = Field(
        10_000_000, description="Limit of the records in one batch."
    )
    batch_decompressed_bytes_max: Annotated[int, Field(ge=1, le=MAX_DECOMPRESSED_BYTES)] = Field(
        64 * MIB, description="The largest size of a compressed batch's records, decompressed."
    )
    validation_threads: Positive = Field(
        2, description="Threads that validate batches; a connection uses one at a time."
    )
    validation_bytes_max: Positive = Field(
        128 * MIB, description="Memory of decompressed records during validation."
    )
    validation_inline_bytes_max: NotNegative = Field(
        16 * 1024,
        description="Uncompressed batches of a request are validated on the event loop up to this "
        "total size, because a thread costs more; 0: never.",
    )
    produce_timeout_ms_max: Positive = Field(300_000, description="Longest wait of a Produce.")
    requests_in_flight: Positive = Field(
        2048, description="Limit of concurrent requests of one connection."
    )
    other_requests_in_flight: Positive = Field(
        64, description="Limit of concurrent requests of a connection, except Produce."
    )
    response_buffer_bytes: Positive = Field(
        64 * 1024, description="Unsent response bytes at which a connection is not read any more."
    )
    response_memory_bytes_max: Positive = Field(
        256 * MIB,
        description="Memory of fetch responses and large responses, from before their data is read "
        "until clients have received them. Further responses wait.",
    )
    response_memory_address_percent_max: Percent = Field(
        50, description="Percentage of response_memory_bytes_max that one address may hold."
    )
    response_stalled_ms_max: Positive = Field(
        30_000, description="A client that takes no byte of a response for this time is closed."
    )
    response_slow_ms_max: Positive = Field(
        10_000,
        description="While other responses wait for memory, a connection is closed if its client "
        "would need longer than this for its response at its present rate.",
    )

    metadata_cache_bytes_max: NotNegative = Field(
        16 * MIB, description="Cache of encoded topics for Metadata responses."
    )
    num_partitions: Positive = Field(1, description="num.partitions")
    partitions_max: Annotated[int, Field(gt=0, le=TOPIC_PARTITIONS_MAX)] = Field(
        10_000, description="Limit of the partitions of a topic."
    )
    cluster_partitions_max: Positive = Field(
        50_000, description="Limit of partitions of all topics together."
    )
    partition_changes_per_s: NotNegative = Field(
        5_000,
        description="controller_mutation_rate, for all clients of a broker together: limit of the "
        "partitions created and deleted per second. A burst may use the quota of 11 seconds. Above "
        "the limit, a client gets THROTTLING_QUOTA_EXCEEDED; an older client waits. 0: no limit.",
    )
    message_max_bytes: Annotated[int, Field(ge=0, le=2**31 - 1)] = Field(
        1_048_588, description="message.max.bytes: for topics without max.message.bytes."
    )
    record_validation: RecordValidation = Field(
        RecordValidation.FULL,
        description="Default of record.validation. full: each record is checked before the batch "
        "is acknowledged; header: only the batch's header and CRC are checked.",
    )
    log_message_timestamp_before_max_ms: LongNotNegative = Field(
        2**63 - 1,
        description="log.message.timestamp.before.max.ms: for topics without "
        "message.timestamp.before.max.ms.",
    )
    log_message_timestamp_after_max_ms: LongNotNegative = Field(
        3_600_000,
        description="log.message.timestamp.after.max.ms: for topics without "
        "message.timestamp.after.max.ms.",
    )
    log_retention_ms: AtLeastMinusOne = Field(
        604_800_000, description="log.retention.ms: for topics without retention.ms; -1: forever."
    )
    log_retention_bytes: AtLeastMinusOne = Field(
        -1, description="log.retention.bytes: for topics without retention.bytes; -1: no limit."
    )
    log_retention_check_interval_ms: NotNegative = Field(
        300_000, description="log.retention.check.interval.ms; 0: this broker never looks."
    )
    producer_id_expiration_ms: Positive = Field(
        86_400_000,
        description="producer.id.expiration.ms: after this time without a write to a partition, "
        "Redis and checkpoints forget the producer for that partition.",
    )
    producers_max: Positive = Field(
        1_000_000,
        description="Limit of idempotent producers in Redis, counted per partition. At the limit, "
        "a producer that is new to a partition gets NOT_ENOUGH_REPLICAS and retries.",
    )
    producer_id_expiration_check_interval_ms: NotNegative = Field(
        600_000,
        description="producer.id.expiration.check.interval.ms; 0: this broker never checks.",
    )
    config_change_ms_max: Positive = Field(
        30_000, description="How long a request waits for a change of configs."
    )
    config_resources_max: Positive = Field(
        1_000, description="Limit of brokers, groups and subscriptions that have configs."
    )
    config_resource_name_bytes_max: Positive = Field(
        1_024, description="Limit of the name of a group or subscription that has configs."
    )
    auto_create_topics: bool = Field(True, description="auto.create.topics.enable")

    redis_timeout_ms: Positive = Field(5000, description="How long a call to Redis may take.")
    redis_lookup_interval_ms: Positive = Field(
        1000,
        description="Time between two lookups of the primary by sentinels or in a Redis Cluster.",
    )
    start_timeout_ms: NotNegative = Field(
        60_000,
        description="A broker that starts waits this long for Redis and the bucket, then exits.",
    )
    handover_ms: NotNegative = Field(
        1000,
        description="How long a stopping broker sends its clients to others before it closes "
        "their connections: at most half of drain_timeout_ms.",
    )
    slow_request_ms: NotNegative = Field(
        10_000,
        description="Requests that exceed the wait they asked for by this time are logged; 0: off.",
    )
    drain_timeout_ms: NotNegative = Field(
        20_000, description="Time that a stopping broker has to write accepted batches."
    )
    view_wait_ms_max: NotNegative = Field(
        2000, description="How long an offset beyond this broker's view waits for the view."
    )
    stream_segments_max: Positive = Field(
        5000, description="Visible segments kept in Redis for the brokers' views."
    )
    stream_bytes_max: Positive = Field(
        128 * MIB,
        description="Limit of the footers of visible segments in Redis; the newest footer always "
        "stays. Brokers that have fallen behind read from the bucket.",
    )
    footer_reads_in_flight: Positive = Field(
        32, description="Footers that are read at once at start-up."
    )
    known_batches_max: NotNegative = Field(
        100_000,
        description="Batches since the last checkpoint of which a new epoch reads no footer again.",
    )

    @model_validator(mode="after")
    def _timeouts_fit(self) -> "BrokerSettings":
        if self.heartbeat_interval_ms * 2 > self.role_timeout_effective_ms:
            raise ValueError("role_timeout_ms must be at least twice heartbeat_interval_ms")
        if self.role_timeout_effective_ms > self.session_timeout_ms:
            raise ValueError("session_timeout_ms must be at least role_timeout_ms")
        if self.batch_decompressed_bytes_max > self.validation_bytes_max:
            raise ValueError("validation_bytes_max must be at least batch_decompressed_bytes_max")
        self._check_logins()
        if self.ssl_certificate_file is None or self.ssl_key_file is None:
            for spec in self.listener_specs:
                if spec.is_tls:
                    raise ValueError(
                        f"listener {spec.name} needs a certificate and its key: set "
                        "BUCKETLOG_SSL_CERTIFICATE_FILE and BUCKETLOG_SSL_KEY_FILE"
                    )
        if self.put_give_up_ms >= self.reservation_limit_ms:
            raise ValueError("reservation_limit_ms must be more than put_give_up_ms")
        if self.sequencer_timeout_ms and self.sequencer_timeout_ms < self.session_timeout_ms:
            raise ValueError("sequencer_timeout_ms must be 0 or at least session_timeout_ms")
        if self.sequencer_timeout_ms == 0 and self.redis_url is None:
            raise ValueError("without redis_url, sequencer_timeout_ms must not be 0")
        return self

    def _check_logins(self) -> None:
        for spec in self.listener_specs:
            if not spec.has_login:
                continue
            offered = self.mechanisms(is_tls=spec.is_tls)
            if self.credentials_key_file is None and set(offered) - {OAUTHBEARER}:
                raise ValueError(
                    f"listener {spec.name} needs a key for credentials: set "
                    "BUCKETLOG_CREDENTIALS_KEY_FILE"
                )
            if not offered:
                raise ValueError(
                    f"listener {spec.name} has no TLS, which {self.sasl_mechanisms} needs: use "
                    "SASL_SSL, or add SCRAM-SHA-512 to BUCKETLOG_SASL_MECHANISMS"
                )
            if OAUTHBEARER in offered and self.tenants_file is None:
                self.check_tokens()

    @property
    def topic_defaults(self) -> TopicDefaults:
        return TopicDefaults(
            {config: str(getattr(self, name)) for config, name in TOPIC_DEFAULTS.items()}
        )

    @property
    def role_timeout_effective_ms(self) -> int:
        return self.role_timeout_ms or self.session_timeout_ms // 2

    @property
    def sequencer_timeout_effective_ms(self) -> int:
        """The effective time-out in milliseconds. 0: brokers wait for the configured Redis."""
        if self.sequencer_timeout_ms is not None:
            return self.sequencer_timeout_ms
        return self.session_timeout_ms + SEAL_MS

    @property
    def flush_interval_effective_ms(self) -> int:
        if self.flush_interval_ms is not None:
            return self.flush_interval_ms
        return 250 if self.bucket_url.startswith("s3:") else 0

    @property
    def put_hedge_quantile_effective(self) -> float:
        if self.put_hedge_quantile is not None:
            return self.put_hedge_quantile
        return 0.95 if self.bucket_url.startswith("s3:") else 0
