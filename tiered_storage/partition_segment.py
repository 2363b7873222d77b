"""The format of partition segments: a pure writer and a pure reader (docs/format/tier.md).

Invariants: every byte of an object is covered by a check. Header and trailer are constant, except
for the index's length and CRC32C; the batches are covered by the CRC32C in the index, besides their
own. Every count is compared with the bytes that are there before anything is built. An object is
believed only under the key of its partition and start. Writing borrows the buffers: nothing is
copied.
"""

import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from crc32c import crc32c

from bucketlog.log_format.batch import HEADER_LENGTH, LENGTH_OVERHEAD, MAGIC, crc_holds, read_header
from bucketlog.log_format.errors import CorruptObjectError, InvalidDataError
from bucketlog.log_format.model import (
    MAX_OFFSET,
    NO_TIMESTAMP,
    Buffer,
    TierObject,
    TierRow,
    TopicId,
    TopicIdPartition,
)
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.block_index import ROW_BYTES, BlockIndex
from bucketlog.tiered_storage.bucket import Span

FORMAT_VERSION = 1
HEADER = b"bktlogps\x00\x01" + bytes(6)
TRAILER_MAGIC = b"bktlogpt"

_HEAD = struct.Struct(">HH16siqqQQQqII")
_TRAILER = struct.Struct(">II8s")
_WALKED = struct.Struct(">qiibIhi")
"""The first fields of a batch's header: base offset, length, leader epoch, magic, CRC, attributes,
last delta."""

MIN_INDEX_LENGTH = _HEAD.size + ROW_BYTES
MIN_LENGTH = len(HEADER) + HEADER_LENGTH + MIN_INDEX_LENGTH + _TRAILER.size


class PlacedBatch(NamedTuple):
    """A batch and its place: `position` and `length` are bytes of the object."""

    base_offset: int
    next_offset: int
    position: int
    length: int


class PartitionSegmentIndex(NamedTuple):
    """The index of a partition segment. The segment has batches from offset `start` on and before
    `end`. `max_timestamp` is -1 if no batch has one."""

    partition: TopicIdPartition
    start: int
    end: int
    batch_bytes: int
    batches: int
    records: int
    max_timestamp: int
    batches_crc32c: int
    blocks: BlockIndex

    @property
    def batches_end(self) -> int:
        """The first byte after the batches."""
        return len(HEADER) + self.batch_bytes

    def begin_at(self, offset: int) -> int | None:
        """Return the position to read from for the batch that holds `offset`, or the next one above
        it; a batch begins there. None if this object certainly has no such batch."""
        return self.blocks.position_of(offset) if offset < self.end else None

    def begin_since(self, timestamp_ms: int) -> int | None:
        """Return the position to read from for the first batch with at least this timestamp: the
        batch begins before the next block. None if no batch has such a timestamp."""
        if timestamp_ms > self.max_timestamp:
            return None
        return self.blocks.position_since(timestamp_ms)

    def boundary(self, position: int) -> int:
        """The next block's beginning at or after `position`; the batches' end after the last."""
        return self.blocks.boundary(position, self.batches_end)


class FinishedSegment(NamedTuple):
    """An object to create, and the row that will name it. `parts` are borrowed from the writer's
    callers."""

    there: TierObject
    row: TierRow
    parts: list[Buffer]


