"""The asynchronous face of a synchronous bucket: each call runs in a thread of a bounded pool.

Invariant: `create` returns or raises only when its thread is done with the borrowed parts, also
when the caller is cancelled: a buffer that is used again must not change under a running write.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from typing import TypeVar

from bucketlog.log_format.model import Buffer
from bucketlog.tiered_storage.bucket import Body, ObjectInfo, Span, Suffix, SyncBucket

DEFAULT_THREADS = 8
_LIST_CHUNK = 1000

Result = TypeVar("Result")


class ThreadedBucket:
    """`Bucket` over `inner`, which it owns. At most `threads` calls run at once, others wait."""

    def __init__(self, inner: SyncBucket, *, threads: int = DEFAULT_THREADS) -> None:
        self._inner = inner
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="bucket")

    async def create(self, key: str, parts: Sequence[Buffer], *, crc32c: int | None = None) -> bool:
        future = self._run(partial(self._inner.create, key, parts, crc32c=crc32c))
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            await _finish(future)
            raise

    async def get(self, key: str, span: Span | Suffix | None = None) -> Body:
        return await self._run(partial(self._inner.get, key, span))

    async def list(self, prefix: str, *, start_after: str = "") -> AsyncIterator[ObjectInfo]:
        objects = self._inner.list(prefix, start_after=start_after)
        while chunk := await self._run(lambda: tuple(islice(objects, _LIST_CHUNK))):
            for info in chunk:
                yield info

    async def delete(self, keys: Sequence[str]) -> None:
        await self._run(partial(self._inner.delete, keys))

    async def head(self, key: str) -> ObjectInfo | None:
        return await self._run(partial(self._inner.head, key))

    async def close(self) -> None:
        await asyncio.to_thread(self._pool.shutdown)
        self._inner.close()

    def _run(self, call: Callable[[], Result]) -> asyncio.Future[Result]:
        return asyncio.get_running_loop().run_in_executor(self._pool, call)


async def _finish(future: asyncio.Future[bool]) -> None:
    """Wait for a thread, however often the waiting task is cancelled again."""
    while not future.done():
        try:
            await asyncio.wait([future])
        except asyncio.CancelledError:
            continue
    if not future.cancelled():
        future.exception()
