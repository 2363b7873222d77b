"""The records inside one record batch (magic 2): a pure decoder and an encoder.

Invariant: every varint, length and count is bounded by the bytes that are there before anything is
built from it. `decode_records` decodes a batch whole or not at all; `record_spans` decodes one
record at a time, for readers that look at a few. The broker never needs this module to move
batches; readers of the log, tools and tests do. `log_format.arrow` is the vectorised decoder and
must answer exactly as `decode_records`. Source: Kafka, "Record" in the implementation guide;
KIP-82 (headers).

    length varint | attributes i8 | timestamp delta varlong | offset delta varint
    key length varint (-1: null), key | value length varint (-1: null), value
    header count varint | per header: key length, key (UTF-8), value length (-1: null), value
"""

import struct
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from crc32c import crc32c

from bucketlog.log_format.batch import (
    CONTROL,
    CRC_START,
    HEADER_LENGTH,
    LEADER_EPOCH,
    LENGTH_OVERHEAD,
    LOG_APPEND_TIME,
    MAGIC,
    MIN_RECORD_LENGTH,
    TRANSACTIONAL,
    BatchHeader,
    Codec,
    InvalidBatchError,
)
from bucketlog.log_format.compression import MAX_DECOMPRESSED_BYTES, compress, decompress
from bucketlog.log_format.encryption_errors import SealedRecordsError
from bucketlog.log_format.errors import InvalidDataError
from bucketlog.log_format.model import MAX_OFFSET, NO_PRODUCER_ID, Buffer

_PREFIX = struct.Struct(">qiibI")
_COVERED = struct.Struct(">hiqqqhii")
_MAX_VARINT_BYTES = 5
_MAX_VARLONG_BYTES = 10
_MIN_INT64, _MAX_INT64 = -(2**63), 2**63 - 1


class Header(NamedTuple):
    """A record's header. Bytes of a key that are not UTF-8 read as U+FFFD, as in Java's client."""

    key: str
    value: bytes | None


