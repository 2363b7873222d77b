"""Reading history ahead of those who catch up.

Whoever fetches what is not recent goes on from there, and asks for a megabyte at a time. What it
will want is read in a few large requests, in the middle of one stretch for the next.

Invariant: a stretch that was asked for is not asked for again while its reader is within it.
"""

from collections import OrderedDict
from typing import NamedTuple

from bucketlog.model import TopicPartition
from metadata.partition_log import PartitionLog, StoredRange
from stateless_broker.fetch.reading import RangeReader

PARTITIONS_MAX = 1_000
"""Of which it is known how far they were asked for."""


class _Asked(NamedTuple):
    """From `middle` on what comes after `end` is asked for."""

    start: int
    middle: int
    end: int


class ReadAhead:
    """`bytes_ahead` 0: nothing is read ahead."""

    def __init__(self, reader: RangeReader, *, bytes_ahead: int) -> None:
        self._reader = reader
        self._cache = reader.cache
        self._bytes_ahead = bytes_ahead
        self._asked: OrderedDict[TopicPartition, _Asked] = OrderedDict()

    def note(
        self,
        partition: TopicPartition,
        log: PartitionLog,
        offset: int,
        wanted: list[StoredRange],
    ) -> None:
        """Somebody is about to read these, from `offset` on."""
        if not self._bytes_ahead or not wanted or self._cache.is_recent(wanted[0].object):
            return
        asked = self._asked.get(partition)
        start = offset
        if asked is not None and asked.start <= offset < asked.end:
            if offset < asked.middle:
                return
            start = asked.end
        stretch = log.stretch(start, self._bytes_ahead)
        self._asked[partition] = _Asked(offset, stretch.middle, stretch.end)
        self._asked.move_to_end(partition)
        if len(self._asked) > PARTITIONS_MAX:
            self._asked.popitem(last=False)
        self._reader.expect(
            [stored for stored in stretch.ranges if not self._cache.is_recent(stored.object)]
        )
