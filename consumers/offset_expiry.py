"""Expiry of a group's committed offsets. Pure.

Source: Kafka's OffsetMetadataManager.cleanupExpiredOffsets and ClassicGroup's expiration condition,
with one difference: an offset that is committed to an empty group is kept for its full time.
"""

from collections.abc import Callable, Mapping

from bucketlog.consumers.group import Group
from bucketlog.consumers.group_forms import AnyGroup
from bucketlog.consumers.group_messages import CONSUMER_PROTOCOL_TYPE, GroupState
from bucketlog.log_format.model import TopicId, TopicIdPartition
from bucketlog.metadata.committed_offset import CommittedOffset

Offsets = Mapping[TopicIdPartition, CommittedOffset]


def may_expire(offsets: Offsets, now_ms: int, retention_ms: int) -> bool:
    """Return whether the group has to be looked at: no offset expires before its commit is that
    old."""
    return any(_is_over(row, row.committed_ms, now_ms, retention_ms) for row in offsets.values())


def expired_offsets(
    group: AnyGroup,
    offsets: Offsets,
    topic_name: Callable[[TopicId], str | None],
    now_ms: int,
    retention_ms: int,
    *,
    known_since_ms: int,
) -> list[TopicIdPartition]:
    """Return the partitions whose offsets have expired. `now_ms` is the time of day. No offset
    expires in a topic that a member subscribes to, and none at all while a group rebalances or is
    not a consumer group. Members before `known_since_ms` are unknown, so offsets are kept for at
    least their full time from then on."""
    since_ms = known_since_ms
    if group.protocol_type is not None:
        if group.is_empty:
            since_ms = group.empty_since_ms or known_since_ms
        elif isinstance(group, Group) and (
            group.state is not GroupState.STABLE
            or group.protocol_type != CONSUMER_PROTOCOL_TYPE
            or group.machine.topics is None
        ):
            return []
    return [
        partition
        for partition, row in offsets.items()
        if _is_over(row, max(row.committed_ms, since_ms), now_ms, retention_ms)
        and not group.is_subscribed(topic_name(partition.topic_id) or "")
    ]


def _is_over(row: CommittedOffset, since_ms: int, now_ms: int, retention_ms: int) -> bool:
    if row.expires_ms is not None:
        return row.expires_ms <= now_ms
    return since_ms + retention_ms <= now_ms
