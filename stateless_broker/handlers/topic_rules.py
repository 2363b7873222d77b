"""The rules of a topic's configs for batches that clients produce. Pure."""

from bucketlog.log_format.record_check import RecordRules
from bucketlog.log_format.wire.plain_produce import PlainProduce
from bucketlog.metadata.fold import TopicState
from bucketlog.metadata.topic_configs import (
    ENCRYPTION_KEY_ID,
    HEADER_ALONE,
    LOG_APPEND_TIME,
    MAX_MESSAGE_BYTES,
    MIRROR_SOURCE,
    RECORD_VALIDATION,
    TIMESTAMP_AFTER_MAX_MS,
    TIMESTAMP_BEFORE_MAX_MS,
    TIMESTAMP_TYPE,
)
from bucketlog.metadata.topic_defaults import TopicDefaults
from bucketlog.stateless_broker.handlers.recompression import compression_of


class TopicRules:
    """The rules of a topic's configs for its batches. Configs are read once, not for each batch."""

    __slots__ = (
        "_accepts_plain",
        "_after_max_ms",
        "_are_records_checked",
        "_before_max_ms",
        "_keys_required",
        "_latest",
        "_max_bytes",
        "batch_bytes_max",
        "compression",
        "encrypted_by",
        "has_append_time",
        "mirror_source",
        "of_mirror",
        "topic",
    )

    def __init__(self, topic: TopicState, defaults: TopicDefaults, max_bytes: int) -> None:
        """`max_bytes` bounds the decompressed records of a batch."""
        configs = topic.configs
        self.topic = topic
        self.batch_bytes_max = int(defaults.effective(configs, MAX_MESSAGE_BYTES))
        self.has_append_time = defaults.effective(configs, TIMESTAMP_TYPE) == LOG_APPEND_TIME
        self.compression = compression_of(topic, defaults)
        self.encrypted_by = defaults.effective(configs, ENCRYPTION_KEY_ID)
        self._keys_required = defaults.has_policy(configs, "compact")
        self._are_records_checked = (
            self._keys_required or defaults.effective(configs, RECORD_VALIDATION) != HEADER_ALONE
        )
        self._before_max_ms = int(defaults.effective(configs, TIMESTAMP_BEFORE_MAX_MS))
        self._after_max_ms = int(defaults.effective(configs, TIMESTAMP_AFTER_MAX_MS))
        self._max_bytes = max_bytes
        self.mirror_source = configs.get(MIRROR_SOURCE, "")
        self.of_mirror = RecordRules(max_bytes=max_bytes)
        """The rules for batches that another cluster has accepted."""
        self._latest: tuple[int, RecordRules] | None = None
        self._accepts_plain = not (
            self._keys_required
            or self.has_append_time
            or self.compression is not None
            or self.encrypted_by
            or self.mirror_source
        )
        """Whether the topic stores an uncompressed batch unchanged, if its records and timestamps
        are valid."""

    def records(self, now_ms: int) -> RecordRules | None:
        """The rules for records at `now_ms`; None: check headers only. Records of compacted topics
        are always checked, because key compaction must read them."""
        if not self._are_records_checked:
            return None
        if self._latest is None or self._latest[0] != now_ms:
            self._latest = (now_ms, self._records(now_ms))
        return self._latest[1]

    def are_kept_by(self, produced: PlainProduce, now_ms: int) -> bool:
        """Return whether the topic stores the batch unchanged, and checks only its size and
        timestamps. `now_ms` is the time in milliseconds since 1970."""
        return (
            self._accepts_plain
            and len(produced.records) <= self.batch_bytes_max
            and produced.header.max_timestamp <= now_ms + self._after_max_ms
            and now_ms <= self._before_max_ms
        )

    def _records(self, now_ms: int) -> RecordRules:
        if self.has_append_time:
            return RecordRules(self._keys_required, max_bytes=self._max_bytes)
        return RecordRules.of(
            keys_required=self._keys_required,
            now_ms=now_ms,
            before_max_ms=self._before_max_ms,
            after_max_ms=self._after_max_ms,
            max_bytes=self._max_bytes,
        )
