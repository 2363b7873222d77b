"""Kafka's record batch (magic 2) as the broker sees it: a header to check, opaque records.

Invariant: nothing here touches a byte that a producer's CRC covers, except `set_log_append_time`
and `set_max_timestamp`, which rewrite attributes and max timestamp and recompute the CRC. Offsets
of the header are from the batch's start. Source: Kafka, "Record Batch" in the implementation guide;
KIP-98, KIP-32.

    0 base offset i64 | 8 batch length i32 | 12 partition leader epoch i32 | 16 magic i8
    17 crc u32 | 21 attributes i16 | 23 last offset delta i32 | 27 base timestamp i64
    35 max timestamp i64 | 43 producer id i64 | 51 producer epoch i16 | 53 base sequence i32
    57 record count i32 | 61 records
"""

import struct
from enum import IntEnum
from typing import NamedTuple

from crc32c import crc32c

from bucketlog.log_format.errors import InvalidDataError
from bucketlog.log_format.model import MAX_OFFSET, Buffer

HEADER_LENGTH = 61
LENGTH_OVERHEAD = 12
"""Bytes before the ones that `batch length` counts."""
CRC_START = 21
MIN_RECORD_LENGTH = 7
"""Length, attributes, two deltas, null key, null value, no headers: a byte each."""
MAGIC = 2
LEADER_EPOCH = 0

CODEC_MASK = 0x07
LOG_APPEND_TIME = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20
OF_TRANSACTION = TRANSACTIONAL | CONTROL
"""Batches and markers of transactions."""
DELETE_HORIZON = 0x40
SEALED = 0x4000
"""Bucketlog's own attribute, in the bucket alone: the records are encrypted
(docs/format/segment.md#encrypted-batches). Kafka does not use this bit."""

_HEADER = struct.Struct(">qiibIhiqqqhii")
_STAMP = struct.Struct(">q")
_EPOCH = struct.Struct(">i")
_TIME = struct.Struct(">Ihiqq")
_LENGTH_AND_MAGIC = struct.Struct(">qiib")


class Codec(IntEnum):
    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


def codec_name(codec: int) -> str:
    """As in `compression.type`; "codec N" for a number that no codec has."""
    return next((known.name.lower() for known in Codec if known == codec), f"codec {codec}")


class CorruptBatchError(InvalidDataError):
    """Kafka's CORRUPT_MESSAGE: length, CRC."""

    code = "CORRUPT_MESSAGE"


class UnsupportedMagicError(InvalidDataError):
    """Message sets of magic 0 and 1 (before Kafka 0.11): Kafka's INVALID_RECORD for a Produce of
    version 3 or later (ProduceRequest.validateRecords)."""

    code = "INVALID_RECORD"


class InvalidBatchError(InvalidDataError):
    """Kafka's INVALID_RECORD: the CRC holds, the content makes no sense."""

    code = "INVALID_RECORD"


class RefusedRecord(NamedTuple):
    """A record that causes the rejection of its batch: its index and the reason (KIP-467)."""

    at: int
    reason: str


class KeylessRecordsError(InvalidBatchError):
    """A record of a compacted topic has no key."""

    def __init__(self, message: str, refused: tuple[RefusedRecord, ...]) -> None:
        super().__init__(message)
        self.refused = refused


class BatchTooLargeError(InvalidDataError):
    code = "MESSAGE_TOO_LARGE"


class InvalidTimestampError(InvalidDataError):
    """A producer set LogAppendTime, or a timestamp is out of the topic's range."""

    code = "INVALID_TIMESTAMP"

    def __init__(self, message: str, refused: tuple[RefusedRecord, ...] = ()) -> None:
        super().__init__(message)
        self.refused = refused


class MirroredTopicError(InvalidDataError):
    """A producer writes to a topic that a mirror fills, or a mirror to an ordinary topic."""

    code = "POLICY_VIOLATION"


class UnsupportedCompressionError(InvalidDataError):
    code = "UNSUPPORTED_COMPRESSION_TYPE"


class BatchHeader(NamedTuple):
    base_offset: int
    batch_length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size_bytes(self) -> int:
        return self.batch_length + LENGTH_OVERHEAD

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def codec(self) -> int:
        return self.attributes & CODEC_MASK

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL)

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def is_sealed(self) -> bool:
        return bool(self.attributes & SEALED)


def read_header(data: Buffer, position: int = 0) -> BatchHeader:
    """Decode the header at `position`; bounds, magic and length are checked, the CRC is not."""
    available = len(data) - position
    if available < _LENGTH_AND_MAGIC.size:
        raise CorruptBatchError(f"{available} bytes are too few for a record batch")
    _, length, _, magic = _LENGTH_AND_MAGIC.unpack_from(data, position)
    if not 0 <= magic <= MAGIC:
        raise CorruptBatchError(f"record batch of magic {magic}")
    if magic != MAGIC:
        raise UnsupportedMagicError(
            f"record batch of magic {magic}", remedy="use a client of Kafka 0.11 or newer"
        )
    if length < HEADER_LENGTH - LENGTH_OVERHEAD or length > available - LENGTH_OVERHEAD:
        raise CorruptBatchError(f"batch length {length} does not fit {available} bytes")
    return BatchHeader._make(_HEADER.unpack_from(data, position))


