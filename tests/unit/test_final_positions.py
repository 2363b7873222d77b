"""Where the chains of an earlier epoch end, for a broker that holds segments of them."""

import pytest

from bucketlog.log_format.errors import SequencerLostError
from bucketlog.log_format.model import SegmentId, Ticket, WriterId
from bucketlog.stateless_broker.produce.unsettled import final_positions
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.backends.memory import MemoryBucket
from bucketlog.tiered_storage.backends.threaded import ThreadedBucket
from bucketlog.tiered_storage.segment import Seal, encode_seal

WRITER = WriterId("a" * 32)
EPOCH, FIRST_HELD = 6, 2


async def ends(memory: MemoryBucket) -> dict[WriterId, int | None]:
    return await final_positions(ThreadedBucket(memory), {WRITER: FIRST_HELD}, epoch=EPOCH)


def bucket_with(
    *, segments: int = 0, seal: bool = False, floor_epoch: int | None = None
) -> MemoryBucket:
    memory = MemoryBucket()
    for seq in range(FIRST_HELD, FIRST_HELD + segments):
        memory.create(keys.segment(SegmentId(WRITER, seq)), [bytes(1000)])
    if seal:
        segment = SegmentId(WRITER, FIRST_HELD + segments)
        memory.create(keys.segment(segment), [encode_seal(Seal(segment, EPOCH + 1, 1))])
    if floor_epoch is not None:
        memory.create(keys.floor(Ticket(floor_epoch, 9)), [b"{}"])
    return memory


@pytest.mark.parametrize("segments", [0, 1, 3])
async def test_a_chain_ends_at_its_seal(segments: int) -> None:
    memory = bucket_with(segments=segments, seal=True)
    assert await ends(memory) == {WRITER: FIRST_HELD + segments}


@pytest.mark.parametrize("floor_epoch", [EPOCH, EPOCH + 1])
async def test_nobody_knows_the_end_of_a_chain_that_may_be_deleted(floor_epoch: int) -> None:
    """Others may have sealed the chain within its own epoch: then a floor of this epoch allows the
    deletion. The broker must not wait for a floor of a later epoch."""
    assert await ends(bucket_with(floor_epoch=floor_epoch)) == {WRITER: None}


@pytest.mark.parametrize("floor_epoch", [None, EPOCH - 1])
async def test_a_chain_that_is_not_sealed_and_cannot_be_deleted_is_an_error(
    floor_epoch: int | None,
) -> None:
    memory = bucket_with(segments=1, floor_epoch=floor_epoch)
    with pytest.raises(SequencerLostError, match="are not sealed"):
        await ends(memory)
