"""Bounds the memory of all groups that a broker coordinates.

The coordinator of a group has the group's members and assignments in memory. Redis has a snapshot
of them. `group_bytes_max` bounds a single group, and `GroupMemory` bounds all groups together.
"""

import logging
from collections.abc import Callable

from kio.schema.errors import ErrorCode

from bucketlog.consumers.group_forms import AnyGroup
from bucketlog.consumers.group_messages import (
    GroupResponse,
    JoinRequest,
    JoinResponse,
    SyncRequest,
    SyncResponse,
    Token,
)
from bucketlog.consumers.refusal_log import RefusalLog

logger = logging.getLogger(__name__)


class GroupMemory:
    """Refuses requests that would need more than `bytes_max`, with COORDINATOR_NOT_AVAILABLE, which
    clients retry. Existing members stay. A request that the group itself refuses gets the group's
    own error. Groups that come from another broker may exceed the limit: they are never refused.

    `now_ms` is a monotonic clock."""

    def __init__(self, bytes_max: int, now_ms: Callable[[], int]) -> None:
        self._bytes_max = bytes_max
        self._sizes: dict[str, int] = {}
        self._refusals = RefusalLog(now_ms)
        self.used_bytes = 0
        """The memory of all groups that were noted and not forgotten."""

    def note(self, group: AnyGroup) -> None:
        """Count the group's current size. Call this after each change of the group."""
        size = group.memory_bytes
        self.used_bytes += size - self._sizes.get(group.group_id, 0)
        self._sizes[group.group_id] = size

    def forget(self, group_id: str) -> None:
        """Stop counting a group that this broker no longer coordinates."""
        self.used_bytes -= self._sizes.pop(group_id, 0)

    def join(
        self, group: AnyGroup, request: JoinRequest, token: Token, now_ms: int
    ) -> list[GroupResponse]:
        """Call `group.join`, unless the request needs more memory than is left."""
        if self.has_room(group.join_growth_bytes(request)):
            return group.join(request, token, now_ms)
        refusal = JoinResponse(ErrorCode.coordinator_not_available, request.member_id)
        return [GroupResponse(token, refusal)]

    def sync(
        self, group: AnyGroup, request: SyncRequest, token: Token, now_ms: int
    ) -> list[GroupResponse]:
        """Call `group.sync`, unless the request needs more memory than is left."""
        if self.has_room(group.sync_growth_bytes(request)):
            return group.sync(request, token, now_ms)
        return [GroupResponse(token, SyncResponse(ErrorCode.coordinator_not_available))]

    def has_room(self, growth_bytes: int) -> bool:
        """Return whether this much more memory may be used."""
        if growth_bytes <= 0 or self.used_bytes + growth_bytes <= self._bytes_max:
            return True
        if self._refusals.is_due():
            logger.warning(
                "the consumer groups of this broker use %d of %d bytes: requests that need more "
                "memory are refused; raise BUCKETLOG_COORDINATED_GROUPS_BYTES_MAX, or add brokers",
                self.used_bytes,
                self._bytes_max,
            )
        return False
