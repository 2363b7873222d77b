"""A bucket that retries temporary errors, and settles what a lost answer left open: see
`tiered_storage.retry_steps`."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from random import Random
from typing import TypeVar, cast

from bucketlog.log_format.backoff import Backoff, Retries
from bucketlog.log_format.errors import BucketUnavailableError
from bucketlog.log_format.model import Buffer
from bucketlog.tiered_storage import retry_steps
from bucketlog.tiered_storage.bucket import Body, Bucket, ObjectInfo, Span, Suffix

Result = TypeVar("Result")


class RetryBucket:
    """`Bucket` around `inner`, which it owns. Raises `BucketUnavailableError` when it gives up:
    a create may then have happened, or may yet."""

    def __init__(
        self,
        inner: Bucket,
        backoff: Backoff,
        *,
        random: Random,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._inner = inner
        self._backoff = backoff
        self._random = random
        self._monotonic = monotonic
        self._sleep = sleep

    def _retries(self) -> Retries:
        return Retries(self._backoff, random=self._random, monotonic=self._monotonic)

    async def create(self, key: str, parts: Sequence[Buffer], *, crc32c: int | None = None) -> bool:
        return await self._run(retry_steps.create(self._retries, key, parts, crc32c))

    async def get(self, key: str, span: Span | Suffix | None = None) -> Body:
        return await self._request(lambda bucket: bucket.get(key, span))

    async def list(self, prefix: str, *, start_after: str = "") -> AsyncIterator[ObjectInfo]:
        listing = retry_steps.Listing(self._retries)
        while True:
            try:
                async for info in self._inner.list(prefix, start_after=start_after):
                    if listing.is_new(info):
                        yield info
                return
            except BucketUnavailableError as error:
                pause_s = listing.pause_s(error)
            await self._sleep(pause_s)

    async def delete(self, keys: Sequence[str]) -> None:
        await self._request(lambda bucket: bucket.delete(keys))

    async def head(self, key: str) -> ObjectInfo | None:
        return await self._request(lambda bucket: bucket.head(key))

    async def close(self) -> None:
        await self._inner.close()

    async def _request(self, call: Callable[[Bucket], Awaitable[Result]]) -> Result:
        return await self._run(retry_steps.request(self._retries(), call))

    async def _run(self, steps: retry_steps.Steps[Result]) -> Result:
        try:
            step = next(steps)
            while True:
                if isinstance(step, float):
                    await self._sleep(step)
                    step = next(steps)
                    continue
                try:
                    answer = await step(self._inner)
                except BucketUnavailableError as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(answer)
        except StopIteration as end:
            return cast(Result, end.value)
