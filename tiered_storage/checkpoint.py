"""The checkpoint's bytes: a pure writer and a pure reader.

Format: docs/format/checkpoint.md. Invariants: every byte is covered by a checksum; counts are
compared with the bytes that are there before anything is built; a checkpoint is believed only
under the the key of its ticket. Batches are column by column, and a column as planes of its bytes,
most significant first: neighbours are alike then, and compress well.
"""

import struct
import sys
from array import array
from collections.abc import Iterable, Iterator
from uuid import UUID

from crc32c import crc32c

from bucketlog.log_format.batch import Codec
from bucketlog.log_format.checkpoint import (
    CHECKPOINT_VERSION,
    COLUMN_TYPES,
    CONFIGS_VERSION,
    DATA_KEYS_VERSION,
    KEPT_TRANSACTIONS_VERSION,
    SECURITY_VERSION,
    SHARES_VERSION,
    TOKENS_VERSION,
    TRANSACTIONS_VERSION,
    BatchColumns,
    Checkpoint,
    CoveredPartition,
    CoveredWriter,
)
from bucketlog.log_format.compression import compress, decompress
from bucketlog.log_format.errors import CorruptObjectError, InvalidDataError
from bucketlog.log_format.model import Buffer, Ticket, TopicId, TopicIdPartition, WriterId
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.bucket import ObjectInfo

VERSIONS_READ = (
    2,
    CHECKPOINT_VERSION,
    TRANSACTIONS_VERSION,
    KEPT_TRANSACTIONS_VERSION,
    SECURITY_VERSION,
    DATA_KEYS_VERSION,
    TOKENS_VERSION,
    SHARES_VERSION,
    CONFIGS_VERSION,
)
MAGIC = b"bktlogcp"
CHECKPOINT_BYTES_MAX = 512 * 1024 * 1024
"""Default limit of a checkpoint's bytes, stored and uncompressed: over 7 million batches."""
READABLE_RATIO = 32
"""Readers without a setting accept a body above the default limit if it has at most this many times
its stored bytes. Checkpoints of real logs are well below this ratio."""

_HEADER = struct.Struct(">8sHHQQqQQ4xI")
_CRC = struct.Struct(">I")
_HEAD = struct.Struct(">IIIQQ")
_WRITER = struct.Struct(">16sQQB")
_PARTITION = struct.Struct(">IIqQ")
_WIDTHS = {"q": 8, "I": 4, "i": 4, "h": 2}
_ROW_BYTES = sum(_WIDTHS[kind] for kind in COLUMN_TYPES)
HEADER_BYTES = _HEADER.size + _CRC.size
_NUMBER_MAX = 2**62
"""Larger counts and tickets would soon exceed the 64 bits of the next checkpoint."""


def newest_first(listed: Iterable[ObjectInfo]) -> list[ObjectInfo]:
    """The checkpoints, newest first. Raises `InvalidDataError` for a key of another kind."""
    return sorted(listed, key=lambda info: keys.parse_checkpoint(info.key), reverse=True)


def check_stored_bytes(info: ObjectInfo, bytes_max: int | None = None) -> None:
    """Refuse to fetch a checkpoint above `bytes_max` (default: `CHECKPOINT_BYTES_MAX`). Raises
    `CorruptObjectError`."""
    if info.size_bytes > (CHECKPOINT_BYTES_MAX if bytes_max is None else bytes_max):
        raise _too_large(info.key, f"it has {info.size_bytes} bytes", bytes_max)


def _too_large(key: str, reason: str, bytes_max: int | None) -> CorruptObjectError:
    if bytes_max is None:
        limit = f"{CHECKPOINT_BYTES_MAX} (uncompressed: or {READABLE_RATIO} times the stored bytes)"
        remedy = "delete it if no broker wrote it"
    else:
        limit = str(bytes_max)
        remedy = "delete it if no broker wrote it, else raise BUCKETLOG_CHECKPOINT_BYTES_MAX"
    return CorruptObjectError(key, 0, f"{reason}, more than the limit of {limit}", remedy=remedy)


