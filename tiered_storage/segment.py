"""The segment format: a pure writer and a pure reader (docs/format/segment.md).

Invariants: every byte of an object is covered by a check (the header is constant; a batch by its
own CRC32C plus its row in the footer; the footer by its CRC32C; the trailer by its magic and by
what it points to), and the reader bounds every count by the bytes that are there before it builds
anything. Writing borrows the batches' buffers: nothing is copied.

Numbers are big-endian, as in Kafka's own formats.
"""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from uuid import UUID

from crc32c import crc32c

from bucketlog.log_format.batch import LEADER_EPOCH, BatchHeader, crc_holds, read_header
from bucketlog.log_format.errors import CorruptObjectError, InvalidDataError
from bucketlog.log_format.model import (
    MAX_OFFSET,
    BatchIndex,
    Buffer,
    FactEntry,
    PartitionIndex,
    SegmentId,
    SegmentIndex,
    Ticket,
    TopicId,
    TopicIdPartition,
    WriterId,
)

FORMAT_VERSION = 1
HEADER = b"bktlog\x00\x01" + bytes(8)
TRAILER_MAGIC = b"bktlogft"
SEAL_MAGIC = b"bktlogsl"
SEAL_LENGTH = 64
"""A seal has exactly this length and a segment is always longer: a listing tells them apart."""

_FOOTER_HEAD = struct.Struct(">HHQQQ16sQqIIII")
_PARTITION = struct.Struct(">IiIq")
_BATCH = struct.Struct(">qQIIIqqhhi")
_CONTROL = struct.Struct(">HHI")
_TRAILER = struct.Struct(">II8s")
_SEAL = struct.Struct(">8sHHQQ16sq8xI")

TRAILER_LENGTH = _TRAILER.size
_NUMBER_MAX = 2**62
"""The limit of tickets and seqs: checkpoints have 63 bits for them."""
MIN_SEGMENT_LENGTH = len(HEADER) + _FOOTER_HEAD.size + TRAILER_LENGTH


def batch_row(header: BatchHeader, base_offset: int, position: int, length: int) -> BatchIndex:
    """Return the row of a batch at `position`. The row has the header's values without the offset,
    which the batch may not have yet."""
    return BatchIndex(
        base_offset,
        position,
        length,
        header.record_count,
        header.last_offset_delta,
        header.max_timestamp,
        header.producer_id,
        header.producer_epoch,
        header.attributes,
        header.base_sequence,
    )


@dataclass(frozen=True, slots=True)
class Seal:
    """The content of a seal, for people and `segment inspect`. Only its presence has meaning."""

    segment: SegmentId
    sealed_by_epoch: int
    created_ms: int


def is_seal(object_size_bytes: int) -> bool:
    return object_size_bytes == SEAL_LENGTH


def encode_seal(seal: Seal) -> bytes:
    body = _SEAL.pack(
        SEAL_MAGIC,
        FORMAT_VERSION,
        0,
        seal.sealed_by_epoch,
        seal.segment.seq,
        UUID(hex=seal.segment.writer).bytes,
        seal.created_ms,
        0,
    )
    return body[:-4] + struct.pack(">I", crc32c(body[:-4]))


def decode_seal(key: str, data: Buffer) -> Seal:
    if len(data) != SEAL_LENGTH:
        raise CorruptObjectError(key, 0, f"a seal has {SEAL_LENGTH} bytes, not {len(data)}")
    magic, version, _, epoch, seq, writer, created, crc = _SEAL.unpack(data)
    if magic != SEAL_MAGIC or version != FORMAT_VERSION or any(data[52:60]):
        raise CorruptObjectError(key, 0, "not a seal of a known version")
    if crc != crc32c(memoryview(data)[: SEAL_LENGTH - 4]):
        raise CorruptObjectError(key, 0, "the seal's checksum does not hold")
    return Seal(SegmentId(WriterId(UUID(bytes=writer).hex), seq), epoch, created)


