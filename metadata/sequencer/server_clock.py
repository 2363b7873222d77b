"""Redis' time of day, for the ages that its scripts compare.

Scripts are given the time: the same call does the same whenever it is carried out. Brokers' own
clocks will not do, since ages of several brokers' doings are compared, and one clock may be wrong.
"""

import asyncio
from collections.abc import Awaitable, Callable


class ServerClock:
    """What the server said last, and what has passed since by the event loop's time.

    Invariant: it is behind the server by what an answer takes on its way, and by no more than the
    two clocks drift apart until it is asked again; never ahead by more than that drift. Who asks
    whether another one is silent asks the server first, as whoever says that it lives.

    `ask` returns the server's seconds and microseconds (the command TIME).
    """

    def __init__(self, ask: Callable[[], Awaitable[tuple[int, int]]]) -> None:
        self._ask = ask
        self._told: tuple[float, float] | None = None
        """Milliseconds, and the loop's time at which they were known."""

    async def asked_ms(self) -> int:
        """Raises the errors of `ask`."""
        seconds, micros = await self._ask()
        told_ms = seconds * 1000 + micros / 1000
        self._told = told_ms, asyncio.get_running_loop().time()
        return int(told_ms)

    async def now_ms(self) -> int:
        """The server is asked where it never was."""
        if self._told is None:
            return await self.asked_ms()
        told_ms, at = self._told
        return int(told_ms + (asyncio.get_running_loop().time() - at) * 1000)
