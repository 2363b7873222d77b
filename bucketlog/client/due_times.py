"""Partitions of retry topics that wait until their next record is due. Pure.

Invariant: a record waits until it is due, but never longer than the delay of its topic: neither
from its own time, nor from when it was first seen, whatever its header says.
"""

from collections.abc import Callable, Collection
from typing import TypeAlias

from bucketlog.client.sources import Part

Clock: TypeAlias = Callable[[], float]


class DueTimes:
    """`clock_s` is monotonic; `now_s` is the time of day, in seconds since 1970."""

    def __init__(self, clock_s: Clock, now_s: Clock) -> None:
        self._clock_s = clock_s
        self._now_s = now_s
        self._until_s: dict[Part, float] = {}

    def __contains__(self, part: object) -> bool:
        return part in self._until_s

    def __len__(self) -> int:
        return len(self._until_s)

    def waits(self, part: Part, due_ms: int, timestamp_ms: int, delay_s: float) -> bool:
        """Let the partition wait for this record, unless the record is due. Returns whether it
        waits. `timestamp_ms` is the time at which the record was written."""
        due_s = min(due_ms / 1000, timestamp_ms / 1000 + delay_s)
        left_s = min(due_s - self._now_s(), delay_s)
        if left_s <= 0:
            return False
        self._until_s[part] = self._clock_s() + left_s
        return True

    def take_due(self) -> list[Part]:
        """Return the partitions whose wait is over, and end these waits."""
        if not self._until_s:
            return []
        now_s = self._clock_s()
        due = [part for part, until_s in self._until_s.items() if until_s <= now_s]
        for part in due:
            del self._until_s[part]
        return due

    def forget(self, parts: Collection[Part]) -> None:
        """End the waits of partitions that have moved to another member."""
        for part in parts:
            self._until_s.pop(part, None)
