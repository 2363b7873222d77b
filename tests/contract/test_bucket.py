"""The contract of `tiered_storage.bucket.Bucket`, the same for every store (tests/contract/stores).

Races are held against `ATOMIC_KINDS` alone; what only one backend has stands in its own module.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable

import pytest
from crc32c import crc32c

from bucketlog.log_format.errors import BucketError, BucketRefusedError, ObjectNotFoundError
from bucketlog.log_format.model import Buffer
from bucketlog.tiered_storage.bucket import Body, Bucket, Span, Suffix
from bucketlog.tiered_storage.segment import body_crc32c
from tests.contract.stores import ATOMIC_KINDS, KINDS, Kind, Store

DATA = b"0123456789"


async def keys_of(bucket: Bucket, prefix: str = "", start_after: str = "") -> list[str]:
    return [info.key async for info in bucket.list(prefix, start_after=start_after)]


async def test_create_only(bucket: Bucket) -> None:
    assert await bucket.create("log/w/1", [b"first"]) is True
    assert await bucket.create("log/w/1", [b"second, longer"]) is False
    assert await bucket.create("log/w/1", [b"first"]) is False, "its own bytes are no exception"
    assert await bucket.get("log/w/1") == Body(b"first", 0, 5)


async def test_an_object_outlives_the_bucket_object(store: Store) -> None:
    one = await store.open()
    assert await one.create("log/w/1", [DATA])
    await one.close()
    other = await store.open()
    assert (await other.get("log/w/1")).data == DATA
    assert not await other.create("log/w/1", [b"x"])
    await other.close()


@pytest.mark.parametrize("kind", ATOMIC_KINDS, ids=str)
async def test_of_racing_creates_one_wins(store: Store) -> None:
    """50 races of 8, from two bucket objects: one True each, and the winner's bytes stay."""
    buckets = [await store.open(), await store.open()]
    for race in range(50):
        key = f"log/race-{race % 5}/{race}"
        bodies = [bytes([racer]) * (1000 + 100 * racer) for racer in range(8)]
        won = await asyncio.gather(
            *(buckets[racer % 2].create(key, [body]) for racer, body in enumerate(bodies))
        )
        assert sum(won) == 1
        assert (await buckets[0].get(key)).data == bodies[won.index(True)]
    for bucket in buckets:
        await bucket.close()


async def test_empty_body(bucket: Bucket) -> None:
    bodies: dict[str, list[Buffer]] = {"none": [], "empty": [b"", memoryview(b"")]}
    for key, parts in bodies.items():
        assert await bucket.create(key, parts, crc32c=0)
        assert not await bucket.create(key, [b"x"])
        assert await bucket.get(key) == Body(b"", 0, 0)
        assert await bucket.get(key, Suffix(10)) == Body(b"", 0, 0)
        assert await bucket.get(key, Span(0, 1)) == Body(b"", 0, 0)
        info = await bucket.head(key)
        assert info is not None
        assert info.size_bytes == 0


async def test_large_body_in_many_parts(bucket: Bucket) -> None:
    """More parts than one writev takes, borrowed from a larger buffer, small and large mixed."""
    chance = random.Random(1)
    source = memoryview(bytearray(chance.randbytes(6_000_000)))
    parts: list[Buffer] = [source[at * 100 : at * 100 + 100] for at in range(3000)]
    parts += [bytes(source[300_000:300_001]), b"", source[300_001:2_300_001]]
    parts += [source[2_300_001 + at * 70_000 :][:70_000] for at in range(20)]
    parts += [bytearray(source[3_700_001:3_710_001]), source[3_710_001:]]
    whole = bytes(source)
    assert b"".join(parts) == whole
    assert await bucket.create("log/w/1", parts, crc32c=body_crc32c(parts))
    stored = await bucket.get("log/w/1")
    assert stored.object_size_bytes == len(whole)
    assert stored.data == whole
    part = await bucket.get("log/w/1", Span(299_990, 2_000_030))
    assert part == Body(whole[299_990 : 299_990 + 2_000_030], 299_990, len(whole))


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.verifies_crc], ids=str)
async def test_a_wrong_checksum_is_refused(bucket: Bucket) -> None:
    with pytest.raises(BucketError):
        await bucket.create("k", [DATA], crc32c=crc32c(DATA) ^ 1)
    assert await bucket.head("k") is None


RANGES: list[tuple[Span | Suffix | None, Body]] = [
    (None, Body(DATA, 0, 10)),
    (Span(0, 1), Body(b"0", 0, 10)),
    (Span(3, 4), Body(b"3456", 3, 10)),
    (Span(9, 1), Body(b"9", 9, 10)),
    (Span(0, 10), Body(DATA, 0, 10)),
    (Span(0, 11), Body(DATA, 0, 10)),
    (Span(8, 1_000_000), Body(b"89", 8, 10)),
    (Span(10, 1), Body(b"", 10, 10)),
    (Span(10_000, 5), Body(b"", 10, 10)),
    (Suffix(1), Body(b"9", 9, 10)),
    (Suffix(4), Body(b"6789", 6, 10)),
    (Suffix(10), Body(DATA, 0, 10)),
    (Suffix(11), Body(DATA, 0, 10)),
    (Suffix(1_000_000), Body(DATA, 0, 10)),
]


async def test_ranges(bucket: Bucket) -> None:
    await bucket.create("k", [DATA])
    for span, body in RANGES:
        assert await bucket.get("k", span) == body, span


