"""Counting, threads, and the parts in which a body is sent."""

import asyncio
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from bucketlog.log_format.errors import BucketRefusedError
from bucketlog.log_format.model import Buffer
from bucketlog.tiered_storage.backends.memory import MemoryBucket
from bucketlog.tiered_storage.backends.s3_requests import BodyParts
from bucketlog.tiered_storage.backends.threaded import ThreadedBucket
from bucketlog.tiered_storage.bucket import Span, Suffix
from bucketlog.tiered_storage.counting import BucketCounts, CountingBucket, CountingSyncBucket
from tests.rigs.patience import PATIENCE_S


def test_counts_of_synchronous_requests() -> None:
    bucket = CountingSyncBucket(MemoryBucket(lambda: 17))
    assert bucket.create("k", [b"123", memoryview(b"45")])
    assert not bucket.create("k", [b"6"])
    bucket.get("k", Span(1, 2))
    assert bucket.head("k") == ("k", 5, 17)
    for number in range(2_000):
        bucket.create(f"many/{number}", [])
    before = bucket.snapshot()
    assert len(list(bucket.list("many/"))) == 2_000
    assert list(bucket.list("none/")) == []
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(bucket.get, ["k"] * 1_000))
    bucket.delete([f"many/{number}" for number in range(1_001)])
    assert before == BucketCounts(creates=2_002, gets=1, heads=1, bytes_in=6, bytes_out=2)
    assert bucket.snapshot() == replace(before, gets=1_001, lists=3, deletes=2, bytes_out=5_002)
    bucket.close()


async def test_counts() -> None:
    bucket = CountingBucket(ThreadedBucket(MemoryBucket(lambda: 17)))
    assert await bucket.create("k", [b"123", memoryview(b"45")])
    before = bucket.snapshot()
    assert not await bucket.create("k", [b"6"])
    await bucket.get("k", Span(1, 2))
    await bucket.get("k")
    assert await bucket.head("k") == ("k", 5, 17)
    for number in range(2_000):
        await bucket.create(f"many/{number}", [])
    assert len([info async for info in bucket.list("many/")]) == 2_000
    assert [info async for info in bucket.list("none/")] == []
    await bucket.delete(["k"])
    await bucket.delete([f"many/{number}" for number in range(1_001)])
    assert before == BucketCounts(creates=1, bytes_in=5)
    counts = bucket.snapshot()
    assert counts == BucketCounts(
        creates=2_002, gets=2, lists=3, deletes=3, heads=1, bytes_in=6, bytes_out=7
    )
    assert counts.requests == 2_011
    bucket.count_hedge(True)
    bucket.count_hedge(False)
    assert (bucket.snapshot().hedges, bucket.snapshot().hedges_won) == (2, 1)
    await bucket.close()


class HeldBucket(MemoryBucket):
    """Begins to write when told."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.go_on = threading.Event(), threading.Event()

    def create(self, key: str, parts: Sequence[Buffer], *, crc32c: int | None = None) -> bool:
        self.begun.set()
        assert self.go_on.wait(PATIENCE_S)
        return super().create(key, parts, crc32c=crc32c)


@pytest.mark.parametrize("cancellations", [1, 3])
async def test_a_cancelled_create_gives_the_buffers_back_last(cancellations: int) -> None:
    """The caller may use its buffer again when the call is over, cancelled or not."""
    inner = HeldBucket()
    bucket = ThreadedBucket(inner)
    buffer = bytearray(b"mine")
    task = asyncio.create_task(bucket.create("k", [buffer]))
    await asyncio.to_thread(inner.begun.wait, 30)
    for _ in range(cancellations):
        task.cancel()
        await asyncio.wait([task], timeout=0)
        assert not task.done(), "the thread still holds the buffer"
    inner.go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    buffer[:] = b"next"
    assert (await bucket.get("k")).data == b"mine"
    await bucket.close()


async def test_a_cancelled_create_that_fails_is_quiet() -> None:
    inner = HeldBucket()
    bucket = ThreadedBucket(inner)
    task = asyncio.create_task(bucket.create("k", [b"x"], crc32c=1))
    await asyncio.to_thread(inner.begun.wait, 30)
    task.cancel()
    inner.go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    with pytest.raises(BucketRefusedError):
        await bucket.create("k", [b"x"], crc32c=1)
    await bucket.close()


async def test_spans_of_nothing_are_mistakes() -> None:
    for make in (lambda: Span(0, 0), lambda: Span(-1, 5), lambda: Suffix(0), lambda: Suffix(-1)):
        with pytest.raises(ValueError, match="no"):
            make()


@pytest.mark.parametrize(
    "sizes",
    [[], [0], [1], [70_000], [1] * 5, [100_000, 10, 10, 100_000], [1_000] * 1_000, [0, 300_000, 0]],
)
async def test_body_parts(sizes: list[int]) -> None:
    parts: list[Buffer] = [memoryview(bytes([at % 256]) * size) for at, size in enumerate(sizes)]
    body = BodyParts(parts)
    for _ in range(2):  # a redirected request reads it again
        chunks = [chunk async for chunk in body]
        assert b"".join(chunks) == b"".join(parts) == body.read()
    assert len(body) == sum(sizes)
    assert all(any(chunk is part for part in parts) for chunk in chunks if len(chunk) > 350_000)
    assert len(chunks) <= 2 + 2 * sum(size >= 65_536 for size in sizes) + sum(sizes) // 256_000
    large = [part for part in parts if len(part) >= 65_536]
    assert [chunk for chunk in chunks if any(chunk is part for part in large)] == large, "no copy"
