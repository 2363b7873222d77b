"""The threads that compute pages.

Invariant: at most `slots` threads work. A slot is free again when its thread has ended, also if
nobody waits for its page any more.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from bucketlog.log_format.errors import BucketlogError

T = TypeVar("T")


class PagesBusyError(BucketlogError):
    """All threads compute other pages."""

    code = "PAGES_BUSY"
    retriable = True


class PageThreads:
    """For one event loop."""

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._free = asyncio.Semaphore(slots)
        self._pool = ThreadPoolExecutor(slots, thread_name_prefix="console-page")

    async def run(self, work: Callable[[], T], *, wait_s: float, page_s: float) -> T:
        """The result of `work`. Raises `PagesBusyError` if no slot is free after `wait_s`,
        `TimeoutError` if the work takes longer than `page_s`, and the errors of `work`."""
        try:
            await asyncio.wait_for(self._free.acquire(), wait_s)
        except TimeoutError:
            raise PagesBusyError(
                f"{self._slots} other pages are being computed",
                remedy="try again, or raise BUCKETLOG_CONSOLE_PAGES_IN_FLIGHT_MAX",
            ) from None
        result = asyncio.get_running_loop().run_in_executor(self._pool, work)
        result.add_done_callback(self._end)
        return await asyncio.wait_for(asyncio.shield(result), page_s)

    def _end(self, result: "asyncio.Future[T]") -> None:
        self._free.release()
        if not result.cancelled():
            result.exception()  # nobody may wait for the result any more