async def test_get_of_a_missing_object(bucket: Bucket) -> None:
    await bucket.create("log/w/1", [DATA])
    for key in ("log/w/2", "log/w", "log/w/1/2", "nowhere/at/all"):
        for span in (None, Span(0, 1), Suffix(1)):
            with pytest.raises(ObjectNotFoundError) as caught:
                await bucket.get(key, span)
            assert caught.value.key == key
        assert await bucket.head(key) is None


async def test_list_by_prefix(bucket: Bucket) -> None:
    assert await keys_of(bucket) == []
    assert await keys_of(bucket, "log/none/") == []
    keys = ["cluster.json", "epochs/1", "log/a/1", "log/a/2", "log/ab/1", "log/b/1", "writers/1/a"]
    for key in keys:
        await bucket.create(key, [key.encode()])
    for prefix in ("", "log/", "log/a", "log/a/", "log/a/1", "log/ab", "l", "writers/1/", "x", "e"):
        found = await keys_of(bucket, prefix)
        assert sorted(found) == [key for key in keys if key.startswith(prefix)], prefix
    for info in [info async for info in bucket.list("")]:
        assert info.size_bytes == len(info.key)
        assert info == await bucket.head(info.key)


async def test_list_start_after(bucket: Bucket) -> None:
    keys = ["log/a/1", "log/a/2", "log/a/3", "log/a-b/1", "log/b/1", "log/b/2", "z"]
    for key in keys:
        await bucket.create(key, [DATA])
    for after in ("log/a/1", "log/a/2", "log/a/25", "log/a", "log/a/", "log/b/", "log/c", "a", "z"):
        for prefix in ("", "log/", "log/a/", "log/a"):
            found = await keys_of(bucket, prefix, after)
            expected = sorted(key for key in keys if key.startswith(prefix) and key > after)
            assert sorted(found) == expected, (prefix, after)


async def test_more_than_a_page(kind: Kind, bucket: Bucket) -> None:
    """Listing more keys than S3 gives at once, deleting more than it takes (1,000)."""
    count = kind.page_keys + 100
    keys = [f"log/w/{number:020d}" for number in range(count)]
    turns = asyncio.Semaphore(16)

    async def create(key: str) -> bool:
        async with turns:
            return await bucket.create(key, [b"x"])

    assert all(await asyncio.gather(*map(create, keys)))
    assert sorted(await keys_of(bucket, "log/w/")) == keys
    assert sorted(await keys_of(bucket, "log/w/", keys[49])) == keys[50:]
    missing = [f"log/v/{number}" for number in range(1_000)]
    await bucket.delete([*keys[:30], *missing, *keys[30:-50]])
    assert sorted(await keys_of(bucket)) == keys[-50:]


async def test_delete(bucket: Bucket) -> None:
    await bucket.delete([])
    await bucket.delete(["never/was", "nor/this"])
    await bucket.create("log/w/1", [DATA])
    await bucket.create("log/w/2", [DATA])
    await bucket.delete(["log/w/1", "never/was", "log/w"])
    assert await keys_of(bucket) == ["log/w/2"]
    assert await bucket.head("log/w/1") is None
    assert await bucket.create("log/w/1", [b"new"]), "a deleted key is free again"
    assert (await bucket.get("log/w/1")).data == b"new"


ODD_KEYS = [
    "with space",
    "plus+and%20percent",
    "a=b&c?d#e",
    "<xml>&\"quotes'",
    "back\\slash:colon*star",
    "{}[]()|~`^!$@,;",
    ".hidden/..dots/....",
    "log/" + "n" * 255,
    "/".join(["deep" * 5] * 20),
]


async def test_odd_keys(bucket: Bucket) -> None:
    for key in ODD_KEYS:
        assert await bucket.create(key, [key.encode()])
        assert not await bucket.create(key, [b"x"])
        assert (await bucket.get(key)).data == key.encode()
        assert await keys_of(bucket) == [key]
        assert await keys_of(bucket, key[:-1]) == [key]
        assert await keys_of(bucket, "", key) == []
        await bucket.delete([key])
        assert await keys_of(bucket) == []


BAD_KEYS = [
    *("", "/a", "a/", "a//b", ".", "..", "../a", "a/../../b", "a/./b"),
    *("a\0b", "a\nb", "ä", "\x7f", "n" * 256, "/".join(["n" * 100] * 6)),
]


async def test_keys_that_no_store_may_see(bucket: Bucket) -> None:
    verbs: list[Callable[[str], Awaitable[object]]] = [
        lambda key: bucket.create(key, [b"x"]),
        bucket.get,
        bucket.head,
        lambda key: bucket.delete([key]),
    ]
    for key in BAD_KEYS:
        for verb in verbs:
            with pytest.raises(BucketRefusedError, match="not a key"):
                await verb(key)
    for prefix in ("../", "a/../", "a/..", ".", "/", "a//", "\0"):
        with pytest.raises(BucketRefusedError, match="not a key"):
            await keys_of(bucket, prefix)
    assert await keys_of(bucket) == []


async def test_many_at_once(bucket: Bucket) -> None:
    """More calls than threads or connections: all are served."""
    bodies = {f"log/w{number % 7}/{number}": b"%d" % number * 50 for number in range(100)}
    created = await asyncio.gather(*(bucket.create(key, [body]) for key, body in bodies.items()))
    assert all(created)
    read = await asyncio.gather(*map(bucket.get, bodies))
    assert [body.data for body in read] == list(bodies.values())
