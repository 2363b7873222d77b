"""Where keys, values and headers are in records: loops, compiled by numba.

Invariant: what `find_records` accepts is exactly what `bucketlog.log_format.records.decode_records`
accepts. Every read is bounded by the record's end, which is bounded by the batch's. Without numba
the functions run as they are, far slower than the plain decoder: look at `COMPILED` first.

The compiled code is kept on disk (`NUMBA_CACHE_DIR`, else beside this file, else the user's cache
folder); where none of them can be written, each process compiles for itself (seconds).
"""

import importlib
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from bucketlog.log_format.private_files import make_folder

_Function = TypeVar("_Function", bound=Callable[..., Any])

try:
    _numba: Any = importlib.import_module("numba")
except ImportError:
    _numba = None

COMPILED = _numba is not None

START, END, COUNT, BASE_OFFSET, LAST_DELTA, BASE_TIMESTAMP, MAX_TIMESTAMP, APPEND_TIME = range(8)
TABLE_COLUMNS = 8
"""A row for each batch; START and END bound its decompressed records in the data."""

_MIN_INT64, _MAX_INT64 = -(2**63), 2**63 - 1


def compiled(function: _Function) -> _Function:
    """By numba, if it is installed; the decorator of all kernels of this package."""
    if _numba is None:
        return function
    try:
        kept = _numba.njit(cache=True, nogil=True)(function)
        make_folder(kept.stats.cache_path)  # of a module in a zip nobody has tried
        return cast(_Function, kept)
    except (RuntimeError, OSError):  # "cannot cache function": there is no folder it may write
        return cast(_Function, _numba.njit(nogil=True)(function))


class RecordScan(NamedTuple):
    """What `find_records` fills: a row for each record, in order.

    `bounds` are key start, key end, value start, value end (ascending; a null is empty).
    `headers_at` is where the first header is.
    """

    offsets: NDArray[np.int64]
    timestamps: NDArray[np.int64]
    bounds: NDArray[np.int32]
    key_is_null: NDArray[np.bool_]
    value_is_null: NDArray[np.bool_]
    headers_at: NDArray[np.int32]
    header_counts: NDArray[np.int32]

    @classmethod
    def allocate(cls, records: int) -> "RecordScan":
        return cls(
            np.empty(records, np.int64),
            np.empty(records, np.int64),
            np.empty((records, 4), np.int32),
            np.empty(records, np.bool_),
            np.empty(records, np.bool_),
            np.empty(records, np.int32),
            np.empty(records, np.int32),
        )


@compiled
def varint(data: NDArray[np.uint8], at: np.int64, end: np.int64) -> tuple[np.int64, np.int64]:
    """The number at `at` and where it ends; the end is -1 where it is cut short or too long."""
    if at < end and data[at] < 0x80:
        byte = np.int64(data[at])
        return (byte >> 1) ^ -(byte & 1), at + 1
    value = np.int64(0)
    for index in range(min(np.int64(5), end - at)):
        byte = np.int64(data[at + index])
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            if value >> 32:
                return np.int64(0), np.int64(-1)
            return (value >> 1) ^ -(value & 1), at + index + 1
    return np.int64(0), np.int64(-1)


@compiled
def varlong(data: NDArray[np.uint8], at: np.int64, end: np.int64) -> tuple[np.int64, np.int64]:
    value = np.uint64(0)
    for index in range(min(np.int64(10), end - at)):
        byte = np.uint64(data[at + index])
        if index == 9 and byte > np.uint64(1):
            return np.int64(0), np.int64(-1)
        value |= (byte & np.uint64(0x7F)) << np.uint64(7 * index)
        if byte < np.uint64(0x80):
            magnitude = np.int64(value >> np.uint64(1))
            sign = np.int64(value & np.uint64(1))
            return magnitude ^ -sign, at + index + 1
    return np.int64(0), np.int64(-1)


@compiled
def _bytes(data: NDArray[np.uint8], at: np.int64, end: np.int64) -> tuple[np.int64, np.int64]:
    """Where the byte string at `at` starts and ends; its start is -1 for null, -2 if it is bad."""
    length, start = varint(data, at, end)
    if start < 0 or length < -1 or length > end - start:
        return np.int64(-2), np.int64(-1)
    if length < 0:
        return np.int64(-1), start
    return start, start + length


@compiled
def find_records(
    data: NDArray[np.uint8],
    table: NDArray[np.int64],
    offsets: NDArray[np.int64],
    timestamps: NDArray[np.int64],
    bounds: NDArray[np.int32],
    key_is_null: NDArray[np.bool_],
    value_is_null: NDArray[np.bool_],
    headers_at: NDArray[np.int32],
    header_counts: NDArray[np.int32],
) -> int:
    """Fill a `RecordScan` from the batches of `table`; -1, or the first batch that does not
    hold."""
    row = 0
    for batch in range(table.shape[0]):
        at, batch_end = table[batch, START], table[batch, END]
        base_timestamp = table[batch, BASE_TIMESTAMP]
        last_delta = np.int64(-1)
        for _ in range(table[batch, COUNT]):
            length, at = varint(data, at, batch_end)
            if at < 0 or length < 0 or length > batch_end - at:
                return batch
            end = at + length
            elapsed, at = varlong(data, at + 1, end)
            if at < 0:
                return batch
            # compiled code must not overflow: what it then does is undefined
            if elapsed > 0 and base_timestamp > _MAX_INT64 - elapsed:
                return batch
            if elapsed < 0 and base_timestamp < _MIN_INT64 - elapsed:
                return batch
            timestamp = base_timestamp + elapsed
            delta, at = varint(data, at, end)
            if at < 0 or delta <= last_delta or delta > table[batch, LAST_DELTA]:
                return batch
            key, key_end = _bytes(data, at, end)
            if key == -2:
                return batch
            value, value_end = _bytes(data, key_end, end)
            if value == -2:
                return batch
            headers, at = varint(data, value_end, end)
            if at < 0 or headers < 0 or headers * 2 > end - at:
                return batch
            offsets[row] = table[batch, BASE_OFFSET] + delta
            timestamps[row] = (
                table[batch, MAX_TIMESTAMP] if table[batch, APPEND_TIME] else timestamp
            )
            key_is_null[row], value_is_null[row] = key < 0, value < 0
            bounds[row, 0] = key if key >= 0 else key_end
            bounds[row, 1] = key_end
            bounds[row, 2] = value if value >= 0 else value_end
            bounds[row, 3] = value_end
            headers_at[row], header_counts[row] = at, headers
            for _ in range(headers):
                name, at = _bytes(data, at, end)
                if name < 0:
                    return batch
                content, at = _bytes(data, at, end)
                if content == -2:
                    return batch
            if at != end:
                return batch
            last_delta = delta
            row += 1
        if at != batch_end:
            return batch
    return -1


@compiled
def find_headers(
    data: NDArray[np.uint8],
    headers_at: NDArray[np.int32],
    header_counts: NDArray[np.int32],
    bounds: NDArray[np.int32],
    value_is_null: NDArray[np.bool_],
) -> None:
    """The bounds (as in `RecordScan`) of the headers of records that `find_records` accepted."""
    row = 0
    end = np.int64(data.shape[0])
    for record in range(header_counts.shape[0]):
        at = np.int64(headers_at[record])
        for _ in range(header_counts[record]):
            name, at = _bytes(data, at, end)
            bounds[row, 0], bounds[row, 1] = name, at
            content, at = _bytes(data, at, end)
            value_is_null[row] = content < 0
            bounds[row, 2] = content if content >= 0 else at
            bounds[row, 3] = at
            row += 1
