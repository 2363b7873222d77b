"""The limits and times of a share group, for the parts that are pure."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

SESSION = "share.session.timeout.ms"
HEARTBEAT = "share.heartbeat.interval.ms"


@dataclass(frozen=True, slots=True)
class ShareMemberLimits:
    """Limits of members: `members_max` of a group, `members_total_max` of all groups that a broker
    coordinates."""

    session_timeout_ms: int
    heartbeat_interval_ms: int
    members_max: int
    members_total_max: int
    topics_max: int
    id_bytes_max: int

    def configured(self, configs: Mapping[str, str]) -> "ShareMemberLimits":
        """Return these limits with the configs of a group. The configs were checked when they
        were set."""
        if not configs:
            return self
        return replace(
            self,
            session_timeout_ms=int(configs.get(SESSION, self.session_timeout_ms)),
            heartbeat_interval_ms=int(configs.get(HEARTBEAT, self.heartbeat_interval_ms)),
        )


@dataclass(frozen=True, slots=True)
class ShareRules:
    """Rules for the share-partitions of a group. A share-partition without state begins at the
    first record that is not older than `starting_age_ms`: 0 for the end of the log, None for its
    start."""

    starting_age_ms: int | None
    committed_only: bool
    record_locks: int
    deliveries: int
    lock_ms: int
    may_renew: bool
