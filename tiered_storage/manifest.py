"""A manifest's bytes: the rows of many old partition segments of one partition. Pure.

Format: docs/format/tier.md. Invariants: every byte is covered by a checksum; nothing is unpacked
beyond a bound, whatever the header claims; rows ascend, do not overlap and name partition segments;
a manifest is believed only under the key of its partition and start.
"""

import json
import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

from crc32c import crc32c

from bucketlog.log_format.batch import Codec
from bucketlog.log_format.compression import compress, decompress
from bucketlog.log_format.errors import CorruptObjectError, InvalidDataError
from bucketlog.log_format.model import MAX_OFFSET, Buffer, TierObject, TierRow, TopicIdPartition
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.bucket import Span

FORMAT_VERSION = 1
MAGIC = b"bktlogmf"
JSON_BYTES_MAX = 4 * 1024 * 1024
MANIFEST_BYTES_MAX = JSON_BYTES_MAX + 64 * 1024
"""Limit of a manifest's stored bytes: zstd adds little to data that it cannot compress."""
MANIFEST_SPAN = Span(0, MANIFEST_BYTES_MAX + 1)
"""The part of a manifest to read: all of the manifest, or enough to refuse it."""
_ROW_JSON_BYTES_MIN = 40
_ROW_COMMAS_MAX = 8

_HEADER = struct.Struct(">8sHHII")
_CRC = struct.Struct(">I")
_ROW_TYPES = [int, int, str, bool, int, int, int, int]
HEADER_BYTES = _HEADER.size + _CRC.size


class FinishedManifest(NamedTuple):
    """An object to create, and the row that will name it."""

    there: TierObject
    row: TierRow
    data: bytes


def encode_manifest(
    partition: TopicIdPartition, rows: Sequence[TierRow], name: str
) -> FinishedManifest:
    """Encode a manifest. Raises `InvalidDataError` for rows that no manifest may have, or too many
    of them."""
    if not rows:
        raise InvalidDataError("a manifest lists a segment at least")
    start = 0
    for row in rows:
        reason = _wrong(row, start)
        if reason:
            raise InvalidDataError(f"no manifest lists {row}: {reason}")
        start = row.end
    content = {
        "topic_id": partition.topic_id.hex(),
        "partition": partition.partition,
        "rows": rows,
    }
    text = json.dumps(content, separators=(",", ":")).encode()
    if len(text) > JSON_BYTES_MAX:
        raise InvalidDataError(
            f"{len(rows)} segments are too many for a manifest",
            remedy=f"list fewer: {JSON_BYTES_MAX} bytes are allowed",
        )
    stored = compress(Codec.ZSTD, text)
    header = _HEADER.pack(MAGIC, FORMAT_VERSION, 0, len(text), crc32c(stored))
    data = header + _CRC.pack(crc32c(header)) + stored
    row = TierRow(
        start=rows[0].start,
        end=rows[-1].end,
        name=name,
        manifest=True,
        size_bytes=len(data),
        batch_bytes=sum(each.batch_bytes for each in rows),
        max_timestamp_ms=max(each.max_timestamp_ms for each in rows),
        segments=len(rows),
    )
    return FinishedManifest(TierObject(partition, row.start, name, True), row, data)


def read_bytes(manifest: TierRow) -> int:
    """Bytes to read of the row's manifest: all of the manifest, or enough to refuse it."""
    return min(manifest.size_bytes, MANIFEST_SPAN.length)


def decode_manifest(there: TierObject, data: Buffer) -> list[TierRow]:
    """Decode a manifest. Raises `CorruptObjectError`, and `InvalidDataError` for an unknown
    version."""
    key = keys.tier_object(there)
    view = memoryview(data)
    if len(view) < HEADER_BYTES:
        raise CorruptObjectError(key, 0, f"{len(view)} bytes are not a manifest")
    magic, version, flags, length, crc = _HEADER.unpack_from(view)
    (header_crc,) = _CRC.unpack_from(view, _HEADER.size)
    if magic != MAGIC or header_crc != crc32c(view[: _HEADER.size]):
        raise CorruptObjectError(key, 0, "its header does not hold")
    if version != FORMAT_VERSION or flags:
        raise InvalidDataError(
            f"{key!r} is a manifest of version {version}",
            remedy="a newer bucketlog wrote it: upgrade this one",
        )
    for size_bytes, most in ((length, JSON_BYTES_MAX), (len(view), MANIFEST_BYTES_MAX)):
        if size_bytes > most:
            raise CorruptObjectError(
                key,
                0,
                f"{size_bytes} bytes are too many for a manifest: the limit is {most}",
                remedy="no broker wrote it: restore the object from a copy of the bucket",
            )
    stored = view[HEADER_BYTES:]
    if crc != crc32c(stored):
        raise CorruptObjectError(key, HEADER_BYTES, "its checksum does not hold")
    try:
        text = bytes(decompress(Codec.ZSTD, stored, max_bytes=length))
        _check_shape(text)
        content = json.loads(text)
    except (InvalidDataError, ValueError, RecursionError) as error:
        raise CorruptObjectError(key, HEADER_BYTES, f"it cannot be read: {error}") from error
    if len(text) != length:
        raise CorruptObjectError(key, HEADER_BYTES, f"{len(text)} bytes, not {length}")
    return _decode_rows(key, there, content)


def _check_shape(text: bytes) -> None:
    """Bound the memory of parsing: accept one object with one list of flat rows. Raises
    `InvalidDataError`."""
    rows, commas = text.count(b"["), text.count(b",")
    if (
        text.count(b"{") > 1
        or _ROW_JSON_BYTES_MIN * (rows - 1) > len(text)
        or commas > _ROW_COMMAS_MAX * (rows + 1)
    ):
        raise InvalidDataError("its JSON has too many values for a manifest")


def _decode_rows(key: str, there: TierObject, content: Any) -> list[TierRow]:
    match content:
        case {"topic_id": str(topic_id), "partition": int(partition), "rows": [*listed]}:
            pass
        case _:
            raise CorruptObjectError(key, HEADER_BYTES, "its JSON is not a manifest's")
    if (topic_id, partition) != (there.partition.topic_id.hex(), there.partition.partition):
        raise CorruptObjectError(key, HEADER_BYTES, "it is another partition's")
    rows: list[TierRow] = []
    for each in listed:
        row = _row(each)
        start = rows[-1].end if rows else there.start
        reason = "its form" if row is None else _wrong(row, start)
        if row is None or reason:
            raise CorruptObjectError(key, HEADER_BYTES, f"row {len(rows)} is wrong: {reason}")
        rows.append(row)
    if not rows or rows[0].start != there.start:
        raise CorruptObjectError(key, HEADER_BYTES, f"it does not begin at {there.start}")
    return rows


def _row(listed: Any) -> TierRow | None:
    if not isinstance(listed, list) or [type(value) for value in listed] != _ROW_TYPES:
        return None
    return TierRow(*listed)


def _wrong(row: TierRow, start: int) -> str:
    """Why a manifest cannot list the row; it may begin at `start`."""
    if row.manifest or row.segments != 1:
        return "it is not one partition segment's"
    if not start <= row.start < row.end <= MAX_OFFSET + 1:
        return f"offsets {row.start} to {row.end} after {start}"
    if not 0 < row.batch_bytes < row.size_bytes < 2**63 or not -1 <= row.max_timestamp_ms < 2**63:
        return "a number out of bounds"
    try:
        keys.planned_below(row.name, row.name)
    except InvalidDataError as error:
        return error.message
    return ""