class DecodedRecord(NamedTuple):
    """`timestamp` is in milliseconds since 1970 UTC; of a LogAppendTime batch, the batch's."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()


class RecordSpans(NamedTuple):
    """Where a record is in its batch's payload. `key`, `value` and `headers` are begin and end;
    None: null. `timestamp` as in `DecodedRecord`. Of the headers, only the count is decoded."""

    offset: int
    timestamp: int
    key: tuple[int, int] | None
    value: tuple[int, int] | None
    header_count: int
    headers: tuple[int, int]


def records_payload(
    batch: Buffer, header: BatchHeader, *, max_decompressed_bytes: int = MAX_DECOMPRESSED_BYTES
) -> Buffer:
    """The batch's records as bytes, decompressed; the counts of its header are compared with them.

    `batch` begins at its base offset and holds all its bytes; the CRC is the caller's to check.
    Raises `InvalidBatchError`.
    """
    if header.is_sealed:
        raise SealedRecordsError(
            f"the records of the batch at offset {header.base_offset} are encrypted",
            remedy="read the topic with its encryption key (docs/encryption.md)",
        )
    payload = memoryview(batch)[HEADER_LENGTH : header.size_bytes]
    raw = decompress(header.codec, payload, max_bytes=max_decompressed_bytes)
    if not 0 <= header.record_count * MIN_RECORD_LENGTH <= len(raw):
        raise InvalidBatchError(f"{header.record_count} records do not fit {len(raw)} bytes")
    if header.base_offset < 0 or not 0 <= header.last_offset_delta <= MAX_OFFSET:
        raise InvalidBatchError(
            f"base offset {header.base_offset}, last offset delta {header.last_offset_delta}"
        )
    if header.base_offset > MAX_OFFSET - header.last_offset_delta:
        raise InvalidBatchError(f"offsets end past {MAX_OFFSET}")
    return raw


def decode_records(
    batch: Buffer, header: BatchHeader, *, max_decompressed_bytes: int = MAX_DECOMPRESSED_BYTES
) -> list[DecodedRecord]:
    """The records of one batch, in offset order; those of a control batch too.

    Arguments and errors as `records_payload`; nothing in the answer borrows from `batch`.
    """
    payload = records_payload(batch, header, max_decompressed_bytes=max_decompressed_bytes)
    return decode_payload(payload, header)


def decode_payload(payload: Buffer, header: BatchHeader) -> list[DecodedRecord]:
    """As `decode_records`, of what `records_payload` gave."""
    raw = bytes(payload)
    append_time = header.max_timestamp if header.attributes & LOG_APPEND_TIME else None
    records: list[DecodedRecord] = []
    at = 0
    last_delta = -1
    for index in range(header.record_count):
        try:
            length, at = read_varint(raw, at, len(raw))
            end = at + length
            if length < 0 or end > len(raw):
                raise _MalformedError(f"{length} bytes do not fit the {len(raw) - at} left")
            record, delta = _record(raw, at, end, header, append_time)
            if not last_delta < delta <= header.last_offset_delta:
                raise _MalformedError(f"offset delta {delta} after {last_delta}")
        except _MalformedError as error:
            raise InvalidBatchError(
                f"record {index} of the batch at offset {header.base_offset}: {error}"
            ) from None
        records.append(record)
        last_delta = delta
        at = end
    if at != len(raw):
        raise InvalidBatchError(
            f"{len(raw) - at} bytes after the last record of the batch at {header.base_offset}"
        )
    return records


def record_spans(payload: bytes, header: BatchHeader) -> Iterator[RecordSpans]:
    """The records of what `records_payload` gave, one at a time: the memory does not grow with
    their number, or with the number of their headers. Raises as `decode_payload`, when the
    iteration reaches the damage; damaged headers are left to `decode_headers`."""
    append_time = header.max_timestamp if header.attributes & LOG_APPEND_TIME else None
    at, last, size = 0, header.base_offset - 1, len(payload)
    for index in range(header.record_count):
        try:
            length, at = read_varint(payload, at, size)
            end = at + length
            if length < 0 or end > size:
                raise _MalformedError(f"{length} bytes do not fit the {size - at} left")
            spans = _spans(payload, at, end, header, append_time)
            if not last < spans.offset < header.next_offset:
                raise _MalformedError(
                    f"offset delta {spans.offset - header.base_offset} "
                    f"after {last - header.base_offset}"
                )
        except _MalformedError as error:
            raise InvalidBatchError(
                f"record {index} of the batch at offset {header.base_offset}: {error}"
            ) from None
        yield spans
        last, at = spans.offset, end
    if at != size:
        raise InvalidBatchError(
            f"{size - at} bytes after the last record of the batch at {header.base_offset}"
        )


def decode_headers(payload: bytes, record: RecordSpans, *, headers_max: int) -> tuple[Header, ...]:
    """The first headers of a record of `record_spans`. Raises `InvalidBatchError`."""
    at, end = record.headers
    try:
        found, at = _headers(payload, at, end, min(record.header_count, headers_max))
        if len(found) == record.header_count and at != end:
            raise _MalformedError(f"{end - at} bytes after its headers")
    except _MalformedError as error:
        raise InvalidBatchError(
            f"headers of the record at offset {record.offset}: {error}"
        ) from None
    return found


class _MalformedError(Exception):
    """One record does not hold; `decode_records` says which."""


def _record(
    raw: bytes, at: int, end: int, header: BatchHeader, append_time: int | None
) -> tuple[DecodedRecord, int]:
    timestamp_delta, at = read_varlong(raw, at + 1, end)  # one byte of attributes, unused
    timestamp = header.base_timestamp + timestamp_delta
    if not _MIN_INT64 <= timestamp <= _MAX_INT64:
        raise _MalformedError(f"timestamp delta {timestamp_delta}")
    delta, at = read_varint(raw, at, end)
    key, at = _nullable(raw, at, end)
    value, at = _nullable(raw, at, end)
    count, at = read_varint(raw, at, end)
    if not 0 <= count * 2 <= end - at:
        raise _MalformedError(f"{count} headers do not fit {end - at} bytes")
    headers: tuple[Header, ...] = ()
    if count:
        headers, at = _headers(raw, at, end, count)
    if at != end:
        raise _MalformedError(f"{end - at} bytes after its headers")
    stamp = timestamp if append_time is None else append_time
    return DecodedRecord(header.base_offset + delta, stamp, key, value, headers), delta


def _headers(raw: bytes, at: int, end: int, count: int) -> tuple[tuple[Header, ...], int]:
    found = []
    for _ in range(count):
        name, at = _nullable(raw, at, end)
        if name is None:
            raise _MalformedError("a header without a key")
        content, at = _nullable(raw, at, end)
        found.append(Header(name.decode(errors="replace"), content))
    return tuple(found), at


def _spans(
    raw: bytes, at: int, end: int, header: BatchHeader, append_time: int | None
) -> RecordSpans:
    timestamp_delta, at = read_varlong(raw, at + 1, end)  # one byte of attributes, unused
    timestamp = header.base_timestamp + timestamp_delta
    if not _MIN_INT64 <= timestamp <= _MAX_INT64:
        raise _MalformedError(f"timestamp delta {timestamp_delta}")
    delta, at = read_varint(raw, at, end)
    key, at = _nullable_span(raw, at, end)
    value, at = _nullable_span(raw, at, end)
    count, at = read_varint(raw, at, end)
    if not 0 <= count * 2 <= end - at:
        raise _MalformedError(f"{count} headers do not fit {end - at} bytes")
    if not count and at != end:
        raise _MalformedError(f"{end - at} bytes after its headers")
    stamp = timestamp if append_time is None else append_time
    return RecordSpans(header.base_offset + delta, stamp, key, value, count, (at, end))


def _nullable_span(raw: bytes, at: int, end: int) -> tuple[tuple[int, int] | None, int]:
    length, at = read_varint(raw, at, end)
    if length < 0:
        if length != -1:
            raise _MalformedError(f"a length of {length}")
        return None, at
    stop = at + length
    if stop > end:
        raise _MalformedError(f"{length} bytes do not fit the {end - at} left")
    return (at, stop), stop


def _nullable(raw: bytes, at: int, end: int) -> tuple[bytes | None, int]:
    length, at = read_varint(raw, at, end)
    if length < 0:
        if length != -1:
            raise _MalformedError(f"a length of {length}")
        return None, at
    stop = at + length
    if stop > end:
        raise _MalformedError(f"{length} bytes do not fit the {end - at} left")
    return raw[at:stop], stop


def read_varint(raw: bytes, at: int, end: int) -> tuple[int, int]:
    if at < end and raw[at] < 0x80:
        return (raw[at] >> 1) ^ -(raw[at] & 1), at + 1
    return _long_varint(raw, at, min(end, at + _MAX_VARINT_BYTES), 32)


def read_varlong(raw: bytes, at: int, end: int) -> tuple[int, int]:
    return _long_varint(raw, at, min(end, at + _MAX_VARLONG_BYTES), 64)


def _long_varint(raw: bytes, at: int, limit: int, bits: int) -> tuple[int, int]:
    value = shift = 0
    while at < limit:
        byte = raw[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value >> bits:
                break
            return (value >> 1) ^ -(value & 1), at
        shift += 7
    raise _MalformedError(f"a varint of {bits} bits is cut short or too long")


def encode_batch(
    records: Sequence[DecodedRecord],
    *,
    codec: int = Codec.NONE,
    base_offset: int | None = None,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    append_time_ms: int | None = None,
    transactional: bool = False,
    control: bool = False,
) -> bytes:
    """One record batch with the right CRC; the inverse of `decode_records`.

    Records carry their offsets, ascending; `base_offset` defaults to the first one's.
    `append_time_ms` makes it a LogAppendTime batch. Raises `InvalidDataError` for no records or
    offsets that do not ascend.
    """
    if not records:
        raise InvalidDataError("a record batch needs a record")
    base = records[0].offset if base_offset is None else base_offset
    offsets = [base - 1, *(record.offset for record in records)]
    if base < 0 or any(low >= high for low, high in pairwise(offsets)):
        raise InvalidDataError("the offsets of a batch's records must ascend from its base offset")
    base_timestamp = records[0].timestamp
    payload = compress(codec, b"".join(_encode(record, base, base_timestamp) for record in records))
    attributes = codec | (TRANSACTIONAL if transactional else 0) | (CONTROL if control else 0)
    max_timestamp = max(record.timestamp for record in records)
    if append_time_ms is not None:
        attributes |= LOG_APPEND_TIME
        max_timestamp = append_time_ms
    covered = _COVERED.pack(
        attributes,
        records[-1].offset - base,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        len(records),
    )
    length = CRC_START - LENGTH_OVERHEAD + len(covered) + len(payload)
    crc = crc32c(payload, crc32c(covered))
    return _PREFIX.pack(base, length, LEADER_EPOCH, MAGIC, crc) + covered + payload


def _encode(record: DecodedRecord, base_offset: int, base_timestamp: int) -> bytes:
    body = bytearray(1)
    put_varint(body, record.timestamp - base_timestamp)
    put_varint(body, record.offset - base_offset)
    _put_nullable(body, record.key)
    _put_nullable(body, record.value)
    put_varint(body, len(record.headers))
    for key, value in record.headers:
        _put_nullable(body, key.encode())
        _put_nullable(body, value)
    out = bytearray()
    put_varint(out, len(body))
    return bytes(out + body)


def _put_nullable(out: bytearray, data: bytes | None) -> None:
    if data is None:
        out.append(1)  # the varint of -1
    else:
        put_varint(out, len(data))
        out += data


def put_varint(out: bytearray, value: int) -> None:
    rest = value << 1 if value >= 0 else (~value << 1) | 1
    while rest >= 0x80:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