def encode_footer(index: SegmentIndex) -> bytes:
    """Footer and trailer, to follow the batches that `index` places."""
    topics = sorted({part.partition.topic_id for part in index.partitions})
    topic_rows = {topic: row for row, topic in enumerate(topics)}
    batch_count = sum(len(part.batches) for part in index.partitions)
    pieces = [
        _FOOTER_HEAD.pack(
            FORMAT_VERSION,
            0,
            index.ticket.epoch,
            index.ticket.number,
            index.low_ticket,
            UUID(hex=index.segment.writer).bytes,
            index.segment.seq,
            index.created_ms,
            len(topics),
            len(index.partitions),
            batch_count,
            len(index.facts),
        ),
        *topics,
    ]
    pieces += [
        _PARTITION.pack(
            topic_rows[part.partition.topic_id],
            part.partition.partition,
            len(part.batches),
            part.hw_stamp,
        )
        for part in index.partitions
    ]
    pieces += [_BATCH.pack(*row) for part in index.partitions for row in part.batches]
    for entry in index.facts:
        pieces.append(_CONTROL.pack(entry.kind, entry.version, len(entry.payload)))
        pieces.append(entry.payload)
    body = b"".join(pieces)
    return body + _TRAILER.pack(len(body), crc32c(body), TRAILER_MAGIC)


def body_crc32c(parts: Sequence[Buffer]) -> int:
    """The checksum of a whole object, given in parts, for the store to verify."""
    crc = 0
    for part in parts:
        crc = crc32c(part, crc)
    return crc


def decode_footer(key: str, tail: Buffer, object_size_bytes: int) -> SegmentIndex | int:
    """Return the index, from the object's last bytes.

    `tail` is any suffix of the object. If it is too short, the result is the length that is needed.
    Raises `CorruptObjectError`.
    """
    size = object_size_bytes
    if size < MIN_SEGMENT_LENGTH:
        raise CorruptObjectError(key, 0, f"{size} bytes are too few for a segment")
    if len(tail) < TRAILER_LENGTH:
        return min(size, MIN_SEGMENT_LENGTH)
    length, crc, magic = _TRAILER.unpack_from(tail, len(tail) - TRAILER_LENGTH)
    if magic != TRAILER_MAGIC:
        raise CorruptObjectError(key, size - 8, "the trailer's magic is missing")
    needed = length + TRAILER_LENGTH
    if length < _FOOTER_HEAD.size or needed + len(HEADER) > size:
        raise CorruptObjectError(
            key, size - TRAILER_LENGTH, f"footer length {length} is impossible"
        )
    if len(tail) < needed:
        return int(needed)
    start = size - needed
    body = memoryview(tail)[len(tail) - needed : len(tail) - TRAILER_LENGTH]
    if crc32c(body) != crc:
        raise CorruptObjectError(key, start, "the footer's checksum does not hold")
    return _decode_body(key, body, start)


def _decode_body(key: str, body: memoryview, start: int) -> SegmentIndex:
    """Decode the footer. `start` is its position in the object: batches end there."""
    (
        version,
        _,
        epoch,
        ticket,
        low_ticket,
        writer,
        seq,
        created_ms,
        topic_count,
        partition_count,
        batch_count,
        control_count,
    ) = _FOOTER_HEAD.unpack_from(body)
    if version != FORMAT_VERSION:
        raise CorruptObjectError(
            key, start, f"footer version {version}", remedy="upgrade bucketlog to read it"
        )
    if max(epoch, ticket, low_ticket, seq) > _NUMBER_MAX:
        raise CorruptObjectError(key, start, "an epoch, ticket or seq is impossible")
    partitions_at = _FOOTER_HEAD.size + 16 * topic_count
    batches_at = partitions_at + _PARTITION.size * partition_count
    control_at = batches_at + _BATCH.size * batch_count
    if control_at + _CONTROL.size * control_count > len(body):
        raise CorruptObjectError(key, start, "the footer's counts do not fit its length")
    topics = [
        TopicId(bytes(body[at : at + 16])) for at in range(_FOOTER_HEAD.size, partitions_at, 16)
    ]
    batches = map(BatchIndex._make, _BATCH.iter_unpack(body[batches_at:control_at]))
    partitions = _decode_partitions(
        key, topics, _PARTITION.iter_unpack(body[partitions_at:batches_at]), batches, start
    )
    if sum(len(part.batches) for part in partitions) != batch_count:
        raise CorruptObjectError(key, start, "batch rows and partition rows do not agree")
    return SegmentIndex(
        segment=SegmentId(WriterId(UUID(bytes=writer).hex), seq),
        ticket=Ticket(epoch, ticket),
        low_ticket=low_ticket,
        created_ms=created_ms,
        partitions=tuple(partitions),
        facts=_decode_control(key, body, control_at, control_count, start),
    )


