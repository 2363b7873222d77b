"""Catch up with the view once for many callers that ask at about the same time.

Invariants: each caller gets the result of a catch-up that began after the caller asked. At most one
is in progress. Two begin at least `INTERVAL_S` apart. So a broker under load asks Redis at most
that often, and an idle broker asks at once. A caller must not get an answer of Redis from before it
asked: the answer may lack a record that another broker has acknowledged meanwhile.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

INTERVAL_S = 0.001


class SharedCatchUp:
    """`catch_up` as `ViewFeed.catch_up`; `spawn` runs a task of the broker."""

    def __init__(
        self,
        catch_up: Callable[[], Awaitable[bool]],
        spawn: Callable[[Coroutine[Any, Any, None], str], asyncio.Task[None]],
    ) -> None:
        self._catch_up = catch_up
        self._spawn = spawn
        self._turn = asyncio.Lock()
        self._next: asyncio.Future[bool] | None = None
        self._not_before_s = 0.0

    async def __call__(self) -> bool:
        if self._next is None:
            asked = self._next = asyncio.get_running_loop().create_future()
            task = self._spawn(self._carry_out(asked), "catching up")
            task.add_done_callback(lambda _: self._end(asked))
        return await asyncio.shield(self._next)

    async def _carry_out(self, asked: asyncio.Future[bool]) -> None:
        async with self._turn:
            loop = asyncio.get_running_loop()
            wait_s = self._not_before_s - loop.time()
            if wait_s > 0:
                await asyncio.sleep(wait_s)
            self._not_before_s = loop.time() + INTERVAL_S
            self._next = None
            asked.set_result(await self._catch_up())

    def _end(self, asked: asyncio.Future[bool]) -> None:
        """The task has ended, perhaps before its first step."""
        if self._next is asked:
            self._next = None
        if not asked.done():
            asked.set_result(False)