class PartitionSegmentWriter:
    """Collects the batches of one partition segment in offset order, from `start` on."""

    def __init__(self, partition: TopicIdPartition, start: int) -> None:
        self._partition = partition
        self._start = start
        self._next_offset = start
        self._parts: list[Buffer] = []
        self._crc = 0
        self._batches = 0
        self._records = 0
        self._max_timestamp = NO_TIMESTAMP
        self._size = 0
        self._blocks = BlockIndex()

    @property
    def batch_bytes(self) -> int:
        return self._size

    @property
    def next_offset(self) -> int:
        """The first offset that may still come."""
        return self._next_offset

    def describe(
        self, base_offset: int, next_offset: int, length: int, records: int, max_timestamp: int
    ) -> None:
        """Add the row of a batch that follows, with this many records (a control batch: 0). Its
        bytes come by `append`, alone or with its neighbours'. Raises `InvalidDataError` if it is
        not above those before."""
        self._advance(base_offset, next_offset)
        self._blocks.mark(base_offset, len(HEADER) + self._size, self._max_timestamp)
        self._size += length
        self._batches += 1
        self._records += records
        self._max_timestamp = max(self._max_timestamp, max_timestamp)

    def append(self, batches: Buffer) -> None:
        """The bytes of one or more whole batches, borrowed."""
        self._parts.append(batches)
        self._crc = crc32c(batches, self._crc)

    def append_segment(
        self, key: str, index: PartitionSegmentIndex, batches: Sequence[Buffer]
    ) -> None:
        """Append all batches of another partition segment, which is `key`. Batches are not looked
        at one by one: their CRC32C must be right. Raises `CorruptObjectError`, and
        `InvalidDataError` if they are of another partition or not above those before."""
        crc = 0
        for part in batches:
            crc = crc32c(part, crc)
        if crc != index.batches_crc32c or sum(map(len, batches)) != index.batch_bytes:
            raise CorruptObjectError(key, len(HEADER), "the checksum of its batches does not hold")
        if index.partition != self._partition:
            raise InvalidDataError(f"{key!r} does not belong to {self._partition}")
        self._advance(index.start, index.end)
        highest = self._max_timestamp
        for base_offset, position, before in index.blocks.rows():
            self._blocks.mark(base_offset, self._size + position, max(highest, before))
        self._size += index.batch_bytes
        self._batches += index.batches
        self._records += index.records
        self._max_timestamp = max(highest, index.max_timestamp)
        for part in batches:
            self.append(part)

    def _advance(self, base_offset: int, next_offset: int) -> None:
        if not self._next_offset <= base_offset < next_offset:
            raise InvalidDataError(
                f"offsets {base_offset} to {next_offset} of {self._partition} come after "
                f"{self._next_offset}"
            )
        self._next_offset = next_offset

    def finish(self, end: int, name: str, written_ms: int) -> FinishedSegment:
        """Return the object, with offsets before `end`. Its row has `written_ms` as highest
        timestamp if no batch has any. Raises `InvalidDataError`. Call nothing afterwards."""
        if not self._batches or end < self._next_offset or sum(map(len, self._parts)) != self._size:
            raise InvalidDataError(
                f"{self._batches} batches of {self._size} bytes and up to offset "
                f"{self._next_offset} are not a partition segment that ends at {end}"
            )
        highest = self._max_timestamp
        index = encode_index(
            PartitionSegmentIndex(
                self._partition,
                self._start,
                end,
                self._size,
                self._batches,
                self._records,
                highest,
                self._crc,
                self._blocks,
            )
        )
        size = len(HEADER) + self._size + len(index)
        timestamp = written_ms if highest == NO_TIMESTAMP else highest
        return FinishedSegment(
            TierObject(self._partition, self._start, name),
            TierRow(self._start, end, name, False, size, self._size, timestamp),
            [HEADER, *self._parts, index],
        )


def encode_index(index: PartitionSegmentIndex) -> bytes:
    """Index and trailer, to follow the batches."""
    head = _HEAD.pack(
        FORMAT_VERSION,
        0,
        index.partition.topic_id,
        index.partition.partition,
        index.start,
        index.end,
        index.batch_bytes,
        index.batches,
        index.records,
        index.max_timestamp,
        len(index.blocks),
        index.batches_crc32c,
    )
    body = head + index.blocks.encode()
    return body + _TRAILER.pack(len(body), crc32c(body), TRAILER_MAGIC)


def index_span(row: TierRow) -> Span:
    """Return the span of index and trailer in the object that `row` names."""
    start = len(HEADER) + row.batch_bytes
    return Span(start, max(row.size_bytes - start, _TRAILER.size))


def decode_index(there: TierObject, tail: Buffer, object_size_bytes: int) -> PartitionSegmentIndex:
    """The index, from the object's last bytes: those of `index_span`, or more.

    Raises `CorruptObjectError`, and `InvalidDataError` for a version that is not known.
    """
    key, size = keys.tier_object(there), object_size_bytes
    if size < MIN_LENGTH:
        raise CorruptObjectError(key, 0, f"{size} bytes are too few for a partition segment")
    if len(tail) < _TRAILER.size:
        raise CorruptObjectError(key, size - len(tail), "its trailer is cut short")
    length, crc, magic = _TRAILER.unpack_from(tail, len(tail) - _TRAILER.size)
    if magic != TRAILER_MAGIC:
        raise CorruptObjectError(key, size - 8, "the trailer's magic is missing")
    needed = length + _TRAILER.size
    if length < MIN_INDEX_LENGTH or needed + len(HEADER) + HEADER_LENGTH > size:
        raise CorruptObjectError(key, size - _TRAILER.size, f"index length {length} is impossible")
    if len(tail) < needed:
        raise CorruptObjectError(
            key, size - len(tail), f"its index has {length} bytes, which are not all there"
        )
    body = memoryview(tail)[len(tail) - needed : len(tail) - _TRAILER.size]
    if crc32c(body) != crc:
        raise CorruptObjectError(key, size - needed, "the checksum of its index does not hold")
    return _decode_body(key, there, body, size - needed)