def _decode_partitions(
    key: str,
    topics: Sequence[TopicId],
    rows: Iterator[tuple[int, ...]],
    batches: Iterator[BatchIndex],
    end: int,
) -> list[PartitionIndex]:
    partitions = []
    position = len(HEADER)
    before = (-1, 0)
    for topic, partition, count, hw_stamp in rows:
        if topic >= len(topics):
            raise CorruptObjectError(key, end, f"partition row names topic row {topic}")
        if (topic, partition) <= before:
            raise CorruptObjectError(key, end, "partition rows are not sorted")
        before = (topic, partition)
        mine = []
        for batch in islice(batches, count):
            if batch.position != position or position + batch.length > end:
                raise CorruptObjectError(key, position, "batches do not follow one another")
            if batch.base_offset < 0 or batch.next_offset > MAX_OFFSET + 1:
                raise CorruptObjectError(
                    key, position, f"offsets from {batch.base_offset} end past {MAX_OFFSET}"
                )
            position += batch.length
            mine.append(batch)
        if len(mine) != count:
            raise CorruptObjectError(key, end, "batch rows and partition rows do not agree")
        partitions.append(
            PartitionIndex(TopicIdPartition(topics[topic], partition), hw_stamp, tuple(mine))
        )
    if position != end:
        raise CorruptObjectError(key, position, "bytes between the last batch and the footer")
    return partitions


def _decode_control(
    key: str, body: memoryview, at: int, count: int, start: int
) -> tuple[FactEntry, ...]:
    entries = []
    for _ in range(count):
        if at + _CONTROL.size > len(body):
            raise CorruptObjectError(key, start + at, "a control entry is cut short")
        kind, version, length = _CONTROL.unpack_from(body, at)
        at += _CONTROL.size
        if at + length > len(body):
            raise CorruptObjectError(key, start + at, "a control entry is cut short")
        entries.append(FactEntry(kind, version, bytes(body[at : at + length])))
        at += length
    if at != len(body):
        raise CorruptObjectError(key, start + at, "bytes after the last control entry")
    return tuple(entries)


def check_batch(key: str, batch: Buffer, row: BatchIndex) -> None:
    """Compare a stored batch with its row in the footer; raises `CorruptObjectError`.

    `batch` has exactly `row.length` bytes. Nothing is decompressed.
    """
    try:
        header = read_header(batch)
    except InvalidDataError as error:
        raise CorruptObjectError(key, row.position, error.message) from error
    if header.size_bytes != row.length or len(batch) != row.length:
        raise CorruptObjectError(key, row.position, f"batch length {header.size_bytes}")
    if header.base_offset != row.base_offset or header.leader_epoch != LEADER_EPOCH:
        raise CorruptObjectError(
            key, row.position, f"base offset {header.base_offset}, the footer has {row.base_offset}"
        )
    if not crc_holds(batch, header):
        raise CorruptObjectError(
            key, row.position, f"the CRC of the batch at offset {row.base_offset} does not hold"
        )
    if batch_row(header, row.base_offset, row.position, row.length) != row:
        raise CorruptObjectError(
            key, row.position, f"the batch at offset {row.base_offset} differs from its footer row"
        )


def check_segment(key: str, data: Buffer) -> SegmentIndex:
    """Check every byte of a whole segment object; returns its index."""
    if bytes(memoryview(data)[: len(HEADER)]) != HEADER:
        raise CorruptObjectError(key, 0, "the header is not a segment's")
    index = decode_footer(key, data, len(data))
    if isinstance(index, int):
        raise CorruptObjectError(key, 0, f"{len(data)} bytes, {index} are needed")
    view = memoryview(data)
    for part in index.partitions:
        for row in part.batches:
            check_batch(key, view[row.position : row.position + row.length], row)
    return index
