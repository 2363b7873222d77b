"""A bucket that counts what passes through it: requests by verb, bytes both ways, how long creates
took."""

import threading
import time
from bisect import bisect_left
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from bucketlog.log_format.model import Buffer
from bucketlog.tiered_storage.bucket import Body, Bucket, ObjectInfo, Span, Suffix, SyncBucket

Clock = Callable[[], float]
KEYS_PER_REQUEST = 1_000
"""Number of keys that S3 lists or deletes with one request."""


BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class DurationHistogram:
    """A histogram of seconds. Each duration is counted at the first of `BUCKETS_S` that is not
    less. `counts` has one more element for durations beyond all of these."""

    __slots__ = ("counts", "total_s")

    def __init__(self) -> None:
        self.counts = [0] * (len(BUCKETS_S) + 1)
        self.total_s = 0.0

    def add(self, seconds: float) -> None:
        self.counts[bisect_left(BUCKETS_S, seconds)] += 1
        self.total_s += seconds

    def cumulative(self) -> list[tuple[str, float]]:
        """Return the counts in Prometheus' form: an upper bound, and the number of durations up to
        it."""
        bounds = (*map(str, BUCKETS_S), "+Inf")
        return list(zip(bounds, map(float, accumulate(self.counts)), strict=True))


@dataclass(slots=True)
class BucketCounts:
    """Counts of the requests begun, failed ones included, as S3 bills them: a listing counts one
    for each started thousand of objects. `bytes_in` went to the bucket (refused bodies too),
    `bytes_out` came from it."""

    creates: int = 0
    gets: int = 0
    lists: int = 0
    deletes: int = 0
    heads: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    hedges: int = 0
    """Number of creates that were the second of a pair (`HedgingBucket`)."""
    hedges_won: int = 0
    """Number of hedges that ended before the first create of their pair."""

    @property
    def requests(self) -> int:
        return self.creates + self.gets + self.lists + self.deletes + self.heads


class CountingBucket:
    """`Bucket` around `inner`, which it owns."""

    def __init__(self, inner: Bucket, monotonic: Clock = time.monotonic) -> None:
        self._inner = inner
        self._monotonic = monotonic
        self._counts = BucketCounts()
        self.create_seconds = DurationHistogram()
        """Durations of all creates that ended, also of refused and failed ones."""

    def beside(self, inner: Bucket) -> "CountingBucket":
        """Return a counter for another way to the same bucket. Both share their counts."""
        other = CountingBucket(inner, self._monotonic)
        other._counts = self._counts
        other.create_seconds = self.create_seconds
        return other

    def snapshot(self) -> BucketCounts:
        return replace(self._counts)

    def count_hedge(self, won: bool) -> None:
        self._counts.hedges += 1
        self._counts.hedges_won += won

    async def create(self, key: str, parts: Sequence[Buffer], *, crc32c: int | None = None) -> bool:
        self._counts.creates += 1
        self._counts.bytes_in += sum(map(len, parts))
        begun = self._monotonic()
        try:
            return await self._inner.create(key, parts, crc32c=crc32c)
        finally:
            self.create_seconds.add(self._monotonic() - begun)

    async def get(self, key: str, span: Span | Suffix | None = None) -> Body:
        self._counts.gets += 1
        body = await self._inner.get(key, span)
        self._counts.bytes_out += len(body.data)
        return body

    async def list(self, prefix: str, *, start_after: str = "") -> AsyncIterator[ObjectInfo]:
        self._counts.lists += 1
        count = 0
        async for info in self._inner.list(prefix, start_after=start_after):
            if count and count % KEYS_PER_REQUEST == 0:
                self._counts.lists += 1
            count += 1
            yield info

    async def delete(self, keys: Sequence[str]) -> None:
        self._counts.deletes += -(-len(keys) // KEYS_PER_REQUEST)
        await self._inner.delete(keys)

    async def head(self, key: str) -> ObjectInfo | None:
        self._counts.heads += 1
        return await self._inner.head(key)

    async def close(self) -> None:
        await self._inner.close()


class CountingSyncBucket:
    """`SyncBucket` around `inner`, which it owns. Thread-safe."""

    def __init__(self, inner: SyncBucket) -> None:
        self._inner = inner
        self._counts = BucketCounts()
        self._lock = threading.Lock()

    def snapshot(self) -> BucketCounts:
        with self._lock:
            return replace(self._counts)

    def _count(self, name: str, more: int = 1) -> None:
        with self._lock:
            setattr(self._counts, name, getattr(self._counts, name) + more)

    def create(self, key: str, parts: Sequence[Buffer], *, crc32c: int | None = None) -> bool:
        self._count("creates")
        self._count("bytes_in", sum(map(len, parts)))
        return self._inner.create(key, parts, crc32c=crc32c)

    def get(self, key: str, span: Span | Suffix | None = None) -> Body:
        self._count("gets")
        body = self._inner.get(key, span)
        self._count("bytes_out", len(body.data))
        return body

    def list(self, prefix: str, *, start_after: str = "") -> Iterator[ObjectInfo]:
        self._count("lists")
        for count, info in enumerate(self._inner.list(prefix, start_after=start_after)):
            if count and count % KEYS_PER_REQUEST == 0:
                self._count("lists")
            yield info

    def delete(self, keys: Sequence[str]) -> None:
        self._count("deletes", -(-len(keys) // KEYS_PER_REQUEST))
        self._inner.delete(keys)

    def head(self, key: str) -> ObjectInfo | None:
        self._count("heads")
        return self._inner.head(key)

    def close(self) -> None:
        self._inner.close()
