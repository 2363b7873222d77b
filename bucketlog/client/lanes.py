"""Which records may be processed now, if those of one lane must be processed in order. Pure.

A lane is a key, a partition, or one record. Invariant: at most one item of a lane is running, and
items of a lane run in the order in which they were put.
"""

from collections import deque
from collections.abc import Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class Lanes(Generic[T]):
    """Items that wait for earlier items of their lane."""

    def __init__(self) -> None:
        self._waiting: dict[Hashable, deque[T]] = {}

    def put(self, lane: Hashable, item: T) -> bool:
        """Returns whether the item may run at once; else it waits."""
        waiting = self._waiting.get(lane)
        if waiting is None:
            self._waiting[lane] = deque()
            return True
        waiting.append(item)
        return False

    def next_of(self, lane: Hashable) -> T | None:
        """The running item of this lane has ended. Returns the next one, which may run now."""
        waiting = self._waiting[lane]
        if waiting:
            return waiting.popleft()
        del self._waiting[lane]
        return None

    def clear(self) -> None:
        """Forget all items that wait."""
        for waiting in self._waiting.values():
            waiting.clear()

    def __len__(self) -> int:
        """The number of lanes with a running item."""
        return len(self._waiting)
