"""Bounds the number of consumer groups in a cluster.

Each group costs memory in Redis and in its coordinator, and any client can create a group with a
JoinGroup or an OffsetCommit.
"""

import logging
from collections.abc import Callable

from bucketlog.consumers.refusal_log import RefusalLog
from bucketlog.log_format.errors import TooManyGroupsError

logger = logging.getLogger(__name__)


class GroupLimit:
    """A limit of groups. `groups_max` bounds the groups of the epoch, and the groups with committed
    offsets."""

    def __init__(
        self,
        groups_max: int,
        *,
        has_offsets: Callable[[str], bool],
        groups_with_offsets: Callable[[], int],
        now_ms: Callable[[], int],
    ) -> None:
        self._groups_max = groups_max
        self._has_offsets = has_offsets
        self._groups_with_offsets = groups_with_offsets
        self._refusals = RefusalLog(now_ms)

    def groups_max(self, group_id: str) -> int | None:
        """The limit of groups in the sequencer when this broker takes over `group_id`.

        None: no limit, because the group has offsets. 0: the groups with offsets alone reach the
        limit, so only a group that the sequencer already has can be taken over."""
        if self._has_offsets(group_id):
            return None
        return self._groups_max if self._groups_with_offsets() < self._groups_max else 0

    def log_refusal(self, error: TooManyGroupsError) -> None:
        """Log at most once in a while, because a client can name many groups."""
        if self._refusals.is_due():
            logger.warning("%s", error)
