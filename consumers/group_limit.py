"""How many groups a cluster may have.

Every group costs memory in Redis and in its coordinator. Any client may name a new group, by a join
or by a commit of offsets.
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
        """The most groups that the sequencer may have for this group to be taken.

        None: any number, for a group that has offsets. 0 where the groups with offsets alone
        reach the limit: then a group is taken only if the sequencer has it."""
        if self._has_offsets(group_id):
            return None
        return self._groups_max if self._groups_with_offsets() < self._groups_max else 0

    def log_refusal(self, error: TooManyGroupsError) -> None:
        """At most once in `LOG_INTERVAL_MS`, because a client may name many groups."""
        now_ms = self._now_ms()
        if self._logged_ms is None or now_ms - self._logged_ms >= LOG_INTERVAL_MS:
            self._logged_ms = now_ms
            logger.warning("%s", error)
