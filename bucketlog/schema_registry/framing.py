"""Confluent's wire format: a byte 0, the schema's id (4 bytes, big-endian), the data.

Protobuf has, between id and data, which message of the schema's file it is: the number of indexes
and each index as zigzag varints, outermost message first; [0] is a single byte 0.
"""

import struct
from collections.abc import Sequence

from bucketlog.log_format.errors import InvalidDataError
from bucketlog.log_format.wire.frames import uvarint

HEADER_BYTES = 5
_HEADER = struct.Struct(">bI")
_VARINT_BYTES_MAX = 5
_READ_BARE = "read the topic with bytes to see the record"


def header(schema_id: int) -> bytes:
    return _HEADER.pack(0, schema_id)


def is_framed(data: bytes | None) -> bool:
    """Return True if the bytes begin as a frame does."""
    return data is not None and data[:1] == b"\0" and len(data) >= HEADER_BYTES


def schema_id_of(data: bytes) -> int:
    """Raises `InvalidDataError` where the data has no frame."""
    if len(data) < HEADER_BYTES:
        raise InvalidDataError(
            f"no schema id: {len(data)} bytes, a frame has {HEADER_BYTES} at least; it was written "
            "without a schema registry",
            remedy=_READ_BARE,
        )
    magic, schema_id = _HEADER.unpack_from(data)
    if magic:
        raise InvalidDataError(
            f"no schema id: it begins with byte {data[0]:#04x}, a frame with 0x00; it was written "
            "without a schema registry",
            remedy=_READ_BARE,
        )
    return int(schema_id)


def message_indexes(indexes: Sequence[int]) -> bytes:
    if list(indexes) == [0]:
        return b"\0"
    return b"".join(uvarint(number << 1) for number in (len(indexes), *indexes))


def read_message_indexes(data: bytes, at: int) -> tuple[list[int], int]:
    """The indexes, and where the data begins. Raises `InvalidDataError`."""
    count, at = _read_varint(data, at)
    if count == 0:
        return [0], at
    if not 0 < count <= len(data) - at:
        raise InvalidDataError(f"{count} message indexes in {len(data) - at} bytes")
    indexes = []
    for _ in range(count):
        index, at = _read_varint(data, at)
        indexes.append(index)
    return indexes, at


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    number = 0
    for position, byte in enumerate(data[at : at + _VARINT_BYTES_MAX]):
        number |= (byte & 0x7F) << (7 * position)
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), at + position + 1
    raise InvalidDataError("the message indexes are cut short")
