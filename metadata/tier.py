"""The tier of a partition: the rows of its objects, and how entries change them. Pure.

Invariants: rows ascend and do not overlap; a swap counts whole or not at all, and only on what it
was planned on; `end` never goes back. A name that has left the tier never comes back to it, since
what a swap replaces must be there. Source: docs/decisions/0008-old-segments.md.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from bucketlog.log_format.model import Ticket, TierObject, TierRow


class Swap(NamedTuple):
    """A change of a tier. A split (`replaced` empty): batches from `start`, the tier's end, to
    `end` are in `added` from now on. A rewriting: `added` hold what neighbouring rows named
    `replaced` held, or what is left of it. `cleaned_to` is the offset that key compaction has
    reached, -1 for other jobs."""

    start: int
    end: int
    replaced: tuple[str, ...]
    added: tuple[TierRow, ...]
    cleaned_to: int = -1


class DroppedObject(NamedTuple):
    """An object that left the tier by an entry of that ticket, to be deleted once nobody reads it.

    `contents`: with a manifest, all segments that it lists, too."""

    ticket: Ticket
    there: TierObject
    contents: bool


@dataclass(slots=True)
class Tier:
    """Batches that end at or before `end` are in `rows`, in log segments no more. The first row
    may begin below the log start."""

    rows: list[TierRow] = field(default_factory=list)
    end: int = 0
    cleaned_to: int = 0

    def swap(self, swap: Swap) -> list[TierRow] | None:
        """Apply a swap. Returns the rows that have left the tier; None if the swap does not
        count."""
        if not _ascend(swap.added, swap.start, swap.end):
            return None
        if not swap.replaced:
            if swap.start != self.end or swap.end <= swap.start:
                return None
            self.rows.extend(swap.added)
            self.end = swap.end
            return []
        at = self._find(swap.replaced)
        gone = self.rows[at : at + len(swap.replaced)] if at is not None else []
        if at is None or swap.start < gone[0].start or swap.end > gone[-1].end:
            return None
        self.rows[at : at + len(gone)] = swap.added
        self.cleaned_to = max(self.cleaned_to, swap.cleaned_to)
        return gone

    def _find(self, names: Sequence[str]) -> int | None:
        for at, row in enumerate(self.rows):
            if row.name == names[0]:
                there = tuple(found.name for found in self.rows[at : at + len(names)])
                return at if there == tuple(names) else None
        return None

    def begin_at(self, log_start: int) -> list[TierRow]:
        """The rows that have left the tier, because they end at or before the log start."""
        count = bisect_right(self.rows, log_start, key=lambda row: row.end)
        gone = self.rows[:count]
        del self.rows[:count]
        return gone

    def row_at(self, offset: int) -> int:
        """Return the place of the row that holds `offset`, or of the next one above it; the number
        of rows if there is none."""
        return bisect_right(self.rows, offset, key=lambda row: row.end)


def _ascend(rows: Sequence[TierRow], start: int, end: int) -> bool:
    for row in rows:
        if not start <= row.start < row.end <= end:
            return False
        start = row.end
    return True
