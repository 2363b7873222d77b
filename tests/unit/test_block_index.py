"""The sparse index by itself: its edges, and what no index may look like."""

from array import array

import pytest

from bucketlog.tiered_storage.block_index import BLOCK_BYTES, BlockIndex

ROWS = [(5, 16, -1), (9, 16 + BLOCK_BYTES, 40), (20, 16 + 3 * BLOCK_BYTES, 60)]
END = 16 + 3 * BLOCK_BYTES + 700


def index_of(rows: list[tuple[int, int, int]]) -> BlockIndex:
    return BlockIndex(*(array("q", column) for column in zip(*rows, strict=True)))


def test_a_batch_gets_a_row_when_it_is_far_enough_from_the_last_one() -> None:
    index = BlockIndex()
    for base, position in enumerate(
        [16, 16 + BLOCK_BYTES - 1, 16 + BLOCK_BYTES, 17 + BLOCK_BYTES, 15 + 2 * BLOCK_BYTES]
    ):
        index.mark(base, position, -1)
    assert list(index.rows()) == [(0, 16, -1), (2, 16 + BLOCK_BYTES, -1)]


def test_there_and_back() -> None:
    index = index_of(ROWS)
    assert BlockIndex.decode(index.encode()) == index
    assert len(index.encode()) == 24 * len(index) == 72
    assert index.encode()[:9] == bytes(7) + b"\x05\0"
    assert BlockIndex.decode(b"") == BlockIndex()


@pytest.mark.parametrize(
    ("offset", "row"), [(0, 0), (5, 0), (8, 0), (9, 1), (19, 1), (20, 2), (2**53, 2)]
)
def test_an_offset_is_looked_for_from_the_last_row_that_is_not_above_it(
    offset: int, row: int
) -> None:
    assert index_of(ROWS).position_of(offset) == ROWS[row][1]


@pytest.mark.parametrize(
    ("timestamp", "row"), [(-2, 0), (-1, 0), (0, 0), (40, 0), (41, 1), (60, 1), (61, 2)]
)
def test_a_timestamp_is_looked_for_from_the_last_row_before_which_all_are_lower(
    timestamp: int, row: int
) -> None:
    assert index_of(ROWS).position_since(timestamp) == ROWS[row][1]


@pytest.mark.parametrize(
    ("position", "boundary"),
    [
        (0, 16),
        (16, 16),
        (17, ROWS[1][1]),
        (ROWS[1][1], ROWS[1][1]),
        (ROWS[1][1] + 1, ROWS[2][1]),
        (ROWS[2][1] + 1, END),
        (END, END),
    ],
)
def test_a_boundary_is_the_next_row_or_the_end(position: int, boundary: int) -> None:
    assert index_of(ROWS).boundary(position, END) == boundary


def test_what_holds_together() -> None:
    assert index_of(ROWS).holds_together(first=16, end=END, max_timestamp=60)
    assert not index_of(ROWS).holds_together(first=17, end=END, max_timestamp=60)
    assert not index_of(ROWS).holds_together(first=16, end=ROWS[2][1], max_timestamp=60)
    assert not index_of(ROWS).holds_together(first=16, end=END, max_timestamp=59)
    assert not BlockIndex().holds_together(first=16, end=END, max_timestamp=60)


@pytest.mark.parametrize("row", [(5, ROWS[1][1], 40), (9, ROWS[1][1] - 1, 40), (9, ROWS[1][1], 61)])
def test_rows_that_do_not_ascend(row: tuple[int, int, int]) -> None:
    assert not index_of([ROWS[0], row, ROWS[2]]).holds_together(first=16, end=END, max_timestamp=99)
