"""The broker's settings for consumer groups and committed offsets: a part of `BrokerSettings`."""

from enum import StrEnum

from pydantic import Field, model_validator
from pydantic_settings import BaseSettings

from bucketlog.consumers.modern_settings import MigrationPolicy
from bucketlog.stateless_broker.settings.types import MIB, NotNegative, Positive


class OffsetCommitAck(StrEnum):
    """The moment at which the broker answers an OffsetCommit."""

    LOG = "log"
    REDIS = "redis"


class ConsumerGroupSettings(BaseSettings):
    group_session_timeout_ms_min: Positive = Field(
        6_000, description="group.min.session.timeout.ms"
    )
    group_session_timeout_ms_max: Positive = Field(
        1_800_000, description="group.max.session.timeout.ms"
    )
    group_initial_rebalance_delay_ms: NotNegative = Field(
        3_000,
        description="group.initial.rebalance.delay.ms; `bucketlog dev` does not wait.",
    )
    group_new_member_join_timeout_ms: Positive = Field(
        300_000, description="A new member must join a generation within this time, or is removed."
    )
    group_rebalance_timeout_ms_min: Positive = Field(
        1_000, description="Shorter rebalance timeouts of members are raised to this value."
    )
    group_members_max: Positive = Field(1_000, description="group.max.size")
    group_consumer_session_timeout_ms: Positive = Field(
        45_000, description="group.consumer.session.timeout.ms"
    )
    group_consumer_heartbeat_interval_ms: Positive = Field(
        5_000, description="group.consumer.heartbeat.interval.ms"
    )
    group_consumer_members_max: Positive = Field(
        1_000, description="group.consumer.max.size, which is not limited in Kafka."
    )
    group_consumer_assignment_interval_ms: NotNegative = Field(
        1_000,
        description="group.consumer.assignment.interval.ms; `bucketlog dev` does not wait.",
    )
    group_consumer_migration_policy: MigrationPolicy = Field(
        MigrationPolicy.BIDIRECTIONAL,
        description="group.consumer.migration.policy: bidirectional, upgrade, downgrade or "
        "disabled.",
    )
    group_consumer_regexes_max: Positive = Field(
        100, description="Limit of different regular expressions of a group's members."
    )
    group_consumer_regex_bytes_max: Positive = Field(
        1_024, description="Limit of a regular expression's length."
    )
    group_consumer_regex_memory_bytes_max: Positive = Field(
        MIB, description="Limit of a compiled regular expression."
    )
    group_consumer_regex_refresh_interval_ms: Positive = Field(
        600_000, description="group.consumer.regex.refresh.interval.ms"
    )
    group_pending_members_max: Positive = Field(
        1_000, description="Members of one group that have an id but have not joined yet."
    )
    group_protocols_max: Positive = Field(
        32, description="Limit of assignors in a member's JoinGroup."
    )
    group_member_metadata_bytes_max: Positive = Field(
        MIB, description="Limit of a member's metadata (subscriptions) for all assignors."
    )
    group_bytes_max: Positive = Field(
        16 * MIB, description="Limit of a group's members; their assignments have the same limit."
    )
    coordinated_groups_bytes_max: Positive = Field(
        256 * MIB,
        description="Limit of the memory of all groups that a broker coordinates: members, "
        "assignments and subscribed topics. At the limit, requests that need more memory are "
        "refused (COORDINATOR_NOT_AVAILABLE).",
    )
    groups_max: Positive = Field(
        100_000,
        description="Limit of consumer groups in the cluster. At the limit, a new group is refused "
        "(POLICY_VIOLATION).",
    )
    group_id_bytes_max: Positive = Field(
        1_024, description="Limit of each id, name and address of a group or its members."
    )
    group_subscribed_topics_max: Positive = Field(
        100_000,
        description="Limit of topics in the subscriptions of a group's members, counted for each "
        "member. A group with more counts as subscribed to all topics: its offsets do not expire.",
    )
    offset_commit_ack: OffsetCommitAck = Field(
        OffsetCommitAck.LOG,
        description="log: a commit is answered when it is in the log. redis: it is answered when "
        "Redis has accepted it, which is sooner; it is lost if Redis and this broker both fail.",
    )
    offset_commit_timeout_ms: Positive = Field(5_000, description="offsets.commit.timeout.ms")
    offset_rows_in_flight: Positive = Field(
        500_000,
        description="Limit of partition offsets in unfinished commits. Each 128 bytes of metadata "
        "count as one more offset.",
    )
    offsets_max: Positive = Field(
        2_000_000,
        description="Limit of committed offsets in the cluster. Each 128 bytes of metadata count "
        "as one more offset. At the limit, a commit that adds offsets gets POLICY_VIOLATION.",
    )
    offset_metadata_bytes_max: NotNegative = Field(4_096, description="offset.metadata.max.bytes")
    offsets_retention_minutes: Positive = Field(10_080, description="offsets.retention.minutes")
    offset_retention_ms_max: Positive = Field(
        31_536_000_000,
        description="Limit of the retention that an OffsetCommit (versions 2 to 4) requests. A "
        "longer retention is shortened to the limit.",
    )
    offsets_retention_check_interval_ms: Positive = Field(
        600_000, description="offsets.retention.check.interval.ms"
    )

    @model_validator(mode="after")
    def _session_timeouts_fit(self) -> "ConsumerGroupSettings":
        if self.group_session_timeout_ms_min > self.group_session_timeout_ms_max:
            raise ValueError(
                "group_session_timeout_ms_max must be at least group_session_timeout_ms_min"
            )
        return self

    @model_validator(mode="after")
    def _heartbeats_fit(self) -> "ConsumerGroupSettings":
        if self.group_consumer_heartbeat_interval_ms >= self.group_consumer_session_timeout_ms:
            raise ValueError(
                "group_consumer_session_timeout_ms must be more than "
                "group_consumer_heartbeat_interval_ms"
            )
        return self
