"""Reading a partition's tier for fetches: whole batches from an offset on, through its objects.

A read takes one step for each object, and looks at the tier anew before each. So after a swap, it
continues from the offset that it has reached. Invariants: only whole batches are answered, in
offset order, none that ends at or before the requested offset. A reader that continues where an
earlier answer ended needs no index, and its batches are read in large requests. If such a part of
an object was dropped from memory before it was used, it is read as it is needed.
"""

from collections.abc import Iterator
from typing import NamedTuple

from bucketlog.log_format.batch import HEADER_LENGTH
from bucketlog.log_format.errors import (
    BucketError,
    CorruptObjectError,
    InvalidDataError,
    ObjectNotFoundError,
)
from bucketlog.log_format.lru import LruCache
from bucketlog.log_format.model import Buffer, TierObject, TopicIdPartition
from bucketlog.metadata.partition_log import PartitionLog, StoredRange
from bucketlog.stateless_broker.fetch.reading import RangeReader
from bucketlog.stateless_broker.fetch.tier_objects import SegmentRow, TierObjects
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.block_index import BLOCK_BYTES
from bucketlog.tiered_storage.partition_segment import HEADER, walk_headers

PARTS_MAX = 1_000
"""Parts of objects of which it is known that they were asked for."""


class TierRead(NamedTuple):
    """Batches of `size` bytes that end before `next_offset`. `is_through`: the next ones are in log
    segments."""

    parts: list[Buffer]
    size: int
    next_offset: int
    is_through: bool


class _TierPosition(NamedTuple):
    """The place where an answer has ended. Batches from the answer's next offset on begin there, or
    in the next object."""

    there: TierObject
    position: int


class _ReadRequest(NamedTuple):
    """The request for a step. `at_least_one`: the first batch is needed whatever its size
    (KIP-74)."""

    offset: int
    max_bytes: int
    at_least_one: bool
    in_order: bool


class _ReadStep(NamedTuple):
    """The result of a step. The next batch begins at `position`. `is_full`: the next batch does not
    fit."""

    parts: list[Buffer]
    size: int
    next_offset: int
    position: int
    is_full: bool = False


class _WholeBatches(NamedTuple):
    """Batches of `size` bytes from `first` on are needed and there. The next one begins at
    `position`. If it is needed, too, but not all there, it lacks `missing` bytes."""

    first: int
    size: int
    next_offset: int
    position: int
    missing: int
    is_full: bool


