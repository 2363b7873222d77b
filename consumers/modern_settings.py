"""The limits and timeouts of a group of the consumer protocol, with Kafka's names."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from bucketlog.consumers.group_settings import GroupSettings


class MigrationPolicy(StrEnum):
    """Direction in which a group with members may change its protocol
    (group.consumer.migration.policy)."""

    BIDIRECTIONAL = "bidirectional"
    UPGRADE = "upgrade"
    DOWNGRADE = "downgrade"
    DISABLED = "disabled"

    @property
    def may_upgrade(self) -> bool:
        return self in (MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.UPGRADE)

    @property
    def may_downgrade(self) -> bool:
        return self in (MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.DOWNGRADE)


SESSION = "consumer.session.timeout.ms"
HEARTBEAT = "consumer.heartbeat.interval.ms"
ASSIGNMENT = "consumer.assignment.interval.ms"


@dataclass(frozen=True, slots=True)
class ModernSettings:
    """`classic` has the limits that both protocols share: sizes, and the classic protocol's number
    of members. `regexes_max`: different regular expressions of one group's members."""

    classic: GroupSettings = field(default_factory=GroupSettings)
    session_timeout_ms: int = 45_000  # group.consumer.session.timeout.ms
    heartbeat_interval_ms: int = 5_000  # group.consumer.heartbeat.interval.ms
    members_max: int = 1_000  # group.consumer.max.size
    assignment_interval_ms: int = 1_000  # group.consumer.assignment.interval.ms
    migration_policy: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL
    regexes_max: int = 100
    regex_bytes_max: int = 1_024
    regex_memory_bytes_max: int = 1024 * 1024
    regex_refresh_interval_ms: int = 600_000  # group.consumer.regex.refresh.interval.ms
    regex_refresh_interval_ms_min: int = 10_000

    def configured(self, configs: Mapping[str, str]) -> "ModernSettings":
        """Return these settings with the configs of a group. The configs were checked when they
        were set."""
        if not configs:
            return self
        return replace(
            self,
            session_timeout_ms=int(configs.get(SESSION, self.session_timeout_ms)),
            heartbeat_interval_ms=int(configs.get(HEARTBEAT, self.heartbeat_interval_ms)),
            assignment_interval_ms=int(configs.get(ASSIGNMENT, self.assignment_interval_ms)),
        )
