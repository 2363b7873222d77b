"""Bounds the number of consumer groups in a cluster.

Each group costs memory in Redis and in its coordinator, and any client can create a group with a
JoinGroup or an OffsetCommit.
"""

import logging
from collections.abc import Callable

from bucketlog.log_format.errors import TooManyGroupsError

logger = logging.getLogger(__name__)
LOG_INTERVAL_MS = 60_000


class GroupLimit:
    """`groups_max` bounds the groups of the epoch, and the groups with committed offsets."""

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
        self._now_ms = now_ms
        self._logged_ms: int | None = None

    def groups_max(self, group_id: str) -> int | None:
        """The limit of groups in the sequencer when this broker takes over `group_id`.

        None: no limit, because the group has offsets. 0: the groups with offsets alone reach the
        limit, so only a group that the sequencer already has can be taken over."""
        if self._has_offsets(group_id):
            return None
        return self._groups_max if self._groups_with_offsets() < self._groups_max else 0

    def log_refusal(self, error: TooManyGroupsError) -> None:
        """Log at most once per `LOG_INTERVAL_MS`, because a client can name many groups."""
        now_ms = self._now_ms()
        if self._logged_ms is None or now_ms - self._logged_ms >= LOG_INTERVAL_MS:
            self._logged_ms = now_ms
            logger.warning("%s", error)
