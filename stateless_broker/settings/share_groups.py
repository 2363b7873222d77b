"""The broker's settings for share groups: a part of `BrokerSettings`. The names in the descriptions
are Apache Kafka's."""

from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, Field
from pydantic_settings import BaseSettings

from bucketlog.consumers.share.group_rules import starting_age_ms
from bucketlog.stateless_broker.settings.types import Positive


def _checked_reset(text: str) -> str:
    starting_age_ms(text)
    return text


class ShareIsolation(StrEnum):
    """Isolation of a share group: whether it gets records of transactions that are open or
    aborted."""

    READ_COMMITTED = "read_committed"
    READ_UNCOMMITTED = "read_uncommitted"


class ShareGroupSettings(BaseSettings):
    group_share_auto_offset_reset: Annotated[str, AfterValidator(_checked_reset)] = Field(
        "latest",
        description="share.auto.offset.reset of all share groups: latest, earliest or "
        "by_duration:<duration>.",
    )
    group_share_isolation_level: ShareIsolation = Field(
        ShareIsolation.READ_UNCOMMITTED, description="share.isolation.level of all share groups."
    )
    group_share_session_timeout_ms: Positive = Field(
        45_000, description="group.share.session.timeout.ms"
    )
    group_share_heartbeat_interval_ms: Positive = Field(
        5_000, description="group.share.heartbeat.interval.ms"
    )
    group_share_members_max: Positive = Field(200, description="group.share.max.size")
    group_share_members_total_max: Positive = Field(
        20_000, description="Limit of members in all share groups that a broker coordinates."
    )
    group_share_record_lock_ms: Positive = Field(
        30_000, description="group.share.record.lock.duration.ms"
    )
    group_share_deliveries_max: int = Field(
        5, ge=1, le=32_767, description="group.share.delivery.count.limit"
    )
    group_share_record_locks_max: Positive = Field(
        2_000, description="group.share.partition.max.record.locks"
    )
    share_sessions_max: Positive = Field(2_000, description="group.share.max.share.sessions")
    share_session_partitions_max: Positive = Field(
        10_000, description="Limit of partitions in a share session."
    )
    share_partitions_max: Positive = Field(
        100_000,
        description="Limit of share-partitions in the cluster: partitions with state of a "
        "share group. At the limit, brokers refuse new ones (UNKNOWN_SERVER_ERROR).",
    )
    share_fetch_read_bytes_max: Positive = Field(
        1_048_576,
        description="Limit of a read for a ShareFetch, for each partition. One batch is always "
        "read.",
    )
    share_write_timeout_ms: Positive = Field(
        15_000,
        description="How long a broker waits until acknowledgements are in the log. Then the "
        "client asks for the leader again, and unacknowledged records are delivered once more.",
    )
