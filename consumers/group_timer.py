"""A timer that says when a coordinator looks at each of its groups next.

If a heartbeat postpones a deadline, the timer finds the new deadline when it looks at the group.
"""

import asyncio
import heapq
from collections.abc import Callable, Iterator

from bucketlog.consumers.coordinated_group import CoordinatedGroup

_STALE_MIN = 64


class GroupTimer:
    """`now_ms` is a monotonic clock. At most half of the entries are stale, except for the first
    `_STALE_MIN`: clients can plan and forget groups faster than their deadlines pass."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._planned_ms: dict[str, int] = {}
        """The next look at each group, by its id."""
        self._entries: list[tuple[int, str]] = []
        """A heap of looks. An entry is stale unless it is in `_planned_ms`."""
        self._woken = asyncio.Event()

    @property
    def size(self) -> int:
        """Number of entries, also of stale ones."""
        return len(self._entries)

    def plan(self, held: CoordinatedGroup) -> None:
        """Look at the group at its next deadline."""
        deadline_ms = held.group.next_deadline_ms
        if deadline_ms is None or held.lost:
            return
        planned_ms = self._planned_ms.get(held.group_id)
        if planned_ms is None or deadline_ms < planned_ms:
            self._planned_ms[held.group_id] = deadline_ms
            heapq.heappush(self._entries, (deadline_ms, held.group_id))
            self._drop_stale()
            self._woken.set()

    def forget(self, group_id: str) -> None:
        """Do not look at the group any more."""
        self._planned_ms.pop(group_id, None)

    def due(self, now_ms: int) -> Iterator[str]:
        """The groups whose deadline is not after `now_ms`. They have to be planned again."""
        while self._entries and self._entries[0][0] <= now_ms:
            deadline_ms, group_id = heapq.heappop(self._entries)
            if self._planned_ms.get(group_id) == deadline_ms:
                del self._planned_ms[group_id]
                yield group_id

    async def wait(self) -> None:
        """Return at the next deadline, or when a group is planned."""
        wait_s = None
        if self._entries:
            wait_s = max(self._entries[0][0] - self._now_ms(), 0) / 1000
        try:
            async with asyncio.timeout(wait_s):
                await self._woken.wait()
        except TimeoutError:
            pass
        self._woken.clear()

    def _drop_stale(self) -> None:
        if len(self._entries) > 2 * len(self._planned_ms) + _STALE_MIN:
            self._entries = [(at_ms, group_id) for group_id, at_ms in self._planned_ms.items()]
            heapq.heapify(self._entries)
