"""What a broker does with a bucket before it serves: the probe, and `cluster.json`."""

import asyncio
from collections.abc import Sequence
from uuid import UUID

import pytest

from bucketlog.log_format.errors import (
    BucketRefusedError,
    BucketUnavailableError,
    ConfigurationError,
    CorruptObjectError,
    InvalidDataError,
)
from bucketlog.log_format.model import Buffer
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.backends.memory import MemoryBucket
from bucketlog.tiered_storage.backends.threaded import ThreadedBucket
from bucketlog.tiered_storage.bucket import Body, Bucket, ObjectInfo, Span, Suffix
from bucketlog.tiered_storage.faulty import BucketVerb, Fault, FaultyBucket, ScriptedFaults
from bucketlog.tiered_storage.identity import (
    FORMAT_VERSION,
    ClusterIdentity,
    ensure_cluster,
    read_cluster,
)
from bucketlog.tiered_storage.probe import probe
from tests.contract.stores import ATOMIC_KINDS, Store

ONE, OTHER = UUID(int=1), UUID(int=2)


class OverwritingBucket(MemoryBucket):
    """As S3 stores do that do not know If-None-Match: every create succeeds."""

    def create(self, key: str, parts: Sequence[Buffer], *, crc32c: int | None = None) -> bool:
        self.delete([key])
        return super().create(key, parts, crc32c=crc32c)


class LyingBucket(OverwritingBucket):
    """Says that it refused, and overwrote."""

    def create(self, key: str, parts: Sequence[Buffer], *, crc32c: int | None = None) -> bool:
        new = self.head(key) is None
        super().create(key, parts, crc32c=crc32c)
        return new


class RangelessBucket(MemoryBucket):
    """Takes a suffix for the first bytes, as a store would that misreads `bytes=-N`."""

    def get(self, key: str, span: Span | Suffix | None = None) -> Body:
        return super().get(key, Span(0, span.length) if isinstance(span, Suffix) else span)


class KeepingBucket(MemoryBucket):
    """Under object lock: what is deleted stays."""

    def delete(self, keys: Sequence[str]) -> None:
        pass


class BlindBucket(MemoryBucket):
    """Lists late."""

    def list(self, prefix: str, *, start_after: str = "") -> "EmptyIterator":
        return EmptyIterator()


class EmptyIterator:
    def __iter__(self) -> "EmptyIterator":
        return self

    def __next__(self) -> ObjectInfo:
        raise StopIteration


async def keys_of(bucket: Bucket) -> list[str]:
    return [info.key async for info in bucket.list("")]


async def test_the_probe_passes_and_leaves_nothing(bucket: Bucket) -> None:
    await probe(bucket, nonce="n1", name="the bucket")
    await probe(bucket, nonce="n1", name="the bucket")
    assert await keys_of(bucket) == []


@pytest.mark.parametrize(
    ("fake", "words"),
    [
        (OverwritingBucket, "a second create of 'probes/n1' succeeded"),
        (LyingBucket, "changed its bytes"),
        (RangelessBucket, "suffix ranges"),
        (KeepingBucket, "was deleted and is still there"),
        (BlindBucket, "is not listed"),
    ],
)
async def test_the_probe_refuses(fake: type[MemoryBucket], words: str) -> None:
    inner = fake()
    bucket = ThreadedBucket(inner)
    with pytest.raises(BucketRefusedError) as caught:
        await probe(bucket, nonce="n1", name="s3://flights/log")
    assert words in caught.value.message
    assert "s3://flights/log" in caught.value.message
    assert caught.value.remedy
    if fake is not KeepingBucket:
        assert inner.head("probes/n1") is None
    await bucket.close()


async def test_the_probe_refuses_a_used_nonce(bucket: Bucket) -> None:
    await bucket.create(f"{keys.PROBES}n1", [b"another's"])
    with pytest.raises(BucketRefusedError, match="start again"):
        await probe(bucket, nonce="n1", name="the bucket")
    assert (await bucket.get(f"{keys.PROBES}n1")).data == b"another's"


@pytest.mark.parametrize("verb", list(BucketVerb))
async def test_the_probe_does_not_take_silence_for_an_answer(verb: BucketVerb) -> None:
    faulty = FaultyBucket(ThreadedBucket(MemoryBucket()), ScriptedFaults({verb: [Fault()]}))
    with pytest.raises(BucketUnavailableError):
        await probe(faulty, nonce="n1", name="the bucket")
    await faulty.close()


async def test_a_new_bucket_gets_an_identity_once(bucket: Bucket) -> None:
    assert await read_cluster(bucket) is None
    mine = await ensure_cluster(bucket, new_cluster_id=ONE, now_ms=17)
    assert mine == ClusterIdentity(cluster_id=ONE, format_version=FORMAT_VERSION, created_ms=17)
    assert await ensure_cluster(bucket, new_cluster_id=OTHER, now_ms=18) == mine
    assert await read_cluster(bucket) == mine
    assert await keys_of(bucket) == ["cluster.json"]


@pytest.mark.parametrize("kind", ATOMIC_KINDS, ids=str)
async def test_racing_brokers_agree_on_one_identity(store: Store) -> None:
    buckets = [await store.open() for _ in range(4)]
    identities = await asyncio.gather(
        *(
            ensure_cluster(bucket, new_cluster_id=UUID(int=number), now_ms=number)
            for number, bucket in enumerate(buckets, 1)
        )
    )
    assert len(set(identities)) == 1
    for bucket in buckets:
        await bucket.close()


async def test_anothers_bucket_is_refused(bucket: Bucket) -> None:
    async def ensure(expected: UUID) -> ClusterIdentity:
        return await ensure_cluster(
            bucket, new_cluster_id=ONE, now_ms=17, expected_cluster_id=expected
        )

    with pytest.raises(ConfigurationError, match=f"cluster {OTHER} was expected"):
        await ensure(OTHER)
    assert await keys_of(bucket) == [], "an empty bucket is not taken where another is expected"
    assert (await ensure(ONE)).cluster_id == ONE
    assert (await ensure(ONE)).cluster_id == ONE
    with pytest.raises(ConfigurationError, match=f"is cluster {ONE}'s, not {OTHER}'s"):
        await ensure(OTHER)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe",
        b"[]",
        b'{"cluster_id": "x", "format_version": 1, "created_ms": 1}',
        b'{"format_version": 1}',
        b'{"cluster_id": "00000000-0000-0000-0000-000000000001", "created_ms": 1}',
    ],
)
async def test_a_damaged_identity(content: bytes) -> None:
    bucket = ThreadedBucket(MemoryBucket())
    await bucket.create("cluster.json", [content])
    with pytest.raises(CorruptObjectError, match=r"cluster\.json") as caught:
        await ensure_cluster(bucket, new_cluster_id=ONE, now_ms=17)
    assert "restore it" in caught.value.remedy
    await bucket.close()


async def test_an_identity_of_a_later_format() -> None:
    bucket = ThreadedBucket(MemoryBucket())
    await bucket.create("cluster.json", [b'{"format_version": 2, "shape": "unknown"}'])
    with pytest.raises(InvalidDataError, match="format version 2"):
        await ensure_cluster(bucket, new_cluster_id=ONE, now_ms=17)
    await bucket.close()
