"""Limits of a group: timeouts and sizes, as data. Comments give Kafka's names, where Kafka has any.

Sizes are checked before anything is kept. A group's members and pending members never cost more
than `group_bytes_max`, nor do the assignments of a generation. A snapshot is never longer than
`snapshot_bytes_max`.
"""

from dataclasses import dataclass, fields

from bucketlog.log_format.errors import ConfigurationError

_HEADER_IDS = 4  # group, protocol type, protocol, leader
_HEADER_BYTES = 1024
MEMBER_ID_SUFFIX_BYTES = 37  # "-" and a UUID


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """Limits of groups. `rebalance_timeout_ms_min`: a client that asks for none does not make its
    coordinator spin. `id_bytes_max`: for each id, name and address that a client sends, as UTF-8.
    `subscribed_topics_max`: topics in the subscriptions of all members of a group. A group with
    more counts as subscribed to all topics."""

    session_timeout_ms_min: int = 6_000  # group.min.session.timeout.ms
    session_timeout_ms_max: int = 1_800_000  # group.max.session.timeout.ms
    initial_rebalance_delay_ms: int = 3_000  # group.initial.rebalance.delay.ms
    new_member_join_timeout_ms: int = 300_000
    rebalance_timeout_ms_min: int = 1_000
    members_max: int = 1_000  # group.max.size
    pending_members_max: int = 1_000
    protocols_max: int = 32
    member_metadata_bytes_max: int = 1024 * 1024
    group_bytes_max: int = 16 * 1024 * 1024
    id_bytes_max: int = 1_024
    subscribed_topics_max: int = 100_000

    def __post_init__(self) -> None:
        for field in fields(self):
            if getattr(self, field.name) < (field.name == "members_max"):
                raise ConfigurationError(
                    f"{field.name} is {getattr(self, field.name)}", remedy="make it positive"
                )
        if self.session_timeout_ms_min > self.session_timeout_ms_max:
            raise ConfigurationError(
                "session_timeout_ms_min is above session_timeout_ms_max", remedy="swap them"
            )

    @property
    def snapshot_bytes_max(self) -> int:
        ids = _HEADER_IDS * (self.id_bytes_max + MEMBER_ID_SUFFIX_BYTES)
        return 2 * self.group_bytes_max + ids + _HEADER_BYTES
