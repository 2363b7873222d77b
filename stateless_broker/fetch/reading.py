"""Reading ranges of batches from the bucket for fetches.

Invariants: what is being read already is not asked for again: fetches that want the same range at
the same time share one request; nobody waits for longer than `read_ms_max`, whatever the bucket
does.
"""

import asyncio
from collections.abc import Callable, Sequence

from bucketlog.errors import BucketError, BucketUnavailableError, CorruptObjectError
from bucketlog.model import Buffer
from metadata.view import StoredRange
from stateless_broker.health import Health
from tiered_storage import keys
from tiered_storage.bucket import Bucket, Span

PART = "reading"


class RangeReader:
    def __init__(
        self, bucket: Bucket, health: Health, *, ranges_in_flight: int, read_ms_max: int
    ) -> None:
        self._bucket = bucket
        self._health = health
        self._read_ms_max = read_ms_max
        self._running: dict[StoredRange, asyncio.Task[Buffer]] = {}
        self._slots = asyncio.Semaphore(ranges_in_flight)

    async def read(self, ranges: Sequence[StoredRange]) -> list[Buffer]:
        """The bytes of each range. Raises `BucketError`, `CorruptObjectError`."""
        try:
            async with asyncio.timeout(self._read_ms_max / 1000):
                return list(
                    await asyncio.gather(*(asyncio.shield(self._task(part)) for part in ranges))
                )
        except TimeoutError:
            reason = f"the bucket did not answer in {self._read_ms_max} ms"
            self._health.degrade(PART, reason)
            raise BucketUnavailableError(reason) from None

    def _task(self, wanted: StoredRange) -> asyncio.Task[Buffer]:
        task = self._running.get(wanted)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._get(wanted))
            self._running[wanted] = task
            task.add_done_callback(self._forget(wanted))
        return task

    def _forget(self, wanted: StoredRange) -> Callable[["asyncio.Task[Buffer]"], None]:
        def forget(task: "asyncio.Task[Buffer]") -> None:
            self._running.pop(wanted, None)
            if not task.cancelled():
                task.exception()  # whoever wanted it may have gone before it failed

        return forget

    async def _get(self, wanted: StoredRange) -> Buffer:
        key = keys.segment(wanted.segment)
        async with self._slots:
            try:
                body = await self._bucket.get(key, Span(wanted.position, wanted.length))
            except BucketError as error:
                self._health.degrade(PART, str(error))
                raise
        self._health.recover(PART)
        if len(body.data) != wanted.length:
            raise CorruptObjectError(
                key,
                body.object_size_bytes,
                f"it ends before byte {wanted.position + wanted.length}",
            )
        return body.data
