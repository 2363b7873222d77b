"""Batches of a partition as columns, for tests of plans; some count what is read of them."""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar, overload

from bucketlog.log_format.model import SegmentId, WaitingSegment, WriterId
from bucketlog.log_format.transactions import PartitionTransactions

T = TypeVar("T")
NOW_MS = 1_000_000


def waiting(number: int, size: int, age: int) -> WaitingSegment:
    return WaitingSegment(SegmentId(WriterId("a" * 32), number), size, NOW_MS - age)


@dataclass
class End:
    end: int


@dataclass
class Columns:
    """`LogBatches` of (base, next, length, number of the segment). Open transactions keep the last
    stable offset at `stable_end`."""

    tier: End
    rows: Sequence[tuple[int, int, int, int]]
    stable_end: int | None = None
    transactions: PartitionTransactions = field(default_factory=PartitionTransactions)

    @property
    def last_stable_offset(self) -> int:
        if self.stable_end is not None:
            return self.stable_end
        return self.rows[-1][1] if self.rows else self.tier.end

    @property
    def batches_from(self) -> int:
        return self.tier.end + 1

    @property
    def next_offsets(self) -> "array[int]":
        return array("q", [row[1] for row in self.rows])

    @property
    def lengths(self) -> "array[int]":
        return array("q", [row[2] for row in self.rows])

    @property
    def segments(self) -> list[SegmentId]:
        return [waiting(row[3], 0, 0).segment for row in self.rows]


class CountedColumns:
    """Columns that count what is asked of them."""

    def __init__(self, log: Columns) -> None:
        self.tier = log.tier
        self.batches_from = log.batches_from
        self.last_stable_offset = log.last_stable_offset
        self.transactions = log.transactions
        self.seen = 0
        self.next_offsets = _Column(self, log.next_offsets)
        self.lengths = _Column(self, log.lengths)
        self.segments = _Column(self, log.segments)


class _Column(Sequence[T]):
    def __init__(self, counted: CountedColumns, values: Sequence[T]) -> None:
        self._counted = counted
        self._values = values

    def __len__(self) -> int:
        return len(self._values)

    @overload
    def __getitem__(self, at: int) -> T: ...

    @overload
    def __getitem__(self, at: slice) -> Sequence[T]: ...

    def __getitem__(self, at: int | slice) -> T | Sequence[T]:
        self._counted.seen += 1 if isinstance(at, int) else len(self._values[at])
        return self._values[at]