def crc_holds(batch: Buffer, header: BatchHeader) -> bool:
    """`batch` is exactly one batch, from its base offset to its last record."""
    return crc32c(memoryview(batch)[CRC_START : header.size_bytes]) == header.crc


def check_produced(header: BatchHeader, *, max_records: int) -> None:
    """What Kafka's LogValidator checks of a produced batch without opening it.

    `max_records` bounds what a compressed batch may claim (each record takes an offset).
    Raises `InvalidBatchError` (INVALID_RECORD).
    """
    count = header.record_count
    if not 0 < count <= max_records:
        raise InvalidBatchError(f"a produced batch has {count} records, not 1 to {max_records}")
    if header.last_offset_delta != count - 1:
        raise InvalidBatchError(
            f"last offset delta {header.last_offset_delta} and {count} records do not agree"
        )
    if not header.codec and count * MIN_RECORD_LENGTH > header.size_bytes - HEADER_LENGTH:
        raise InvalidBatchError(f"{count} records do not fit {header.size_bytes} bytes")
    if header.is_control:
        raise InvalidBatchError("clients may not write control batches")
    if header.attributes & DELETE_HORIZON:
        raise InvalidBatchError("clients may not set a delete horizon")
    _check_unsealed(header)
    if header.codec > Codec.ZSTD:
        raise InvalidBatchError(f"unknown compression codec {header.codec}")
    if header.producer_id >= 0 and (header.producer_epoch < 0 or header.base_sequence < 0):
        raise InvalidBatchError(
            f"producer id {header.producer_id} with epoch {header.producer_epoch} "
            f"and sequence {header.base_sequence}"
        )
    if header.is_transactional and header.producer_id < 0:
        raise InvalidBatchError("a transactional batch has no producer id")


def _check_unsealed(header: BatchHeader) -> None:
    if header.is_sealed:
        raise InvalidBatchError(
            "clients may not set attribute bit 14: brokers mark batches with it"
        )


def check_mirrored(header: BatchHeader, *, max_records: int) -> None:
    """What a batch of a mirror must be. Offsets may be missing, as after compaction; all may be.
    It is not a batch of a producer or transaction, so it changes no state but the log's end.

    Raises `InvalidBatchError`.
    """
    count, last = header.record_count, header.last_offset_delta
    if not (0 <= count <= max_records and count - 1 <= last and last >= 0):
        raise InvalidBatchError(f"{count} records do not fit a last offset delta of {last}")
    if not 0 <= header.base_offset <= MAX_OFFSET - last:
        raise InvalidBatchError(f"offsets from {header.base_offset} end past {MAX_OFFSET}")
    if not header.codec and count * MIN_RECORD_LENGTH > header.size_bytes - HEADER_LENGTH:
        raise InvalidBatchError(f"{count} records do not fit {header.size_bytes} bytes")
    if not count and header.size_bytes != HEADER_LENGTH:
        raise InvalidBatchError("a batch without records has bytes behind its header")
    _check_unsealed(header)
    if header.attributes & (OF_TRANSACTION | DELETE_HORIZON):
        raise InvalidBatchError(
            "a mirrored batch is of no transaction, is not a marker and has no delete horizon"
        )
    if header.codec > Codec.ZSTD:
        raise InvalidBatchError(f"unknown compression codec {header.codec}")
    if (header.producer_id, header.producer_epoch, header.base_sequence) != (-1, -1, -1):
        raise InvalidBatchError("a mirrored batch has no producer id, epoch and sequence")


def stamp_base_offset(batch: memoryview, base_offset: int) -> None:
    """Give a batch its final offset, in place. The CRC does not cover these bytes."""
    _STAMP.pack_into(batch, 0, base_offset)
    _EPOCH.pack_into(batch, 12, LEADER_EPOCH)


def set_log_append_time(batch: memoryview, header: BatchHeader, now_ms: int) -> BatchHeader:
    """KIP-32 LogAppendTime, in place: the timestamp type bit, the max timestamp, a new CRC."""
    return _set_time(batch, header, header.attributes | LOG_APPEND_TIME, now_ms)


def set_max_timestamp(batch: memoryview, header: BatchHeader, timestamp_ms: int) -> BatchHeader:
    """Set the header's max timestamp, in place. If the value changes, the CRC is recomputed. Kafka
    corrects a producer's wrong value in the same way."""
    if header.max_timestamp == timestamp_ms:
        return header
    return _set_time(batch, header, header.attributes, timestamp_ms)


def _set_time(
    batch: memoryview, header: BatchHeader, attributes: int, max_timestamp: int
) -> BatchHeader:
    _TIME.pack_into(
        batch, 17, 0, attributes, header.last_offset_delta, header.base_timestamp, max_timestamp
    )
    crc = crc32c(batch[CRC_START : header.size_bytes])
    struct.pack_into(">I", batch, 17, crc)
    return header._replace(attributes=attributes, max_timestamp=max_timestamp, crc=crc)
