"""The turns of one tenant on the event loop. Pure: clock and loop are passed in.

Invariants: between two rounds of events, the requests of one tenant keep the loop busy for about
`turn_ms`, and for one request more at most. Connections whose requests wait get their turn in the
order in which they came. A tenant alone loses nothing: its next turn follows at once.
"""

from collections.abc import Callable, Coroutine
from typing import Any

from bucketlog.stateless_broker.network.work_time import timed


class LoopShare:
    """`call_soon` runs a callback in the next round of events, `now_ns` is a monotonic clock."""

    def __init__(
        self,
        turn_ms: int,
        *,
        now_ns: Callable[[], int],
        call_soon: Callable[[Callable[[], None]], object],
    ) -> None:
        self._turn_ns = turn_ms * 1_000_000
        self._now_ns = now_ns
        self._call_soon = call_soon
        self._spent_ns = 0
        self._is_due = False
        self._waiting: dict[Callable[[], None], None] = {}
        self.used_ns = 0
        """Total time that the tenant's requests have kept the loop busy."""

    def has_turn(self, wake: Callable[[], None]) -> bool:
        """Return whether a request may begin now. If not, `wake` is called later."""
        if self._spent_ns < self._turn_ns:
            self._waiting.pop(wake, None)
            return True
        self._waiting.setdefault(wake)
        return False

    def forget(self, wake: Callable[[], None]) -> None:
        self._waiting.pop(wake, None)

    def spend(self, ns: int) -> None:
        """Count time in this round of events."""
        self._spent_ns += ns
        self.used_ns += ns
        if not self._is_due:
            self._is_due = True
            self._call_soon(self._next_turn)

    def _next_turn(self) -> None:
        self._is_due = False
        self._spent_ns = 0
        while self._waiting and self._spent_ns < self._turn_ns:
            wake = next(iter(self._waiting))
            del self._waiting[wake]
            wake()

    def run(self, work: Callable[[], None]) -> None:
        """Do the work, and count its time."""
        began_ns = self._now_ns()
        try:
            work()
        finally:
            self.spend(self._now_ns() - began_ns)

    async def counted(self, work: Coroutine[Any, Any, None]) -> None:
        """Do the work, and count the time of each of its steps."""
        await timed(work, _Stopwatch(self.spend, self._now_ns))


class _Stopwatch:
    __slots__ = ("_now_ns", "_since_ns", "_spend")

    def __init__(self, spend: Callable[[int], None], now_ns: Callable[[], int]) -> None:
        self._spend = spend
        self._now_ns = now_ns
        self._since_ns = 0

    def begin(self) -> None:
        self._since_ns = self._now_ns()

    def pause(self) -> None:
        self._spend(self._now_ns() - self._since_ns)
