"""One catching up of the view for many who ask at the same time.

Invariant: whoever asks is told of one that began after it asked; at most one is under way.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any


class SharedCatchUp:
    """`catch_up` as `ViewFeed.catch_up`; `spawn` runs a task of the broker."""

    def __init__(
        self,
        catch_up: Callable[[], Awaitable[bool]],
        spawn: Callable[[Coroutine[Any, Any, None], str], object],
    ) -> None:
        self._catch_up = catch_up
        self._spawn = spawn
        self._turn = asyncio.Lock()
        self._next: asyncio.Future[bool] | None = None

    async def __call__(self) -> bool:
        if self._next is None:
            self._next = asyncio.get_running_loop().create_future()
            self._spawn(self._carry_out(self._next), "catching up")
        return await asyncio.shield(self._next)

    async def _carry_out(self, told: asyncio.Future[bool]) -> None:
        shown = False
        try:
            async with self._turn:
                self._next = None
                shown = await self._catch_up()
        finally:
            if not told.done():
                told.set_result(shown)
