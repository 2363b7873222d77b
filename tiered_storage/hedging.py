"""A second, identical PUT if the first one takes unusually long. The one that ends first decides.

This is sound because a create is create-only and both requests carry the same bytes: at most one of
them makes the object, and the object is ours either way. Invariants: the result is True if one
request got True. It is False only if both got False, or the only one did. If one was refused and
the other's outcome is unknown, the create is ambiguous and raises `BucketUnavailableError`. When a
create returns, no request is in progress, other than a cancelled one: it can change nothing, since
the key is decided. At most `share_max` of all PUTs are sent twice.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass

from bucketlog.log_format.model import Buffer
from bucketlog.tiered_storage.bucket import Body, Bucket, ObjectInfo, Span, Suffix


@dataclass(frozen=True, slots=True)
class HedgeSettings:
    """A PUT is hedged once it has taken longer than `quantile` of the last `window_puts` of about
    its size did, if at least `samples_min` of those are known. `delay_ms_min` keeps a store that
    answers in no time from being asked twice."""

    quantile: float = 0.95
    share_max: float = 0.1
    window_puts: int = 256
    samples_min: int = 20
    delay_ms_min: float = 10.0

    def __post_init__(self) -> None:
        if not (0 < self.quantile < 1 and 0 <= self.share_max <= 1):
            raise ValueError(f"no quantile or no share: {self}")


class HedgePolicy:
    """Rules for hedging. Pure: the policy is given every PUT and every latency.

    Sizes are distinguished by factors of eight, since a large PUT is not a slow small one.
    """

    BURST = 4.0
    """Number of PUTs that may be hedged one after another, once enough have not been."""

    def __init__(self, settings: HedgeSettings) -> None:
        self._settings = settings
        self._latencies: dict[int, deque[float]] = {}
        self._credit = 0.0

    def delay_ms(self, size_bytes: int) -> float | None:
        """Note that a PUT begins. Returns the delay after which to hedge it; None: do not hedge
        it."""
        settings = self._settings
        self._credit = min(self.BURST, self._credit + settings.share_max)
        window = self._latencies.get(_size_class(size_bytes), ())
        if len(window) < settings.samples_min:
            return None
        latency = sorted(window)[int(len(window) * settings.quantile)]
        return max(settings.delay_ms_min, latency)

    def take(self) -> bool:
        """Return whether another hedge fits into the share. If so, it is counted."""
        if self._credit < 1:
            return False
        self._credit -= 1
        return True

    def observe(self, size_bytes: int, latency_ms: float) -> None:
        """A PUT was decided this long after it began."""
        size_class = _size_class(size_bytes)
        if size_class not in self._latencies:
            self._latencies[size_class] = deque(maxlen=self._settings.window_puts)
        self._latencies[size_class].append(latency_ms)


def _size_class(size_bytes: int) -> int:
    return size_bytes.bit_length() // 3


class HedgingBucket:
    """A `Bucket` around `inner`, which it owns and which does not retry. `on_hedge` is called for
    every hedged PUT once it is decided, with whether the second request decided it."""

    def __init__(
        self,
        inner: Bucket,
        policy: HedgePolicy,
        *,
        on_hedge: Callable[[bool], None] = lambda won: None,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._inner = inner
        self._policy = policy
        self._on_hedge = on_hedge
        self._monotonic = monotonic
        self._sleep = sleep

    async def create(self, key: str, parts: Sequence[Buffer], *, crc32c: int | None = None) -> bool:
        size_bytes = sum(map(len, parts))
        delay_ms = self._policy.delay_ms(size_bytes)
        begun = self._monotonic()
        if delay_ms is None:
            created = await self._inner.create(key, parts, crc32c=crc32c)
        else:
            created = await self._create_hedged(key, parts, crc32c, delay_ms)
        self._policy.observe(size_bytes, (self._monotonic() - begun) * 1_000)
        return created

    async def _create_hedged(
        self, key: str, parts: Sequence[Buffer], crc32c: int | None, delay_ms: float
    ) -> bool:
        first = asyncio.ensure_future(self._inner.create(key, parts, crc32c=crc32c))
        timer = asyncio.ensure_future(self._sleep(delay_ms / 1_000))
        tries = [first]
        try:
            await asyncio.wait({first, timer}, return_when=asyncio.FIRST_COMPLETED)
            if first.done() or not self._policy.take():
                return await first
            second = asyncio.ensure_future(self._inner.create(key, parts, crc32c=crc32c))
            tries.append(second)
            won = False
            try:
                created = await _decide(first, second)
                won = created and not _is_true(first)
                return created
            finally:
                self._on_hedge(won)
        finally:
            await _end([timer, *tries])

    async def get(self, key: str, span: Span | Suffix | None = None) -> Body:
        return await self._inner.get(key, span)

    def list(self, prefix: str, *, start_after: str = "") -> AsyncIterator[ObjectInfo]:
        return self._inner.list(prefix, start_after=start_after)

    async def delete(self, keys: Sequence[str]) -> None:
        await self._inner.delete(keys)

    async def head(self, key: str) -> ObjectInfo | None:
        return await self._inner.head(key)

    async def close(self) -> None:
        await self._inner.close()


async def _decide(first: asyncio.Future[bool], second: asyncio.Future[bool]) -> bool:
    """The first True decides at once; anything less is known when both have ended."""
    await asyncio.wait({first, second}, return_when=asyncio.FIRST_COMPLETED)
    if not (_is_true(first) or _is_true(second)):
        await asyncio.wait({first, second})
    if _is_true(first) or _is_true(second):
        return True
    return [await first, await second][0]  # an error of either is raised: it may have happened


def _is_true(request: asyncio.Future[bool]) -> bool:
    return (
        request.done()
        and not request.cancelled()
        and request.exception() is None
        and request.result()
    )


async def _end(requests: Sequence[asyncio.Future[bool] | asyncio.Future[None]]) -> None:
    """Cancel the requests in progress and wait for them, however often this task is cancelled
    meanwhile. When the caller hears of the end, the buffers are the caller's again."""
    for request in requests:
        request.cancel()
    cancelled = False
    while not all(request.done() for request in requests):
        try:
            await asyncio.wait(requests)
        except asyncio.CancelledError:
            cancelled = True
    for request in requests:
        if not request.cancelled():
            request.exception()  # it was heard of, or does not matter any more
    if cancelled:
        raise asyncio.CancelledError
