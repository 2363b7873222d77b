"""Footers of committed segments that this broker has seen. It need not list and read them again
when it begins with the log anew, in a new epoch or because its view fell behind.

Invariant: only footers of committed segments and ends of sealed chains are learnt. The content of a
key never changes, and everything below it is committed, too. Footers are forgotten when a
checkpoint covers them. When they have more than `batches_max` batches together, the oldest are
forgotten, and are read if they are needed.
"""

from collections.abc import Iterable

from bucketlog.log_format.model import SegmentId, SegmentIndex, Ticket, WriterId


class KnownSegments:
    def __init__(self, *, batches_max: int) -> None:
        self._batches_max = batches_max
        self._batches = 0
        self._indexes: dict[SegmentId, SegmentIndex] = {}
        """Indexes by segment, the oldest first."""
        self._sealed: dict[WriterId, int] = {}
        """The end of each sealed chain."""

    def learn(self, index: SegmentIndex) -> None:
        if index.segment in self._indexes:
            return
        self._indexes[index.segment] = index
        self._batches += _weight(index)
        while self._batches > self._batches_max:
            self._forget(next(iter(self._indexes)))

    @property
    def is_empty(self) -> bool:
        return not self._indexes

    def index(self, segment: SegmentId) -> SegmentIndex | None:
        """Return the index of a segment; None if it must be read from the bucket."""
        return self._indexes.get(segment)

    def following(self, writer: WriterId, start: int) -> list[SegmentIndex]:
        """Return the known segments from seq `start` up to the first unknown one."""
        found = []
        while (index := self._indexes.get(SegmentId(writer, start))) is not None:
            found.append(index)
            start += 1
        return found

    def note_seal(self, writer: WriterId, end: int) -> None:
        self._sealed[writer] = end

    def sealed_at(self, writer: WriterId) -> int | None:
        """Return the seq of the seal; None if the chain may have grown."""
        return self._sealed.get(writer)

    def forget_seals_but(self, writers: Iterable[WriterId]) -> None:
        """Forget the ends of all other chains, because they are covered."""
        self._sealed = {name: self._sealed[name] for name in writers if name in self._sealed}

    def forget_below(self, covered: Ticket) -> None:
        """Forget the segments below this ticket, because a checkpoint covers them."""
        old = [segment for segment, index in self._indexes.items() if index.ticket < covered]
        for segment in old:
            self._forget(segment)

    def _forget(self, segment: SegmentId) -> None:
        self._batches -= _weight(self._indexes.pop(segment))


def _weight(index: SegmentIndex) -> int:
    """Weight of a segment: one, and one for each batch and control entry."""
    return 1 + len(index.facts) + sum(len(part.batches) for part in index.partitions)
