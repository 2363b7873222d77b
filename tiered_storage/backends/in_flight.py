"""A bound on the bytes that are in flight at the same time.

Invariant: the bytes taken never exceed the bound, except for one body that is larger, which goes
alone. First come, first served: small bodies do not overtake a large one for ever.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class InFlightBytes:
    """A bound of bytes in flight, for the tasks of one event loop."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._taken = 0
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    @property
    def taken_bytes(self) -> int:
        return self._taken

    @asynccontextmanager
    async def taken(self, size_bytes: int) -> AsyncIterator[None]:
        """Hold `size_bytes` of the bound, waiting for them first."""
        size_bytes = min(size_bytes, self._bytes_max)
        await self._take(size_bytes)
        try:
            yield
        finally:
            self._taken -= size_bytes
            self._serve()

    async def _take(self, size_bytes: int) -> None:
        if not self._waiting and self._taken + size_bytes <= self._bytes_max:
            self._taken += size_bytes
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        entry = (size_bytes, turn)
        self._waiting.append(entry)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # it came, and is not wanted any more
                self._taken -= size_bytes
            else:
                self._waiting.remove(entry)
            self._serve()
            raise

    def _serve(self) -> None:
        while self._waiting and self._taken + self._waiting[0][0] <= self._bytes_max:
            size_bytes, turn = self._waiting.popleft()
            self._taken += size_bytes
            turn.set_result(None)
