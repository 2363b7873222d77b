"""Ranges of objects, to find a range that contains another."""

from bisect import bisect_right, insort

from bucketlog.log_format.model import StoredObject
from bucketlog.metadata.partition_log import StoredRange


class RangeSet:
    """A set of ranges, by object and position."""

    def __init__(self) -> None:
        self._by_object: dict[StoredObject, list[StoredRange]] = {}

    def add(self, stored: StoredRange) -> None:
        """Add a range that is not in the set."""
        insort(self._by_object.setdefault(stored.object, []), stored)

    def remove(self, stored: StoredRange) -> None:
        """Remove a range that is in the set."""
        ranges = self._by_object[stored.object]
        ranges.remove(stored)
        if not ranges:
            del self._by_object[stored.object]

    def covering(self, wanted: StoredRange) -> StoredRange | None:
        """Return a range that contains all of `wanted`; None if there is none."""
        ranges = self._by_object.get(wanted.object, [])
        at = bisect_right(ranges, wanted.position, key=lambda stored: stored.position)
        while at and (candidate := ranges[at - 1]).position + candidate.length > wanted.position:
            if candidate.position + candidate.length >= wanted.position + wanted.length:
                return candidate
            at -= 1
        return None
