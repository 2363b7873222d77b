"""A partition read through its tier against a list of its batches, whatever stands where.

Any offsets with gaps are laid out over partition segments, manifests and log segments, some of them
below the log start; fetches of any size from any offset answer what the list does.
"""

import asyncio
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from bucketlog.log_format.batch import read_header
from bucketlog.log_format.model import NO_TIMESTAMP, TierRow
from bucketlog.log_format.records import decode_records
from bucketlog.tiered_storage.block_index import BLOCK_BYTES
from tests.models.partition_batches import Planned, made, next_of
from tests.rigs.tiered_log import TieredLog

BATCHES = st.lists(
    st.builds(
        Planned,
        st.integers(0, 3) | st.just(0),
        st.integers(1, 3),
        st.integers(-1, 30),
        st.sampled_from([0, 10, 300, 5_000, 40_000, 90_000]),
    ),
    max_size=6,
)


@dataclass(frozen=True)
class Piece:
    """Batches of one object, and offsets after them that have none (in the tier only)."""

    batches: list[Planned]
    gap: int


PIECES = st.lists(st.builds(Piece, BATCHES, st.integers(0, 3)), max_size=6)
AHEAD = st.sampled_from([0, BLOCK_BYTES, 100_000])


@dataclass
class Laid:
    log: TieredLog
    batches: list[bytes]
    """All, in order."""
    end: int

    def wanted(self, offset: int) -> list[bytes]:
        return [each for each in self.batches if read_header(each).next_offset > offset]


async def laid(log: TieredLog, tier: list[Piece], recent: list[Piece], runs: list[int]) -> Laid:
    """`runs`: how many rows of the tier stand side by side in a manifest each; 0: as they are."""
    everything: list[bytes] = []
    rows: list[TierRow] = []
    start = 0
    pieces: list[tuple[list[bytes], int, int]] = []
    for piece in tier:
        batches = made(piece.batches, start)
        end = next_of(batches, start) + piece.gap
        pieces.append((batches, start, end))
        everything += batches
        start = end
    tier_end = start
    for piece in recent:
        batches = made(piece.batches, start)
        pieces.append((batches, start, next_of(batches, start)))
        everything += batches
        start = next_of(batches, start)
    for batches, _, _ in pieces:
        if batches:
            log.append(batches)
    for batches, begin, end in pieces:
        if end <= tier_end and end > begin:
            row = log.split(batches, begin, end)
            rows += [row] if batches else []
    for count in runs:
        if count and rows:
            log.list_in_manifest(rows[:count])
        del rows[: count or 1]
    return Laid(log, everything, max(next_of(everything, 0), 0))


def expected(wanted: list[bytes], max_bytes: int) -> bytes:
    data = b""
    for batch in wanted:
        if data and len(data) + len(batch) > max_bytes:
            break
        data += batch
    return data


def next_offset(data: bytes, offset: int) -> int:
    at = 0
    while at < len(data):
        header = read_header(data, at)
        at, offset = at + header.size_bytes, header.next_offset
    return offset


@settings(deadline=None, max_examples=40)
@given(
    PIECES,
    PIECES,
    st.lists(st.integers(0, 3), max_size=4),
    st.lists(
        st.tuples(st.floats(0, 1), st.sampled_from([0, 1, 200, 3_000, 70_000, 200_000, 1_000_000])),
        min_size=1,
        max_size=4,
    ),
    AHEAD,
    st.sampled_from([0, 200_000, 10_000_000]),
    st.floats(0, 1) | st.just(0.0),
)
def test_fetches_answer_what_a_list_does(
    tier: list[Piece],
    recent: list[Piece],
    runs: list[int],
    readers: list[tuple[float, int]],
    ahead: int,
    history: int,
    begin: float,
) -> None:
    asyncio.run(_read(tier, recent, runs, readers, ahead, history, begin))


async def _read(
    tier: list[Piece],
    recent: list[Piece],
    runs: list[int],
    readers: list[tuple[float, int]],
    ahead: int,
    history: int,
    begin: float,
) -> None:
    log = TieredLog(ahead=ahead, history=history, index_bytes=history, places=3)
    there = await laid(log, tier, recent, runs)
    log_start = int(begin * there.end)
    if log_start:
        log.begin_at(log_start)
    for share, max_bytes in readers:
        offset = log_start + int(share * (there.end - log_start))
        await _read_on(there, offset, max_bytes)
    if log_start:
        below = await log.fetch(log_start - 1)
        assert (below.error, below.data) == (ErrorCode.offset_out_of_range, b"")


async def _read_on(there: Laid, offset: int, max_bytes: int) -> None:
    """To the end: each answer is a beginning of what the list has, of whole batches, and not
    longer than the list would be."""
    read = b""
    wanted = there.wanted(offset)
    while wanted:
        found = await there.log.fetch(offset, max_bytes)
        assert found.error is ErrorCode.none
        assert found.data
        assert expected(wanted, max_bytes).startswith(found.data)
        read += found.data
        offset = next_offset(found.data, offset)
        wanted = there.wanted(offset)
    assert (await there.log.fetch(offset, max_bytes)).data == b""


@settings(deadline=None, max_examples=40)
@given(
    PIECES,
    PIECES,
    st.lists(st.integers(0, 3), max_size=4),
    st.floats(0, 1) | st.just(0.0),
    st.lists(st.integers(0, 31), min_size=1, max_size=4),
)
def test_look_ups_by_time_answer_what_a_list_does(
    tier: list[Piece], recent: list[Piece], runs: list[int], begin: float, times: list[int]
) -> None:
    asyncio.run(_look_up(tier, recent, runs, begin, times))


async def _look_up(
    tier: list[Piece], recent: list[Piece], runs: list[int], begin: float, times: list[int]
) -> None:
    log = TieredLog()
    there = await laid(log, tier, recent, runs)
    log_start = int(begin * there.end)
    if log_start:
        log.begin_at(log_start)
    records = [
        (record.timestamp, record.offset)
        for batch in there.batches
        for record in decode_records(batch, read_header(batch))
        if record.offset >= log_start
    ]
    for time in times:
        first = next(((offset, at) for at, offset in records if at >= time), (-1, -1))
        assert await log.list_offset(time) == (ErrorCode.none, *first)
    assert await log.list_offset(-2) == (ErrorCode.none, log_start, -1)
    assert await log.list_offset(-4) == (ErrorCode.none, log_start, -1)
    assert await log.list_offset(-1) == (ErrorCode.none, there.end, -1)
    highest = max((at for at, _ in records), default=NO_TIMESTAMP)
    if highest > NO_TIMESTAMP:
        first = next((offset, at) for at, offset in records if at == highest)
        assert await log.list_offset(-3) == (ErrorCode.none, *first)
