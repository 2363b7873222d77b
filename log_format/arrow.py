"""The vectorised decoder: record batches in, Arrow columns out (extra `[arrow]`).

Invariant: answers and refusals are those of `log_format.records`, record for record. A kernel
compiled by numba only finds where keys, values and headers are; pyarrow's `take` over these
interleaved positions then copies them, so that no Python object is made per record. Whatever the
kernel does not like is decoded again by the plain decoder, whose error is raised: there is one set
of messages. The plain decoder does all of it where numba is missing, and where the caller wants so:
importing numba takes as long as the plain decoder needs for some 200,000 records.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bucketlog.log_format.arrow_building import binary_array, number_array
from bucketlog.log_format.batch import (
    HEADER_LENGTH,
    LOG_APPEND_TIME,
    BatchHeader,
    Codec,
    CorruptBatchError,
    crc_holds,
    read_header,
)
from bucketlog.log_format.compression import MAX_DECOMPRESSED_BYTES
from bucketlog.log_format.errors import InvalidDataError
from bucketlog.log_format.model import Buffer
from bucketlog.log_format.records import (
    DecodedRecord,
    decode_payload,
    decode_records,
    records_payload,
)

if TYPE_CHECKING:
    from bucketlog.log_format.scan import RecordScan

MAX_JOINED_BYTES = 2**31 - 1
"""Arrow's binary columns have 32-bit offsets: what one call decodes must fit."""

HEADERS_TYPE = pa.list_(
    pa.field("element", pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))
)


@dataclass(frozen=True, slots=True)
class RecordColumns:
    """Arrow arrays of equal length: a row for each record, in the order of the batches.

    `timestamp` is int64 milliseconds. A column that was not asked for is None. `rows` says how many
    records each given batch has (control batches: 0).
    """

    offset: pa.Array
    timestamp: pa.Array
    key: pa.Array | None
    value: pa.Array | None
    headers: pa.Array | None
    rows: NDArray[np.int64]


def decode_batches(
    data: Buffer,
    positions: Sequence[int],
    *,
    key: bool = True,
    value: bool = True,
    headers: bool = False,
    check_crc: bool = True,
    max_decompressed_bytes: int = MAX_DECOMPRESSED_BYTES,
    enough_bytes: int | None = None,
    compiled: bool = True,
) -> RecordColumns:
    """Decode the record batches that begin at `positions` (bytes from the start of `data`).
    Arguments and errors are those of `decode_pieces`."""
    return decode_pieces(
        [(data, positions)],
        key=key,
        value=value,
        headers=headers,
        check_crc=check_crc,
        max_decompressed_bytes=max_decompressed_bytes,
        enough_bytes=enough_bytes,
        compiled=compiled,
    )


def decode_pieces(
    pieces: Sequence[tuple[Buffer, Sequence[int]]],
    *,
    key: bool,
    value: bool,
    headers: bool,
    check_crc: bool,
    max_decompressed_bytes: int,
    enough_bytes: int | None,
    compiled: bool,
) -> RecordColumns:
    """Decode the record batches of several pieces of data, together: each piece has the positions
    where its batches begin, in bytes from its start.

    Records of control batches are left out. `max_decompressed_bytes` bounds each batch. Decoding
    ends with the batch by which `enough_bytes` are decompressed: `rows` is then shorter than all
    positions, and what is left is decoded by another call. Without `compiled`, the plain decoder
    decodes, and numba is not imported. Raises
    `CorruptBatchError` for a CRC that does not hold, `InvalidBatchError` for records that do not
    follow the format, `InvalidDataError` where it all would not fit 2 GiB.
    """
    batches = []
    for data, positions in pieces:
        view = memoryview(data).cast("B")
        for position in positions:
            header = read_header(view, position)
            batch = view[position : position + header.size_bytes]
            if check_crc and not crc_holds(batch, header):
                raise CorruptBatchError(
                    f"the CRC of the batch at {header.base_offset} does not hold"
                )
            batches.append((batch, header))
    if compiled:
        from bucketlog.log_format import scan

        compiled = scan.COMPILED
    if not compiled:
        return _decode_plainly(batches, key, value, headers, max_decompressed_bytes, enough_bytes)
    source = _lay_out(pieces, batches, max_decompressed_bytes, enough_bytes)
    bad = scan.find_records(source.data, source.table, *source.found)
    if bad >= 0:
        decode_records(*batches[bad], max_decompressed_bytes=max_decompressed_bytes)
        raise AssertionError("the two decoders disagree")  # a defect, never data
    buffer = pa.py_buffer(source.data)
    found = source.found
    return RecordColumns(
        offset=number_array(found.offsets),
        timestamp=number_array(found.timestamps),
        key=_take(buffer, found.bounds, 0, found.key_is_null) if key else None,
        value=_take(buffer, found.bounds, 2, found.value_is_null) if value else None,
        headers=_headers(buffer, source) if headers else None,
        rows=source.rows,
    )


@dataclass(frozen=True, slots=True)
class _Source:
    """What the kernels read: records of all batches in one piece, and a table of the batches."""

    data: NDArray[np.uint8]
    table: NDArray[np.int64]
    found: "RecordScan"
    rows: NDArray[np.int64]


