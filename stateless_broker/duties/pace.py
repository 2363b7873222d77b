"""The pace at which background work may read."""

import asyncio


class Pace:
    """A rate in bytes per second, for all who share it. Unused bytes are not saved up."""

    def __init__(self, *, bytes_per_s: int) -> None:
        self._bytes_per_s = bytes_per_s
        self._free_at_s = 0.0

    async def spend(self, size_bytes: int) -> None:
        """Wait for the turn to read this number of bytes."""
        now_s = asyncio.get_running_loop().time()
        begin_s = max(now_s, self._free_at_s)
        self._free_at_s = begin_s + size_bytes / self._bytes_per_s
        if begin_s > now_s:
            await asyncio.sleep(begin_s - now_s)
