"""Record batches with fewer records: the header and record bytes of what key compaction writes.

Invariant: a rewritten batch spans the offsets that it did (base offset, last offset delta), keeps
its producer's id, epoch and base sequence, its codec and timestamp type; records that stay keep
offset, timestamp and every byte but those that say how long they are and how far their timestamp
is from the batch's base. Source: Kafka's MemoryRecords.filterTo, MemoryRecordsBuilder and
DefaultRecordBatch ("On Compaction"); KIP-534 (delete horizon: the base timestamp, where attribute
bit 6 is set).
"""

import struct
from collections.abc import Sequence

from crc32c import crc32c

from bucketlog.log_format.batch import (
    CODEC_MASK,
    CRC_START,
    DELETE_HORIZON,
    HEADER_LENGTH,
    LENGTH_OVERHEAD,
    LOG_APPEND_TIME,
    OF_TRANSACTION,
    SEALED,
    BatchHeader,
)
from bucketlog.log_format.compression import compress
from bucketlog.log_format.model import NO_TIMESTAMP, Buffer
from bucketlog.log_format.records import put_varint, read_varint, read_varlong

_PREFIX = struct.Struct(">qiibI")
_COVERED = struct.Struct(">hiqqqhii")
_MIN_INT64, _MAX_INT64 = -(2**63), 2**63 - 1


def delete_horizon(header: BatchHeader) -> int | None:
    """From when on the batch's tombstones, or its marker, may go; None: no cleaning has set it."""
    return header.base_timestamp if header.attributes & DELETE_HORIZON else None


def rewritten_batch(
    header: BatchHeader,
    payload: Buffer,
    *,
    record_count: int,
    max_timestamp: int,
    horizon: int | None,
) -> bytes:
    """The batch of `header` with other records: `payload`, not yet compressed.

    `max_timestamp` is that of the records; a LogAppendTime batch keeps its own. `horizon`, if it is
    given, becomes the base timestamp (to which the records' deltas must fit already).
    """
    attributes, base_timestamp = header.attributes, header.base_timestamp
    if horizon is not None:
        attributes, base_timestamp = attributes | DELETE_HORIZON, horizon
    if attributes & LOG_APPEND_TIME:
        max_timestamp = header.max_timestamp
    changed = header._replace(
        attributes=attributes,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        record_count=record_count,
    )
    return bytes(with_payload(changed, compress(header.codec, payload)))


def recompressed_batch(
    header: BatchHeader, payload: Buffer, codec: int, *, level: int | None = None
) -> bytearray:
    """The batch of `header` with another codec; `payload` has its records, not compressed. Levels
    are those of `compress`."""
    attributes = header.attributes & ~CODEC_MASK | codec
    return with_payload(header._replace(attributes=attributes), compress(codec, payload, level))


def empty_batch(header: BatchHeader) -> bytes:
    """The batch without records: its offsets, its producer and its highest timestamp remain
    (DefaultRecordBatch.writeEmptyHeader)."""
    empty = header._replace(
        attributes=header.attributes & ~(CODEC_MASK | DELETE_HORIZON | SEALED),
        base_timestamp=NO_TIMESTAMP,
        record_count=0,
    )
    return bytes(with_payload(empty, b""))


def left_out_batch(header: BatchHeader) -> bytes:
    """As `empty_batch`, in the place of a batch of an aborted transaction or of a marker. It is a
    plain batch, because kafka-python 3.0 fails at a control batch without records."""
    plain = header.attributes & ~OF_TRANSACTION
    return empty_batch(header._replace(attributes=plain))


def with_payload(header: BatchHeader, *payload: Buffer) -> bytearray:
    """The batch of `header` with the parts of `payload` after the header."""
    batch = bytearray(header_before(header, *payload))
    for part in payload:
        batch += part
    return batch


def header_before(header: BatchHeader, *payload: Buffer) -> bytes:
    """The bytes of `header` with the length and the CRC of a batch with that payload."""
    covered = covered_bytes(header)
    crc, length = crc32c(covered), HEADER_LENGTH - LENGTH_OVERHEAD
    for part in payload:
        crc, length = crc32c(part, crc), length + len(part)
    prefix = _PREFIX.pack(header.base_offset, length, header.leader_epoch, header.magic, crc)
    assert len(prefix) == CRC_START
    return prefix + covered


def covered_bytes(header: BatchHeader) -> bytes:
    """The part of the header that the CRC covers."""
    return _COVERED.pack(
        header.attributes,
        header.last_offset_delta,
        header.base_timestamp,
        header.max_timestamp,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        header.record_count,
    )


def timestamp_shift(header: BatchHeader, horizon: int) -> int | None:
    """What to add to the timestamp deltas when `horizon` becomes the base; None: no 64 bits."""
    shift = header.base_timestamp - horizon
    return shift if _MIN_INT64 <= shift <= _MAX_INT64 else None


def copy_records(raw: bytes, keep: Sequence[bool], shift: int = 0) -> bytes | None:
    """The records that `keep` marks, of records that `decode_payload` accepts, `shift` added to
    their timestamp deltas. None where a delta would not fit 64 bits."""
    out = bytearray()
    at = 0
    for stays in keep:
        start = at
        length, at = read_varint(raw, at, len(raw))
        end = at + length
        if stays and not shift:
            out += raw[start:end]
        elif stays:
            delta, rest = read_varlong(raw, at + 1, end)
            if not _MIN_INT64 <= delta + shift <= _MAX_INT64:
                return None
            body = bytearray(raw[at : at + 1])
            put_varint(body, delta + shift)
            put_varint(out, len(body) + end - rest)
            out += body
            out += raw[rest:end]
        at = end
    return bytes(out)
