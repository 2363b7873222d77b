"""A bucket that tries again what may pass, and settles what a lost answer left open.

Invariant: `create` answers True if and only if the object stored under the key is, byte for byte,
the caller's. A create that failed may have happened: the retry then meets its own object and is
refused. Only such a refusal, one after a failure, is held against what is stored; a refusal at the
first try costs nothing more.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import TypeVar

from bucketlog.errors import BucketUnavailableError
from bucketlog.model import Buffer
from tiered_storage.bucket import Body, Bucket, ObjectInfo, Span, Suffix

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Delays double from the first to the longest, each shortened by up to a half at random.
    No try begins later than `give_up_after_ms` after the first one began."""

    first_delay_ms: int = 25
    longest_delay_ms: int = 1_000
    give_up_after_ms: int = 15_000


class Patience:
    """The delays of one call, until it ends."""

    def __init__(self, policy: RetryPolicy, random: Random, monotonic: Callable[[], float]) -> None:
        self._policy = policy
        self._random = random
        self._monotonic = monotonic
        self._began = monotonic()
        self._delay_ms = float(policy.first_delay_ms)

    def delay_s(self, error: BucketUnavailableError) -> float:
        """How long to wait now; raises `error` if there is no time for another try."""
        delay = self._delay_ms * (1 - self._random.random() / 2) / 1_000
        if self._monotonic() + delay > self._began + self._policy.give_up_after_ms / 1_000:
            raise error
        self._delay_ms = min(self._delay_ms * 2, self._policy.longest_delay_ms)
        return delay


class RetryBucket:
    """`Bucket` around `inner`, which it owns. Raises `BucketUnavailableError` when it gives up:
    a create may then have happened, or may yet."""

    def __init__(
        self,
        inner: Bucket,
        policy: RetryPolicy,
        *,
        random: Random,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._inner = inner
        self._policy = policy
        self._random = random
        self._monotonic = monotonic
        self._sleep = sleep

    def _patience(self) -> Patience:
        return Patience(self._policy, self._random, self._monotonic)

    async def create(self, key: str, parts: Sequence[Buffer], *, crc32c: int | None = None) -> bool:
        patience = self._patience()
        ambiguous = False
        while True:
            try:
                created = await self._inner.create(key, parts, crc32c=crc32c)
            except BucketUnavailableError as error:
                ambiguous = True
                await self._sleep(patience.delay_s(error))
                continue
            if created or not ambiguous:
                return created
            return await self._holds(key, parts)

    async def get(self, key: str, span: Span | Suffix | None = None) -> Body:
        return await self._again(partial(self._inner.get, key, span))

    async def list(self, prefix: str, *, start_after: str = "") -> AsyncIterator[ObjectInfo]:
        """Begins again after a failure, since a listing has no order to go on from; what was
        given out is not given out again."""
        patience = self._patience()
        given: set[str] = set()
        while True:
            try:
                async for info in self._inner.list(prefix, start_after=start_after):
                    if info.key not in given:
                        given.add(info.key)
                        yield info
                return
            except BucketUnavailableError as error:
                await self._sleep(patience.delay_s(error))

    async def delete(self, keys: Sequence[str]) -> None:
        await self._again(partial(self._inner.delete, keys))

    async def head(self, key: str) -> ObjectInfo | None:
        return await self._again(partial(self._inner.head, key))

    async def close(self) -> None:
        await self._inner.close()

    async def _again(self, call: Callable[[], Awaitable[Result]]) -> Result:
        patience = self._patience()
        while True:
            try:
                return await call()
            except BucketUnavailableError as error:
                await self._sleep(patience.delay_s(error))

    async def _holds(self, key: str, parts: Sequence[Buffer]) -> bool:
        """Whether the object that refused a create is the one that was to be created."""
        info = await self.head(key)
        if info is None:
            raise gone(key)
        if info.size_bytes != sum(map(len, parts)):
            return False
        return is_made_of((await self.get(key)).data, parts)


def gone(key: str) -> BucketUnavailableError:
    return BucketUnavailableError(
        f"the object that refused the create of {key!r} is gone",
        remedy="find out who deletes objects of a live log",
    )


def is_made_of(stored: Buffer, parts: Sequence[Buffer]) -> bool:
    """Whether `stored` is the concatenation of `parts`, which have as many bytes."""
    view = memoryview(stored)
    at = 0
    for part in parts:
        if view[at : at + len(part)] != part:
            return False
        at += len(part)
    return True
