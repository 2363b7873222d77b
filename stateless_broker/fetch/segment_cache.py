"""Bytes of visible segments and of tiers' objects that this broker has written or read.

Invariants: an object never changes under its key, so nothing that is kept is ever stale. The
*recent* objects, which are the newest segments of all writers, are kept apart from history: reading
history never drives out what everybody at the tail reads. Each part holds no more than its bytes.
"""

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple

from bucketlog.log_format.lru import LruCache
from bucketlog.log_format.model import Buffer, SegmentId, StoredObject
from bucketlog.metadata.partition_log import StoredRange
from bucketlog.stateless_broker.fetch.range_set import RangeSet

WASTE_FACTOR_MAX = 2
"""Recent segments take at most this many times their size in memory."""


class _CachedObject(NamedTuple):
    """An object. `size_bytes` is its size. `parts` are its bytes in memory, and `positions` where
    each part begins."""

    size_bytes: int
    positions: list[int]
    parts: list[Buffer]


class SegmentCache:
    def __init__(self, *, recent_bytes_max: int, history_bytes_max: int) -> None:
        self._recent_bytes_max = recent_bytes_max
        self.history_bytes_max = history_bytes_max
        self._recent: OrderedDict[StoredObject, _CachedObject] = OrderedDict()
        self._places = RangeSet()
        """The ranges in `_history`."""
        self._history: LruCache[StoredRange, Buffer] = LruCache(
            history_bytes_max, on_evicted=self._places.remove
        )
        self.recent_bytes = 0
        """Size of the recent objects, in memory or not."""

    @property
    def history_bytes(self) -> int:
        return self._history.weight

    def became_visible(
        self, segment: SegmentId, size_bytes: int, parts: Sequence[Buffer] = ()
    ) -> None:
        """Note that the segment is the newest. `parts` are all of its bytes if this broker wrote
        it."""
        if segment in self._recent:
            return
        kept = _without_waste(parts)
        positions, at = [], 0
        for part in kept:
            positions.append(at)
            at += len(part)
        self._recent[segment] = _CachedObject(size_bytes, positions, kept)
        self.recent_bytes += size_bytes
        while self.recent_bytes > self._recent_bytes_max:
            _, oldest = self._recent.popitem(last=False)
            self.recent_bytes -= oldest.size_bytes

    def is_recent(self, there: StoredObject) -> bool:
        return there in self._recent

    def size_bytes(self, recent: StoredObject) -> int:
        return self._recent[recent].size_bytes

    def keep(self, stored: StoredRange, data: Buffer) -> None:
        """Keep bytes that were read, as long as there is room. A recent segment is always read as a
        whole."""
        recent = self._recent.get(stored.object)
        if recent is None:
            if stored.length <= self.history_bytes_max:
                self._keep_history(stored, data)
        elif not recent.parts and stored.length == recent.size_bytes:
            recent.positions.append(0)
            recent.parts.append(data)

    def _keep_history(self, stored: StoredRange, data: Buffer) -> None:
        if stored in self._history:
            return
        self._places.add(stored)
        self._history.keep(stored, data, stored.length)

    def find(self, wanted: StoredRange) -> list[Buffer] | None:
        """Return the bytes of a range in parts; None if some of them are not in the cache."""
        recent = self._recent.get(wanted.object)
        if recent is not None:
            return _cut(recent, wanted)
        holder = self._places.covering(wanted)
        if holder is None:
            return None
        data = self._history.find(holder)
        assert data is not None  # places are those of what history keeps
        start = wanted.position - holder.position
        return [memoryview(data)[start : start + wanted.length]]


def _without_waste(parts: Sequence[Buffer]) -> list[Buffer]:
    """The parts. A piece of a request keeps the whole request in memory, so pieces are copied if
    they are less than `1 / WASTE_FACTOR_MAX` of their request."""
    used_bytes: dict[int, int] = {}
    for part in parts:
        if isinstance(part, memoryview):
            used_bytes[id(part.obj)] = used_bytes.get(id(part.obj), 0) + part.nbytes
    return [
        bytes(part)
        if isinstance(part, memoryview)
        and memoryview(part.obj).nbytes > WASTE_FACTOR_MAX * used_bytes[id(part.obj)]
        else part
        for part in parts
    ]


def _cut(recent: _CachedObject, wanted: StoredRange) -> list[Buffer] | None:
    at = bisect_right(recent.positions, wanted.position) - 1
    position, left = wanted.position, wanted.length
    found: list[Buffer] = []
    while left:
        if not 0 <= at < len(recent.parts):
            return None
        start = position - recent.positions[at]
        part = memoryview(recent.parts[at])[start : start + left]
        found.append(part)
        position, left, at = position + len(part), left - len(part), at + 1
        if not part:
            return None
    return found
