"""The broker's settings for checkpoints, deletion and compaction: a part of `BrokerSettings`."""

from typing import Annotated

from pydantic import Field
from pydantic_settings import BaseSettings

from bucketlog.stateless_broker.settings.types import MIB, NotNegative, Positive


class UpkeepSettings(BaseSettings):
    checkpoint_interval_ms: NotNegative = Field(
        60_000, description="Interval of checkpoints, if there is news; 0: never."
    )
    checkpoint_segments: Positive = Field(
        10_000,
        description="A checkpoint is written early when this many segments have become visible.",
    )
    checkpoint_bytes_max: Positive = Field(
        512 * 1024 * 1024,
        description="Limit of a checkpoint's stored and uncompressed bytes (about 75 for each "
        "batch that is in no tier). Brokers write no larger checkpoint, and pass over a larger one "
        "like a damaged one. Use the same value for all brokers of a cluster.",
    )
    epoch_closed_writers_max: Positive = Field(
        1000,
        description="A new epoch begins when more writers than this are closed in the current one. "
        "Until then, each leaves two small objects and a row in Redis. A broker opens a new writer "
        "when it starts, or when others have closed its chain.",
    )
    epoch_renewal_check_interval_ms: NotNegative = Field(
        600_000, description="How often the closed writers are counted; 0: never."
    )
    deletion_safety_age_ms: NotNegative = Field(
        86_400_000,
        description="Objects that two checkpoints cover, and that no longer hold a batch of the "
        "log, are deleted after this time; 0: never. Use the same value for all brokers of a "
        "cluster.",
    )
    deletion_keys_per_s: Positive = Field(
        1000, description="Limit of the objects of the log that are deleted per second."
    )
    compaction_check_interval_ms: NotNegative = Field(
        10_000, description="How often a broker checks what is to be compacted; 0: never."
    )
    compaction_interval_ms: NotNegative = Field(
        3_600_000, description="Log segments are split by partition when the oldest is this old."
    )
    compaction_window_bytes: Positive = Field(
        256 * MIB,
        description="Log segments are split earlier when this many bytes wait. A broker holds "
        "up to this many bytes in memory for it.",
    )
    compaction_age_ms_min: NotNegative = Field(
        60_000,
        description="Log segments younger than this are not split, for readers of the log's end.",
    )
    compaction_bytes_per_s: Positive = Field(
        64 * MIB, description="Limit of the bytes that compaction reads per second."
    )
    compaction_requests_in_flight: Positive = Field(
        4, description="Limit of concurrent requests of compaction."
    )
    partition_segment_bytes: Positive = Field(
        128 * MIB,
        description="Target size of partition segments. They grow to at most 1.5 times this size.",
    )
    tier_rows_max: Positive = Field(
        64,
        description="Rows of full partition segments that brokers and checkpoints hold of a "
        "partition; older ones go into a manifest.",
    )
    log_cleaner_dedupe_buffer_bytes: Annotated[int, Field(ge=1024)] = Field(
        128 * MIB, description="log.cleaner.dedupe.buffer.size: 24 bytes a key of compacted topics."
    )
