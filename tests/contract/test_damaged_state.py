"""Values in Redis that no script wrote: their numbers never reach offsets, keys or footers."""

from typing import cast

import ormsgpack
import pytest

from bucketlog.log_format.errors import SequencerLostError
from tests.servers.sequencing import Sequencing, plain


@pytest.mark.parametrize("number", [1.5, float("nan"), 1e300])
async def test_an_offset_that_is_not_a_whole_number(sequencing: Sequencing, number: float) -> None:
    key = sequencing.key("partitions")
    for field, packed in (await sequencing.redis.hgetall(key)).items():
        if field:
            record = ormsgpack.unpackb(cast(bytes, packed))
            await sequencing.redis.hset(key, field, ormsgpack.packb(record | {"next": number}))
    try:
        found = await sequencing.ask(sequencing.a, {("t", 0): [plain()]})
    except SequencerLostError:
        return
    assert [answer.number for part in found.batches for answer in part] == [-1], "refused"


async def test_a_ticket_that_is_not_a_whole_number(sequencing: Sequencing) -> None:
    await sequencing.redis.zadd(sequencing.key("open"), {"1.5": 0})
    with pytest.raises(SequencerLostError, match="whole number"):
        await sequencing.sequencer.position(1)


@pytest.mark.parametrize("snapshot", [7, "text", [1]])
async def test_a_snapshot_that_is_not_bytes(sequencing: Sequencing, snapshot: object) -> None:
    taken = await sequencing.sequencer.take_group(1, "g", "one")
    assert await sequencing.sequencer.store_group(1, "g", taken.term, 1, "Empty", "", b"kept")
    assert (await sequencing.sequencer.take_group(1, "g", "two")).snapshot == b"kept"
    key = sequencing.key("group_snapshots")
    for field in await sequencing.redis.hkeys(key):
        await sequencing.redis.hset(key, field, ormsgpack.packb(snapshot))
    with pytest.raises(SequencerLostError, match="snapshot of group 'g' is damaged"):
        await sequencing.sequencer.take_group(1, "g", "two")