def encode_checkpoint(checkpoint: Checkpoint, *, bytes_max: int = CHECKPOINT_BYTES_MAX) -> bytes:
    """Encode a checkpoint. Raises `InvalidDataError` for more than `bytes_max` uncompressed bytes,
    because readers would refuse the checkpoint."""
    topics = sorted({partition.topic_id for partition in checkpoint.partitions})
    rows = {topic_id: row for row, topic_id in enumerate(topics)}
    listed = sorted(checkpoint.partitions.items())
    columns = [part.batches.columns for _, part in listed]
    pieces = [
        _HEAD.pack(
            len(checkpoint.writers),
            len(topics),
            len(listed),
            sum(len(part.batches) for _, part in listed),
            len(checkpoint.state),
        )
    ]
    pieces += [
        _WRITER.pack(UUID(hex=writer).bytes, epoch, end, closed)
        for writer, epoch, end, closed in checkpoint.writers
    ]
    pieces += topics
    pieces += [
        _PARTITION.pack(
            rows[partition.topic_id], partition.partition, part.high_watermark, len(part.batches)
        )
        for partition, part in listed
    ]
    for at, kind in enumerate(COLUMN_TYPES):
        joined = b"".join(each[at].tobytes() for each in columns)
        pieces += [joined[place :: _WIDTHS[kind]] for place in _planes(kind)]
    pieces.append(checkpoint.state)
    size_bytes = sum(map(len, pieces))
    if size_bytes > bytes_max:
        raise InvalidDataError(
            f"the checkpoint of {tuple(checkpoint.ticket)} has {size_bytes} bytes, more than the "
            f"limit of {bytes_max}",
            remedy="check that compaction runs, which takes batches out of checkpoints, or raise "
            "BUCKETLOG_CHECKPOINT_BYTES_MAX for all brokers",
        )
    body = b"".join(pieces)
    stored = compress(Codec.ZSTD, body)
    header = _HEADER.pack(
        MAGIC,
        checkpoint.version,
        0,
        checkpoint.ticket.epoch,
        checkpoint.ticket.number,
        checkpoint.created_ms,
        checkpoint.segments,
        len(body),
        crc32c(stored),
    )
    return header + _CRC.pack(crc32c(header)) + stored


def _planes(kind: str) -> Iterable[int]:
    """Places of a value's bytes in this machine's memory, the most significant first."""
    places = range(_WIDTHS[kind])
    return reversed(places) if sys.byteorder == "little" else places


def decode_checkpoint(key: str, data: Buffer, *, bytes_max: int | None = None) -> Checkpoint:
    """Decode a checkpoint. `bytes_max` limits the uncompressed bytes. The default is
    `CHECKPOINT_BYTES_MAX` or `READABLE_RATIO` times the stored bytes, whichever is more. The result
    takes up to about 20 times as much memory as the uncompressed bytes, for batches 3 times. Raises
    `CorruptObjectError`, and `InvalidDataError` for an unknown version."""
    view = memoryview(data)
    if len(view) < HEADER_BYTES:
        raise CorruptObjectError(key, 0, f"{len(view)} bytes are not a checkpoint")
    magic, version, flags, epoch, number, created_ms, segments, length, crc = _HEADER.unpack_from(
        view
    )
    (header_crc,) = _CRC.unpack_from(view, _HEADER.size)
    if magic != MAGIC or header_crc != crc32c(view[: _HEADER.size]):
        raise CorruptObjectError(key, 0, "its header does not hold")
    if version not in VERSIONS_READ or flags or any(view[_HEADER.size - 8 : _HEADER.size - 4]):
        raise InvalidDataError(
            f"{key!r} is a checkpoint of version {version}; this release reads versions 2 to 10",
            remedy="use the release of bucketlog that wrote it, or a later one",
        )
    if keys.checkpoint(Ticket(epoch, number)) != key:
        raise CorruptObjectError(key, 0, f"it says that it is that of {epoch}/{number}")
    stored = view[HEADER_BYTES:]
    if crc != crc32c(stored):
        raise CorruptObjectError(key, HEADER_BYTES, "its checksum does not hold")
    if max(number, segments) > _NUMBER_MAX:
        raise CorruptObjectError(key, 0, "a number in its header is impossible")
    readable = max(CHECKPOINT_BYTES_MAX, READABLE_RATIO * len(stored))
    if length > (readable if bytes_max is None else bytes_max):
        raise _too_large(key, f"its body has {length} bytes", bytes_max)
    try:
        body = decompress(Codec.ZSTD, stored, max_bytes=length)
    except InvalidDataError as error:
        raise CorruptObjectError(key, HEADER_BYTES, error.message) from error
    if len(body) != length:
        raise CorruptObjectError(key, HEADER_BYTES, f"{len(body)} bytes, not {length}")
    reader = _Reader(key, memoryview(body))
    writers, partitions, state = _decode_body(reader)
    return Checkpoint(
        Ticket(epoch, number), created_ms, segments, writers, partitions, state, version
    )


