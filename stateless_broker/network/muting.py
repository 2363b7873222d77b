"""A connection whose client is over a quota: the broker takes no request from it for a while.

Source: KIP-219. The response that names the throttle time is sent at once.
"""

import asyncio
import math
from collections.abc import Callable


class Mute:
    """`ended` is called when requests may be taken again. `now_s` is the event loop's clock."""

    __slots__ = ("_ended", "_now_s", "_timer", "_until_s", "is_on")

    def __init__(self, now_s: Callable[[], float], ended: Callable[[], None]) -> None:
        self.is_on = False
        self._now_s = now_s
        self._ended = ended
        self._until_s = -math.inf
        self._timer: asyncio.TimerHandle | None = None

    def lengthen(self, ms: int) -> None:
        """Mute the connection until `ms` from now, unless it is muted for longer already."""
        until_s = self._now_s() + ms / 1000
        if until_s <= self._until_s:
            return
        self._until_s = until_s
        self.is_on = True
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(ms / 1000, self._look)

    @property
    def left_ms(self) -> int:
        return max(0, math.ceil((self._until_s - self._now_s()) * 1000)) if self.is_on else 0

    def _look(self) -> None:
        self._timer = None
        left_ms = self.left_ms
        if left_ms > 0:  # lengthened meanwhile
            self._timer = asyncio.get_running_loop().call_later(left_ms / 1000, self._look)
            return
        self.is_on = False
        self._ended()

    def drop(self) -> None:
        """The connection is closed: forget it."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._ended = _nothing


def _nothing() -> None:
    """Wakes nobody."""
