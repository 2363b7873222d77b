"""Watches of partitions: requests that wait are woken when a partition changes, or at their
deadline.

Invariants: a watch is woken after each change of its partitions, and at its deadline. Waking costs
one step for each watch of a changed partition, and nothing for other partitions. Waiting requests
have no own timers: all deadlines of one tick share a timer of the event loop.
"""

import asyncio
import math
from collections.abc import Iterable
from typing import Protocol

from bucketlog.log_format.model import TopicIdPartition

TICK_S = 0.005


class RowWatch(Protocol):
    """Watches partitions by rows: the positions of the partitions in a request or session."""

    def wake(self, row: int) -> None: ...


class TimerWheel:
    """Ends waits, at most `TICK_S` after their deadlines."""

    def __init__(self) -> None:
        self._by_tick: dict[int, set[asyncio.Future[None]]] = {}

    def add(self, deadline_s: float, waiter: asyncio.Future[None]) -> int:
        """Have the result of `waiter` set at `deadline_s` of the event loop's clock. Returns the
        tick."""
        tick = math.ceil(deadline_s / TICK_S)
        due = self._by_tick.get(tick)
        if due is None:
            due = self._by_tick[tick] = set()
            asyncio.get_running_loop().call_at(tick * TICK_S, self._end, tick)
        due.add(waiter)
        return tick

    def remove(self, tick: int, waiter: asyncio.Future[None]) -> None:
        due = self._by_tick.get(tick)
        if due is not None:
            due.discard(waiter)

    def _end(self, tick: int) -> None:
        for waiter in self._by_tick.pop(tick):
            if not waiter.done():
                waiter.set_result(None)


class ChangedRows:
    """The rows that have changed, and at most one task that waits for them."""

    __slots__ = ("_rows", "_waiter", "_wheel")

    def __init__(self, wheel: TimerWheel) -> None:
        self._wheel = wheel
        self._rows: set[int] = set()
        self._waiter: asyncio.Future[None] | None = None

    def wake(self, row: int) -> None:
        self._rows.add(row)
        self.end_wait()

    def end_wait(self) -> None:
        """Let the waiting task continue, though no row may have changed."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def take(self) -> set[int]:
        """The rows that have changed since the last call."""
        rows, self._rows = self._rows, set()
        return rows

    async def wait(self, wait_s: float) -> bool:
        """Wait until a row has changed. Returns False after `wait_s` seconds."""
        if self._rows:
            return True
        loop = asyncio.get_running_loop()
        waiter = self._waiter = loop.create_future()
        tick = self._wheel.add(loop.time() + wait_s, waiter)
        try:
            await waiter
        finally:
            self._wheel.remove(tick, waiter)
            if self._waiter is waiter:
                self._waiter = None
        return bool(self._rows)


class Watchers:
    """The watches of partitions. One watch may serve many partitions."""

    def __init__(self) -> None:
        self._wheel = TimerWheel()
        self._by_partition: dict[TopicIdPartition, dict[RowWatch, int]] = {}
        """For each partition and watch, the row of the partition in the waiting request."""
        self._numbers: list[int] = []
        """Integer objects that all watches share as rows: separate objects would double the memory
        of waiting requests."""

    def new_rows(self) -> ChangedRows:
        """A watch that no partition has yet."""
        return ChangedRows(self._wheel)

    def add(self, partitions: Iterable[tuple[int, TopicIdPartition]], watch: RowWatch) -> None:
        """Call `watch.wake` when one of `partitions` changes. Each partition comes with its row."""
        numbers = self._numbers
        for row, partition in partitions:
            if row >= len(numbers):
                numbers.extend(range(len(numbers), row + 1))
            self._by_partition.setdefault(partition, {})[watch] = numbers[row]

    def remove(self, partitions: Iterable[tuple[int, TopicIdPartition]], watch: RowWatch) -> None:
        for _, partition in partitions:
            watches = self._by_partition.get(partition)
            if watches is not None:
                watches.pop(watch, None)
                if not watches:
                    del self._by_partition[partition]

    def notify(self, partitions: Iterable[TopicIdPartition]) -> None:
        for partition in partitions:
            for watch, row in self._by_partition.get(partition, {}).items():
                watch.wake(row)

    @property
    def watched(self) -> int:
        """The number of partitions that requests and sessions watch."""
        return len(self._by_partition)

    def notify_all(self) -> None:
        self.notify(list(self._by_partition))