def _decode_body(key: str, there: TierObject, body: memoryview, at: int) -> PartitionSegmentIndex:
    """Decode the index. `at` is its position in the object: batches end there."""
    (
        version,
        flags,
        topic_id,
        partition,
        start,
        end,
        batch_bytes,
        batches,
        records,
        max_timestamp,
        row_count,
        crc,
    ) = _HEAD.unpack_from(body)
    if version != FORMAT_VERSION or flags:
        raise InvalidDataError(
            f"{key!r} is a partition segment of version {version}",
            remedy="a newer bucketlog wrote it: upgrade this one",
        )
    if (TopicIdPartition(TopicId(topic_id), partition), start) != (there.partition, there.start):
        raise CorruptObjectError(key, at, "it is another partition's, or begins elsewhere")
    if len(body) != _HEAD.size + ROW_BYTES * row_count:
        raise CorruptObjectError(key, at, f"{row_count} rows do not fit {len(body)} bytes")
    blocks = BlockIndex.decode(body[_HEAD.size :])
    if len(HEADER) + batch_bytes != at or not row_count <= batches <= batch_bytes // HEADER_LENGTH:
        raise CorruptObjectError(
            key, at, f"{batches} batches of {batch_bytes} bytes are not before it"
        )
    if not (
        blocks.holds_together(first=len(HEADER), end=at, max_timestamp=max_timestamp)
        and start <= blocks.base_offsets[0]
        and blocks.base_offsets[-1] < end <= MAX_OFFSET + 1
    ):
        raise CorruptObjectError(key, at, "its rows do not agree with one another")
    return PartitionSegmentIndex(
        there.partition, start, end, batch_bytes, batches, records, max_timestamp, crc, blocks
    )


def walk_batches(key: str, data: Buffer, position: int) -> Iterator[PlacedBatch]:
    """Return the batches in `data`, whose first byte is at `position` of the object and begins a
    batch. A batch that is cut off at the end of `data` is left out. No CRC is checked. Raises
    `CorruptObjectError` if the bytes are not a batch."""
    end = position + len(data)
    for placed in walk_headers(key, data, position):
        if placed.position + placed.length <= end:
            yield placed


def walk_headers(key: str, data: Buffer, position: int) -> Iterator[PlacedBatch]:
    """Return the batches as `walk_batches` does. The last one may be cut off; its length shows
    this."""
    at, expected, available = 0, 0, len(data)
    while available - at >= _WALKED.size:
        base_offset, length, _, magic, _, _, delta = _WALKED.unpack_from(data, at)
        length += LENGTH_OVERHEAD
        if magic != MAGIC or length < HEADER_LENGTH or base_offset < expected or delta < 0:
            raise CorruptObjectError(key, position + at, "there is no batch")
        expected = base_offset + delta + 1
        yield PlacedBatch(base_offset, expected, position + at, length)
        at += length


def check_partition_segment(there: TierObject, data: Buffer) -> PartitionSegmentIndex:
    """Check every byte of a whole object; returns its index. Nothing is decompressed. Raises as
    `decode_index`."""
    key = keys.tier_object(there)
    view = memoryview(data)
    if bytes(view[: len(HEADER)]) != HEADER:
        raise CorruptObjectError(key, 0, "the header is not a partition segment's")
    index = decode_index(there, data, len(data))
    batches = view[len(HEADER) : len(HEADER) + index.batch_bytes]
    rows = iter([*index.blocks.rows(), None])
    row = next(rows)
    position, count, records, highest = len(HEADER), 0, 0, NO_TIMESTAMP
    expected = index.start
    for placed in walk_batches(key, batches, position):
        start = placed.position - len(HEADER)
        batch = batches[start : start + placed.length]
        header = read_header(batch)
        if not expected <= placed.base_offset < placed.next_offset <= index.end:
            raise CorruptObjectError(key, position, f"offset {placed.base_offset} is out of place")
        if not crc_holds(batch, header):
            raise CorruptObjectError(
                key, position, f"the CRC of the batch at offset {placed.base_offset} does not hold"
            )
        if row is not None and row[1] <= position:
            if row != (placed.base_offset, position, highest):
                raise CorruptObjectError(key, position, "its index has another batch there")
            row = next(rows)
        position, expected = position + placed.length, placed.next_offset
        count, records = count + 1, records + (0 if header.is_control else header.record_count)
        highest = max(highest, header.max_timestamp)
    if (position, count, records, highest, row) != (
        len(HEADER) + index.batch_bytes,
        index.batches,
        index.records,
        index.max_timestamp,
        None,
    ):
        raise CorruptObjectError(key, position, "its batches do not agree with its index")
    if crc32c(batches) != index.batches_crc32c:
        raise CorruptObjectError(key, len(HEADER), "the checksum of its batches does not hold")
    return index
