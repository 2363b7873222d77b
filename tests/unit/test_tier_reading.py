"""Fetches from a partition's tier: what they answer, and how often they ask the bucket."""

import pytest
from kio.schema.errors import ErrorCode

from bucketlog.wire.batch import read_header
from tests.partition_batches import Planned, made
from tests.tiered_log import MIB, TieredLog


def filled(total: int, size: int = 100_000, start: int = 0) -> list[bytes]:
    """Batches of one record each."""
    return made([Planned(0, 1, 1000 + at, size) for at in range(total // size)], start)


def next_offset(data: bytes) -> int:
    position, end = 0, 0
    while position < len(data):
        header = read_header(data, position)
        position, end = position + header.size_bytes, header.next_offset
    return end


async def read_all(log: TieredLog, offset: int = 0, max_bytes: int = MIB) -> bytes:
    data = b""
    while True:
        found = await log.fetch(offset, max_bytes)
        assert found.error is ErrorCode.none
        if offset == found.high_watermark:
            return data
        assert found.data
        data += found.data
        offset = next_offset(found.data)


@pytest.mark.parametrize(("sizes", "most"), [((10,), 6), ((9, 1), 6), ((40,), 9)])
async def test_a_full_read_takes_few_requests(sizes: tuple[int, ...], most: int) -> None:
    log = TieredLog()
    everything = b""
    start = 0
    for size in sizes:
        batches = filled(size * 1_000_000, start=start)
        log.append(batches)
        log.split(batches, start)
        start += len(batches)
        everything += b"".join(batches)
    assert await read_all(log) == everything
    assert log.gets <= most
    assert log.gets <= len(everything) / (8 * MIB) + 5
