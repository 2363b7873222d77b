"""The sparse index of a partition segment: where to begin for an offset or a timestamp. Pure.

Invariants: rows ascend and each is at the beginning of a batch, so that every look-up is a
bisection and gives a place where a batch begins; a row takes 24 bytes, as in the object. What lies
between two rows is a block.
"""

import sys
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from bucketlog.log_format.model import NO_TIMESTAMP, Buffer

BLOCK_BYTES = 64 * 1024
"""Two rows are at least so far apart."""
ROW_BYTES = 24


def _column() -> "array[int]":
    return array("q")


@dataclass(slots=True)
class BlockIndex:
    """Rows, column by column. `highest_before` is the highest timestamp of all batches before the
    row's position, -1 for none."""

    base_offsets: "array[int]" = field(default_factory=_column)
    positions: "array[int]" = field(default_factory=_column)
    highest_before: "array[int]" = field(default_factory=_column)

    @classmethod
    def decode(cls, rows: Buffer) -> "BlockIndex":
        """Decode rows. `rows` are whole rows."""
        numbers = array("q")
        numbers.frombytes(rows)
        if sys.byteorder == "little":
            numbers.byteswap()
        return cls(numbers[0::3], numbers[1::3], numbers[2::3])

    def encode(self) -> bytes:
        numbers = array("q", bytes(ROW_BYTES * len(self)))
        numbers[0::3], numbers[1::3] = self.base_offsets, self.positions
        numbers[2::3] = self.highest_before
        if sys.byteorder == "little":
            numbers.byteswap()
        return numbers.tobytes()

    def __len__(self) -> int:
        return len(self.positions)

    def rows(self) -> Iterator[tuple[int, int, int]]:
        """Base offset, position, highest timestamp before."""
        return zip(self.base_offsets, self.positions, self.highest_before, strict=True)

    def mark(self, base_offset: int, position: int, highest_before: int) -> None:
        """A batch that begins there. It gets a row if it is far enough from the last one."""
        if not self.positions or position - self.positions[-1] >= BLOCK_BYTES:
            self.base_offsets.append(base_offset)
            self.positions.append(position)
            self.highest_before.append(highest_before)

    def holds_together(self, *, first: int, end: int, max_timestamp: int) -> bool:
        """There are rows, the first at position `first`, all before position `end`, none with a
        timestamp above `max_timestamp`, and they ascend."""
        return (
            len(self) > 0
            and self.positions[0] == first
            and self.positions[-1] < end
            and self.highest_before[0] == NO_TIMESTAMP
            and self.highest_before[-1] <= max_timestamp
            and all(low < high for low, high in pairwise(self.base_offsets))
            and all(high - low >= BLOCK_BYTES for low, high in pairwise(self.positions))
            and all(low <= high for low, high in pairwise(self.highest_before))
        )

    def position_of(self, offset: int) -> int:
        """Return the position from which to read for the batch that holds `offset`, or the next one
        above it."""
        return self.positions[max(bisect_right(self.base_offsets, offset) - 1, 0)]

    def position_since(self, timestamp_ms: int) -> int:
        """Return the position from which to read for the first batch with at least this timestamp.
        If there is such a batch, it begins before the next row, or after the last."""
        return self.positions[max(bisect_left(self.highest_before, timestamp_ms) - 1, 0)]

    def boundary(self, position: int, end: int) -> int:
        """The first row's position at or after that one; `end`, the batches', if there is none."""
        at = bisect_left(self.positions, position)
        return self.positions[at] if at < len(self) else end