class TierReader:
    """Reads tiers. If `bytes_ahead` is less than a block, nothing is read ahead; it is at most half
    of what the cache keeps. `places_max` is the number of answers whose end is remembered."""

    def __init__(
        self, reader: RangeReader, objects: TierObjects, *, bytes_ahead: int, places_max: int
    ) -> None:
        self._reader = reader
        self._objects = objects
        bytes_ahead = min(bytes_ahead, reader.cache.history_bytes_max // 2)
        self._bytes_ahead = bytes_ahead if bytes_ahead >= BLOCK_BYTES else 0
        self._places: LruCache[tuple[TopicIdPartition, int], _TierPosition] = LruCache(places_max)
        self._empty: LruCache[tuple[TopicIdPartition, int], int] = LruCache(places_max)
        """For each partition and offset, the end of the tier at which it had no batch from the
        offset on."""
        self._asked: LruCache[StoredRange, bool] = LruCache(PARTS_MAX)

    def holds(self, partition: TopicIdPartition, log: PartitionLog, offset: int) -> bool:
        """Return whether batches at or above `offset` may be in the tier."""
        return (
            offset < log.batches_from
            and log.tier.row_at(offset) < len(log.tier.rows)
            and self._empty.find((partition, offset)) != log.tier.end
        )

    def available_bytes(
        self, partition: TopicIdPartition, log: PartitionLog, offset: int, limit: int
    ) -> int:
        """Return the size of the batches from `offset` on, counted up to `limit`. The result may be
        too large if their position in the object is unknown."""
        if not self.holds(partition, log, offset):
            return 0
        place = self._places.find((partition, offset))
        total = 0
        for row in log.tier.rows[log.tier.row_at(offset) :]:
            total += row.batch_bytes
            if place is not None and place.there == TierObject.of(partition, row):
                total -= place.position - len(HEADER)
            if total >= limit:
                break
        return total

    async def read(
        self,
        partition: TopicIdPartition,
        log: PartitionLog,
        offset: int,
        max_bytes: int,
        *,
        at_least_one: bool,
    ) -> TierRead:
        """Return the batches from the one that holds `offset` (or the next one above it) on, up to
        `max_bytes`. Raises `BucketError`, `CorruptObjectError`, `InvalidDataError` if there is
        nothing to answer."""
        parts: list[Buffer] = []
        size, at = 0, offset
        in_order = self._places.find((partition, offset)) is not None
        while True:
            wish = _ReadRequest(at, max_bytes - size, at_least_one and not size, in_order)
            if wish.max_bytes < HEADER_LENGTH and not wish.at_least_one:
                return TierRead(parts, size, at, False)
            try:
                step = await self._step(partition, log, wish)
            except (BucketError, CorruptObjectError, InvalidDataError):
                if not size:
                    raise
                return TierRead(parts, size, at, False)  # the next fetch is told
            if step is None:
                if not size:
                    self._empty.keep((partition, offset), log.tier.end)
                return TierRead(parts, size, at, True)
            parts += step.parts
            size, at = size + step.size, step.next_offset
            if step.is_full or (size and not in_order):
                return TierRead(parts, size, at, False)

    async def _step(
        self, partition: TopicIdPartition, log: PartitionLog, wish: _ReadRequest
    ) -> _ReadStep | None:
        """Take one step; None at the end of the tier. An object may be gone because something else
        is in its place by now."""
        try:
            return await self._try_step(partition, log, wish)
        except ObjectNotFoundError:
            return await self._try_step(partition, log, wish)

    async def _try_step(
        self, partition: TopicIdPartition, log: PartitionLog, wish: _ReadRequest
    ) -> _ReadStep | None:
        segment = await self._objects.segment_at(partition, log, wish.offset)
        if segment is None:
            return None
        position = await self._position(partition, segment, wish.offset)
        step = await self._read_from(segment, position, wish)
        if step.size:
            self._places.keep(
                (partition, step.next_offset), _TierPosition(segment.there, step.position)
            )
        return step

    async def _position(self, partition: TopicIdPartition, segment: SegmentRow, offset: int) -> int:
        """Return the position from which to read: a batch begins there, and no earlier batch is
        needed."""
        place = self._places.find((partition, offset))
        if place is not None and place.there == segment.there:
            return place.position
        if offset <= segment.row.start:
            return segment.begin
        position = (await self._objects.index(segment)).begin_at(offset)
        return segment.end if position is None else position

    async def _read_from(self, segment: SegmentRow, position: int, wish: _ReadRequest) -> _ReadStep:
        start = position
        length = wish.max_bytes if wish.in_order else wish.max_bytes + BLOCK_BYTES
        while position < segment.end:
            length = min(max(length, BLOCK_BYTES), segment.end - position)
            data = await self._bytes(segment, position, length, in_order=wish.in_order)
            walked = _walk(segment, data, position, wish)
            if walked.size or walked.is_full:
                self._used(segment, start, walked.position)
                first = walked.first - position
                part = memoryview(data)[first : first + walked.size]
                return _ReadStep(
                    [part] if walked.size else [],
                    walked.size,
                    walked.next_offset,
                    walked.position,
                    walked.is_full,
                )
            position, length = walked.position, max(walked.missing, wish.max_bytes)
        self._used(segment, start, segment.end)
        return _ReadStep([], 0, max(segment.row.end, wish.offset), segment.end)

    async def _bytes(
        self, segment: SegmentRow, position: int, length: int, *, in_order: bool
    ) -> Buffer:
        end = position + length
        parts = list(self._parts(segment, position, end))
        if in_order and self._bytes_ahead:
            for part in parts:
                self._ask(part)
            last = parts[-1]
            if end > last.position + last.length // 2 and self._reader.history_is_idle:
                for part in self._following(segment, last):
                    self._ask(part)
        wanted = [_overlap(part, position, end) for part in parts]
        found = await self._reader.read(wanted)
        return found[0] if len(found) == 1 else b"".join(found)

    def _parts(self, segment: SegmentRow, position: int, end: int) -> Iterator[StoredRange]:
        """Return the parts of the object that hold the bytes from `position` to `end`. An object is
        divided evenly into parts of at least `bytes_ahead` and less than twice that, so that all
        readers share the parts."""
        total, begin = segment.row.batch_bytes, segment.begin
        count = max(total // self._bytes_ahead, 1) if self._bytes_ahead else 1
        size = -(-total // count)
        for at in range((position - begin) // size, -(-(end - begin) // size)):
            start = begin + at * size
            yield StoredRange(segment.there, start, min(size, segment.end - start))

    def _following(self, segment: SegmentRow, last: StoredRange) -> Iterator[StoredRange]:
        end = last.position + last.length
        if end < segment.end:
            yield from self._parts(segment, end, end + 1)
        elif segment.following is not None:
            yield from self._parts(segment.following, segment.begin, segment.begin + 1)

    def _ask(self, part: StoredRange) -> None:
        if part not in self._asked:
            self._asked.keep(part, True)
            self._reader.begin(part)

    def _used(self, segment: SegmentRow, start: int, end: int) -> None:
        """Note that a reader has come to `end`, so that the next reader may ask for the parts
        before it."""
        if end > start:
            for part in self._parts(segment, start, end):
                if part.position + part.length <= end:
                    self._asked.forget(part)


def _overlap(part: StoredRange, position: int, end: int) -> StoredRange:
    start = max(part.position, position)
    return StoredRange(part.object, start, min(part.position + part.length, end) - start)


def _walk(segment: SegmentRow, data: Buffer, position: int, wish: _ReadRequest) -> _WholeBatches:
    """Walk through the batches in `data`, which begins at `position`. Raises
    `CorruptObjectError`."""
    key = keys.object_key(segment.there)
    first, size, next_offset, at = position, 0, wish.offset, position
    for placed in walk_headers(key, data, position):
        end = placed.position + placed.length
        if end > segment.end:
            raise CorruptObjectError(key, placed.position, "a batch reaches beyond the last one")
        if placed.next_offset > wish.offset:
            fits = size + placed.length <= wish.max_bytes
            if not fits and (size or not wish.at_least_one):
                return _WholeBatches(first, size, next_offset, at, 0, True)
            if end > position + len(data):
                return _WholeBatches(first, size, next_offset, at, placed.length, False)
            first = first if size else placed.position
            size, next_offset = size + placed.length, placed.next_offset
        at = end
    if at == position:
        raise CorruptObjectError(key, position, "there is no batch")
    return _WholeBatches(first, size, next_offset, at, 0, False)