class _Reader:
    """Takes counted rows from the front of the body. Raises `CorruptObjectError`."""

    def __init__(self, key: str, body: memoryview) -> None:
        self._key = key
        self._body = body
        self._at = 0

    def bytes(self, length: int) -> memoryview:
        if length > len(self._body) - self._at:
            raise self.wrong("it is cut short")
        self._at += length
        return self._body[self._at - length : self._at]

    def rows(self, row: struct.Struct, count: int) -> Iterator[tuple[int, ...]]:
        return row.iter_unpack(self.bytes(row.size * count))

    def end(self) -> None:
        if self._at != len(self._body):
            raise self.wrong("bytes after its end")

    def wrong(self, reason: str) -> CorruptObjectError:
        return CorruptObjectError(self._key, HEADER_BYTES, f"byte {self._at} of its body: {reason}")


def _decode_body(
    reader: _Reader,
) -> tuple[tuple[CoveredWriter, ...], dict[TopicIdPartition, CoveredPartition], bytes]:
    ((writers, topics, partitions, batches, state),) = reader.rows(_HEAD, 1)
    listed = tuple(
        CoveredWriter(WriterId(writer.hex()), epoch, end, bool(closed))
        for writer, epoch, end, closed in _WRITER.iter_unpack(reader.bytes(_WRITER.size * writers))
    )
    if any(max(row.epoch, row.end) > _NUMBER_MAX for row in listed):
        raise reader.wrong("a number of a writer is impossible")
    topic_ids = reader.bytes(16 * topics)
    rows = list(reader.rows(_PARTITION, partitions))
    if sum(row[3] for row in rows) != batches or any(row[0] >= topics for row in rows):
        raise reader.wrong("its partitions do not agree with its topics and batches")
    columns = _decode_columns(reader, batches)
    if max(columns[-3], default=-1) >= writers:
        raise reader.wrong("a batch names a writer that is not listed")
    if any(min(column, default=0) < 0 for column in (columns[0], columns[1], *columns[-2:])):
        raise reader.wrong("an offset, position, seq or ticket is negative")
    found: dict[TopicIdPartition, CoveredPartition] = {}
    start, none = 0, BatchColumns()
    for topic, number, high_watermark, count in rows:
        partition = TopicIdPartition(
            TopicId(bytes(topic_ids[16 * topic : 16 * topic + 16])), number
        )
        mine = none
        if count:
            mine = BatchColumns(tuple(column[start : start + count] for column in columns))
        start += count
        if partition in found:
            raise reader.wrong("it contains a partition twice")
        found[partition] = CoveredPartition(high_watermark, mine)
    body_state = bytes(reader.bytes(state))
    reader.end()
    return listed, found, body_state


def _decode_columns(reader: _Reader, batches: int) -> "tuple[array[int], ...]":
    columns = []
    planes = reader.bytes(_ROW_BYTES * batches)
    at = 0
    for kind in COLUMN_TYPES:
        raw = bytearray(_WIDTHS[kind] * batches)
        for place in _planes(kind):
            raw[place :: _WIDTHS[kind]] = planes[at : at + batches]
            at += batches
        column = array(kind)
        column.frombytes(raw)
        columns.append(column)
    return tuple(columns)
