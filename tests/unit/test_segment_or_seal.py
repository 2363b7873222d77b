"""Who decides a key of a chain: a seal, a segment, or nobody any more."""

import pytest

from bucketlog.log_format.errors import StaleCheckpointError
from bucketlog.log_format.model import SegmentId, WriterId
from bucketlog.stateless_broker.epochs.sealing import segment_or_seal
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.backends.memory import MemoryBucket
from bucketlog.tiered_storage.backends.threaded import ThreadedBucket
from bucketlog.tiered_storage.bucket import ObjectInfo

SEGMENT = SegmentId(WriterId("0" * 31 + "1"), 3)


class Vanishing(ThreadedBucket):
    """What stands in the way is deleted before it is looked at."""

    async def head(self, key: str) -> ObjectInfo | None:
        await self.delete([key])
        return await super().head(key)


async def decide(bucket: ThreadedBucket) -> ObjectInfo | None:
    return await segment_or_seal(bucket, SEGMENT, epoch=2, now_ms=1)


async def test_a_seal_stands_where_nothing_did() -> None:
    bucket = ThreadedBucket(MemoryBucket())
    assert await decide(bucket) is None
    assert await decide(bucket) is None, "another's seal"


async def test_a_segment_that_is_there_counts() -> None:
    bucket = ThreadedBucket(MemoryBucket())
    assert await bucket.create(keys.segment(SEGMENT), [bytes(5_000)])
    found = await decide(bucket)
    assert found is not None
    assert (found.key, found.size_bytes) == (keys.segment(SEGMENT), 5_000)


async def test_what_was_deleted_meanwhile_stops_nobody() -> None:
    """Whoever deletes has a later checkpoint: reading begins again with that one."""
    bucket = Vanishing(MemoryBucket())
    assert await bucket.create(keys.segment(SEGMENT), [bytes(5_000)])
    with pytest.raises(StaleCheckpointError, match="is deleted") as told:
        await decide(bucket)
    assert told.value.retriable
