"""Reading ranges of batches from the bucket for fetches.

Invariant: what is being read already is not asked for again: fetches that want the same range at
the same time share one request.
"""

import asyncio
from collections.abc import Sequence

from bucketlog.errors import CorruptObjectError
from bucketlog.model import Buffer
from metadata.view import StoredRange
from tiered_storage import keys
from tiered_storage.bucket import Bucket, Span


class RangeReader:
    def __init__(self, bucket: Bucket, *, ranges_in_flight: int) -> None:
        self._bucket = bucket
        self._running: dict[StoredRange, asyncio.Task[Buffer]] = {}
        self._slots = asyncio.Semaphore(ranges_in_flight)

    async def read(self, ranges: Sequence[StoredRange]) -> list[Buffer]:
        """The bytes of each range. Raises `BucketError`, `CorruptObjectError`."""
        return list(await asyncio.gather(*(asyncio.shield(self._task(part)) for part in ranges)))

    def _task(self, wanted: StoredRange) -> asyncio.Task[Buffer]:
        task = self._running.get(wanted)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._get(wanted))
            self._running[wanted] = task
            task.add_done_callback(lambda _: self._running.pop(wanted, None))
        return task

    async def _get(self, wanted: StoredRange) -> Buffer:
        key = keys.segment(wanted.segment)
        async with self._slots:
            body = await self._bucket.get(key, Span(wanted.position, wanted.length))
        if len(body.data) != wanted.length:
            raise CorruptObjectError(
                key,
                body.object_size_bytes,
                f"it ends before byte {wanted.position + wanted.length}",
            )
        return body.data