def _lay_out(
    given: Sequence[tuple[Buffer, Sequence[int]]],
    batches: Sequence[tuple[memoryview, BatchHeader]],
    max_bytes: int,
    enough_bytes: int | None,
) -> _Source:
    from bucketlog.log_format import scan

    table = np.zeros((len(batches), scan.TABLE_COLUMNS), np.int64)
    pieces: list[Buffer] = []
    in_place = len(given) == 1 and all(
        header.codec == Codec.NONE or header.is_control for _, header in batches
    )
    positions = chain.from_iterable(positions for _, positions in given)
    total = used = 0
    for row, (position, (batch, header)) in enumerate(zip(positions, batches, strict=True)):
        used = row + 1
        if header.is_control:
            continue
        payload = records_payload(batch, header, max_decompressed_bytes=max_bytes)
        start = position + HEADER_LENGTH if in_place else total
        total += len(payload)
        if start + len(payload) > MAX_JOINED_BYTES:
            raise InvalidDataError("the batches of one call decode to more than 2 GiB")
        if not in_place:
            pieces.append(payload)
        table[row] = (
            start,
            start + len(payload),
            header.record_count,
            header.base_offset,
            header.last_offset_delta,
            header.base_timestamp,
            header.max_timestamp,
            bool(header.attributes & LOG_APPEND_TIME),
        )
        if enough_bytes is not None and total >= enough_bytes:
            break
    table = table[:used]
    rows = table[:, scan.COUNT].copy()
    data = np.frombuffer(given[0][0] if in_place else b"".join(pieces), np.uint8)
    return _Source(data, table, scan.RecordScan.allocate(int(rows.sum())), rows)


def _take(
    buffer: pa.Buffer, bounds: NDArray[np.int32], first: int, is_null: NDArray[np.bool_]
) -> pa.Array:
    """The byte strings that are at `bounds[:, first : first + 2]` of `buffer`.

    All bounds of a row, and of the rows, ascend; so all of them together are the offsets of one
    binary array, of which every second or fourth element is needed.
    """
    count = len(bounds)
    if not count:
        return binary_array([])
    step = bounds.shape[1]
    spans = pa.BinaryArray.from_buffers(
        pa.binary(), count * step - 1, [None, pa.py_buffer(bounds), buffer]
    )
    wanted = np.arange(first, count * step, step, dtype=np.int32)
    return spans.take(number_array(wanted, is_null=is_null))


def _headers(buffer: pa.Buffer, source: _Source) -> pa.Array:
    from bucketlog.log_format import scan

    counts = source.found.header_counts
    ends = np.zeros(len(counts) + 1, np.int32)
    np.cumsum(counts, out=ends[1:])
    bounds = np.zeros((int(ends[-1]), 4), np.int32)
    is_null = np.zeros(len(bounds), np.bool_)
    scan.find_headers(source.data, source.found.headers_at, counts, bounds, is_null)
    names = _take(buffer, bounds, 0, np.zeros(len(bounds), np.bool_))
    values = _take(buffer, bounds, 2, is_null)
    pairs = pa.StructArray.from_arrays(
        [_as_text(names), values], fields=list(HEADERS_TYPE.value_type)
    )
    return pa.ListArray.from_arrays(number_array(ends), pairs, type=HEADERS_TYPE)


def _as_text(names: pa.Array) -> pa.Array:
    try:
        return names.cast(pa.string())
    except pa.ArrowInvalid:
        readable = [name.decode(errors="replace").encode() for name in names.to_pylist()]
        return binary_array(readable, pa.string())


def _decode_plainly(
    batches: Sequence[tuple[memoryview, BatchHeader]],
    key: bool,
    value: bool,
    headers: bool,
    max_bytes: int,
    enough_bytes: int | None,
) -> RecordColumns:
    records: list[DecodedRecord] = []
    rows = []
    total = 0
    for batch, header in batches:
        mine: list[DecodedRecord] = []
        if not header.is_control:
            payload = records_payload(batch, header, max_decompressed_bytes=max_bytes)
            mine = decode_payload(payload, header)
            total += len(payload)
        records += mine
        rows.append(len(mine))
        if enough_bytes is not None and total >= enough_bytes:
            break
    return RecordColumns(
        offset=number_array(np.array([record.offset for record in records], np.int64)),
        timestamp=number_array(np.array([record.timestamp for record in records], np.int64)),
        key=binary_array([record.key for record in records]) if key else None,
        value=binary_array([record.value for record in records]) if value else None,
        headers=_plain_headers(records) if headers else None,
        rows=np.array(rows, np.int64),
    )


def _plain_headers(records: Sequence[DecodedRecord]) -> pa.Array:
    ends = np.zeros(len(records) + 1, np.int32)
    np.cumsum([len(record.headers) for record in records], out=ends[1:])
    pairs = [header for record in records for header in record.headers]
    names = binary_array([name.encode() for name, _ in pairs], pa.string())
    values = binary_array([value for _, value in pairs])
    found = pa.StructArray.from_arrays([names, values], fields=list(HEADERS_TYPE.value_type))
    return pa.ListArray.from_arrays(number_array(ends), found, type=HEADERS_TYPE)
