"""Pauses of the event loop: after a pause, a request may have waited for longer than its client."""

import asyncio
from collections.abc import Callable

PARTS = 4
"""Looks in the shortest pause that counts."""


class LoopPauses:
    """`run` must be running. `since(then)`: whether the loop stood still for longer than `pause_ms`
    since `then`. `now_s` is the event loop's time."""

    def __init__(self, pause_ms: int, now_s: Callable[[], float]) -> None:
        self._pause_s = pause_ms / 1000
        self._now_s = now_s
        self._looked_at: float | None = None
        self._last_pause_ended = float("-inf")

    async def run(self) -> None:
        """Look at the time, for ever."""
        while True:
            self.look()
            await asyncio.sleep(self._pause_s / PARTS)

    def look(self) -> None:
        now = self._now_s()
        if self._looked_at is not None and now - self._looked_at > self._pause_s:
            self._last_pause_ended = now
        self._looked_at = now

    def since(self, then: float) -> bool:
        self.look()
        return self._last_pause_ended >= then
