"""Reading history ahead of lagging readers.

A reader of history continues where it is, and asks for a megabyte at a time. What it will want is
read in a few large requests, in the middle of one stretch for the next. A log segment holds a
little of many partitions, so what several lagging readers want of one object is read together.

Invariants: a stretch that was asked for is not asked for again while its reader is within it. All
stretches together fill half of the memory for history at most, so that they are still there when
they are needed.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass

from bucketlog.log_format.model import StoredObject, TopicIdPartition
from bucketlog.metadata.partition_log import PartitionLog, StoredRange
from bucketlog.stateless_broker.fetch.reading import RangeReader

PARTITIONS_MAX = 1_000
"""Number of partitions for which the position of the reader is remembered."""
ACTIVE_S = 30.0
"""Time without a fetch after which a partition's reader no longer counts as catching up."""
SOON_SHARES = 4
"""A read of an object also covers what other readers will want of it within this number of
stretches."""
GAP_BYTES_MAX = 2 * 1024 * 1024
"""Ranges of an object are read together if the unwanted gap between them is at most this large.
This is quicker than another request."""


@dataclass(slots=True)
class _LaggingReader:
    """A partition with a lagging reader. Once the reader has come to `middle`, what comes after
    `end` is asked for."""

    log: PartitionLog
    start: int
    middle: int
    end: int
    noted_s: float


class ReadAhead:
    """Reads ahead. `bytes_ahead` 0, or no memory for history: nothing is read ahead."""

    def __init__(self, reader: RangeReader, *, bytes_ahead: int) -> None:
        self._reader = reader
        self._cache = reader.cache
        self._bytes_ahead = min(bytes_ahead, reader.cache.history_bytes_max)
        self._behind: OrderedDict[TopicIdPartition, _LaggingReader] = OrderedDict()
        """Lagging readers by partition. The partition that was fetched last comes last."""
        self._due: set[TopicIdPartition] = set()

    def note(
        self,
        partition: TopicIdPartition,
        log: PartitionLog,
        offset: int,
        wanted: list[StoredRange],
    ) -> None:
        """Note that a reader is about to read these ranges, from `offset` on. A call of `ask` must
        follow."""
        if not self._bytes_ahead or not wanted:
            return
        if self.is_recent(wanted[0]):
            self._behind.pop(partition, None)
            return
        now_s = asyncio.get_running_loop().time()
        behind = self._behind.get(partition)
        if behind is None or not behind.start <= offset < behind.end:
            behind = self._behind[partition] = _LaggingReader(log, offset, offset, offset, now_s)
        behind.log, behind.noted_s = log, now_s
        self._behind.move_to_end(partition)
        if offset >= behind.middle:
            behind.start = offset
            self._due.add(partition)

    def is_recent(self, stored: StoredRange) -> bool:
        """Return whether the range is of a recent segment; otherwise it is history."""
        return self._cache.is_recent(stored.object)

    def bounded(self, first: StoredRange, max_bytes: int, partitions: int) -> int:
        """Return how much of `max_bytes` a fetch of this number of `partitions` should get of a
        partition that continues with the batch at `first`. A reader of history gets one stretch at
        most, or that batch. So partitions keep step, and what they want of an object is still in
        memory when the last of them reaches it."""
        if not self._bytes_ahead or self.is_recent(first):
            return max_bytes
        share = self._share(max(partitions, len(self._behind)))
        return min(max_bytes, max(share, first.length))

    def _share(self, partitions: int) -> int:
        return min(self._bytes_ahead, self._cache.history_bytes_max // 2 // max(partitions, 1))

    def ask(self) -> None:
        """Ask for what the noted readers need next, and for what other readers need of the same
        objects."""
        if not self._due:
            return
        self._forget_idle()
        due, self._due = self._due, set()
        share = self._share(len(self._behind))
        wanted: list[StoredRange] = []
        for partition, behind in self._behind.items():
            if partition in due:
                wanted += self._advance(behind, share)
        objects = {stored.object for stored in wanted}
        for partition, behind in self._behind.items():
            if partition not in due:
                soon = behind.log.stretch(behind.end, SOON_SHARES * share).ranges
                wanted += [stored for stored in soon if stored.object in objects]
        missing = [
            stored
            for stored in wanted
            if not self.is_recent(stored) and not self._reader.has(stored)
        ]
        self._reader.expect(joined(missing))

    @staticmethod
    def _advance(behind: _LaggingReader, max_bytes: int) -> list[StoredRange]:
        stretch = behind.log.stretch(behind.end, max_bytes)
        behind.middle, behind.end = stretch.middle, stretch.end
        return stretch.ranges

    def _forget_idle(self) -> None:
        since_s = asyncio.get_running_loop().time() - ACTIVE_S
        while self._behind:
            partition, oldest = next(iter(self._behind.items()))
            if oldest.noted_s >= since_s and len(self._behind) <= PARTITIONS_MAX:
                return
            del self._behind[partition]


def joined(ranges: Iterable[StoredRange]) -> list[StoredRange]:
    """Neighbours in one object are one range; objects in the order in which they come first."""
    by_object: dict[StoredObject, list[StoredRange]] = {}
    for stored in ranges:
        by_object.setdefault(stored.object, []).append(stored)
    found: list[StoredRange] = []
    for there, rows in by_object.items():
        rows.sort()
        start, end = rows[0].position, rows[0].position
        for row in rows:
            if row.position > end + GAP_BYTES_MAX:
                found.append(StoredRange(there, start, end - start))
                start = row.position
            end = max(end, row.position + row.length)
        found.append(StoredRange(there, start, end - start))
    return found
