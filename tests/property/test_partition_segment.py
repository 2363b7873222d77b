"""Partition segments of any batches: what is written is read, look-ups find what a walk over all
batches finds, and merging gives the batches of all, one after another."""

from itertools import accumulate, pairwise

from hypothesis import given
from hypothesis import strategies as st

from bucketlog.log_format.batch import read_header
from bucketlog.tiered_storage.block_index import BLOCK_BYTES
from bucketlog.tiered_storage.partition_segment import (
    HEADER,
    PartitionSegmentWriter,
    check_partition_segment,
    decode_index,
    index_span,
    walk_batches,
)
from tests.models.partition_batches import (
    NAME,
    PARTITION,
    WRITTEN_MS,
    Planned,
    highest,
    joined,
    made,
    next_of,
    written,
)

FILLERS = st.sampled_from([0, 0, 0, 200, 30_000, BLOCK_BYTES - 200, BLOCK_BYTES + 5])
PLANNED = st.builds(
    Planned,
    gap=st.integers(0, 3),
    records=st.integers(1, 3),
    timestamp=st.integers(-1, 9),
    filler=FILLERS,
)
SOME = st.lists(PLANNED, min_size=1, max_size=12)


@given(planned=SOME, start=st.integers(0, 2**53 - 1_000), late=st.integers(0, 3))
def test_what_is_written_is_read(planned: list[Planned], start: int, late: int) -> None:
    batches = made(planned, start)
    end = next_of(batches, start) + late
    segment = written(batches, start, end)
    there, data = joined(segment)
    index = check_partition_segment(there, data)
    headers = [read_header(each) for each in batches]
    assert data[len(HEADER) : index.batches_end] == b"".join(batches)
    assert (index.start, index.end, index.batches) == (start, end, len(batches))
    assert index.records == sum(header.record_count for header in headers)
    assert index.max_timestamp == highest(batches)
    span = index_span(segment.row)
    assert decode_index(there, data[span.start :], len(data)) == index
    starts = list(accumulate(map(len, batches), initial=len(HEADER)))
    expected = [0]
    for at, position in enumerate(starts[:-1]):
        if position - starts[expected[-1]] >= BLOCK_BYTES:
            expected.append(at)
    assert list(index.blocks.rows()) == [
        (headers[at].base_offset, starts[at], highest(batches[:at])) for at in expected
    ]


@given(planned=SOME, offset=st.integers(0, 80), timestamp=st.integers(-2, 10))
def test_look_ups_find_what_a_walk_finds(
    planned: list[Planned], offset: int, timestamp: int
) -> None:
    batches = made(planned)
    there, data = joined(written(batches))
    index = check_partition_segment(there, data)
    body = data[: index.batches_end]
    every = list(walk_batches("k", body[len(HEADER) :], len(HEADER)))
    wanted = next((each for each in every if each.next_offset > offset), None)
    position = index.begin_at(offset)
    assert (position is None) == (wanted is None)
    if position is not None:
        walked = walk_batches("k", body[position:], position)
        assert next(each for each in walked if each.next_offset > offset) == wanted
        assert position == len(HEADER) or index.blocks.base_offsets[0] <= offset
    since = index.begin_since(timestamp)
    late = [
        each
        for each, batch in zip(every, batches, strict=True)
        if read_header(batch).max_timestamp >= timestamp
    ]
    assert (since is None) == (not late)
    if since is not None:
        assert since <= late[0].position < index.boundary(since + 1)


@given(planned=SOME, position=st.integers(0, 300_000))
def test_every_block_can_be_read_by_itself(planned: list[Planned], position: int) -> None:
    batches = made(planned)
    there, data = joined(written(batches))
    index = check_partition_segment(there, data)
    edges = [*index.blocks.positions, index.batches_end]
    assert index.boundary(position) == next(
        (edge for edge in edges if edge >= position), index.batches_end
    )
    found = []
    for start, end in pairwise(edges):
        block = list(walk_batches("k", data[start:end], start))
        assert block[0].position == start
        assert block[-1].position + block[-1].length == end
        found += block
    assert [data[each.position :][: each.length] for each in found] == batches


@given(several=st.lists(SOME, min_size=1, max_size=4), gap=st.integers(0, 2))
def test_merging_gives_the_batches_of_all(several: list[list[Planned]], gap: int) -> None:
    writer = PartitionSegmentWriter(PARTITION, 0)
    start = 0
    everything: list[bytes] = []
    for planned in several:
        batches = made(planned, start)
        there, data = joined(written(batches, start, next_of(batches, start) + gap))
        index = check_partition_segment(there, data)
        half = (len(HEADER) + index.batches_end) // 2
        writer.append_segment(
            "k", index, [data[len(HEADER) : half], data[half : index.batches_end]]
        )
        everything += batches
        start = index.end
    there, data = joined(writer.finish(start, NAME, WRITTEN_MS))
    merged = check_partition_segment(there, data)
    assert data[len(HEADER) : merged.batches_end] == b"".join(everything)
    assert (merged.start, merged.end, merged.batches) == (0, start, len(everything))
    assert merged.max_timestamp == highest(everything)
    largest = max(map(len, everything))
    edges = [*merged.blocks.positions, merged.batches_end]
    assert all(high - low < 2 * BLOCK_BYTES + largest for low, high in pairwise(edges))
