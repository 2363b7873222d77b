"""The last rows of a search, up to a number and a size.

Invariant: if a row is dropped because of the size, all rows before this row are dropped, too. The
kept rows are therefore the last matches from `begin` on, without a gap.
"""

from collections import deque
from typing import Generic, NamedTuple, Protocol, TypeVar

from bucketlog.log_format.batch import BatchHeader
from bucketlog.log_format.records import RecordSpans


class Row(Protocol):
    """A record as a search keeps it. `size_bytes` counts against `SearchLimits.row_bytes`."""

    @property
    def offset(self) -> int: ...
    @property
    def size_bytes(self) -> int: ...


R = TypeVar("R", bound=Row)
R_co = TypeVar("R_co", bound=Row, covariant=True)


class RecordToRow(Protocol[R_co]):
    """Makes the row of a record. Keeps nothing else of the batch's payload."""

    def __call__(self, batch: BatchHeader, payload: bytes, record: RecordSpans) -> R_co: ...


class RowRoom(NamedTuple):
    """Number and size of the rows that may still be kept."""

    rows: int
    size_bytes: int


class KeptRows(Generic[R]):
    """The last rows that were added. `begin` is the offset after the last row that was dropped
    because of the size, or 0 if no row was."""

    def __init__(self, room: RowRoom) -> None:
        self._room = room
        self.rows: deque[R] = deque()
        self.size_bytes = 0
        self.begin = 0

    def left(self) -> RowRoom:
        return RowRoom(self._room.rows - len(self.rows), self._room.size_bytes - self.size_bytes)

    def add(self, row: R) -> None:
        self.rows.append(row)
        self.size_bytes += row.size_bytes
        while len(self.rows) > self._room.rows:
            self._drop()
        while self.size_bytes > self._room.size_bytes:
            self.begin = self._drop() + 1

    def add_all(self, other: "KeptRows[R]") -> None:
        """Move the rows of `other` to the end of these rows."""
        if other.begin:
            self.clear()
            self.begin = other.begin
        while other.rows:
            self.add(other.rows.popleft())
        other.clear()

    def clear(self) -> None:
        self.rows.clear()
        self.size_bytes = 0

    def _drop(self) -> int:
        row = self.rows.popleft()
        self.size_bytes -= row.size_bytes
        return row.offset
