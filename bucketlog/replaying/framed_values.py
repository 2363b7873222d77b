"""Values in Confluent's wire format, without their headers: of many records at once.

Invariant: each value that comes out had a header, and `check` accepted the schema's id in it.
"""

from collections.abc import Callable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bucketlog.log_format.arrow_building import number_array
from bucketlog.replaying.column import NotPlainError
from bucketlog.schema_registry.framing import HEADER_BYTES

SCHEMAS_MAX = 100
"""Schemas in one batch of records. Beyond, the values are decoded one after another."""


def unframed(values: pa.Array, check: Callable[[int], object]) -> pa.Array:
    """`values` (binary, no null) without their headers. `check` raises for the id of a schema that
    cannot be read. Raises `NotPlainError` for a value without a header, and for many schemas."""
    if not len(values):
        return values
    ends, data = _ends(values), values.buffers()[2]
    for schema_id in _schema_ids(ends, data):
        check(int(schema_id))
    bounds = np.empty(2 * len(values) + 1, np.int32)
    bounds[0::2] = ends
    bounds[1::2] = ends[:-1] + HEADER_BYTES
    parts = pa.BinaryArray.from_buffers(
        pa.binary(), 2 * len(values), [None, pa.py_buffer(bounds), data]
    )  # header, value, header, …
    return parts.take(number_array(np.arange(1, len(parts), 2, dtype=np.int32)))


def _ends(values: pa.Array) -> NDArray[np.int32]:
    """Return the begin of the first value and the ends of all values, in bytes."""
    return np.frombuffer(values.buffers()[1], np.int32, len(values) + 1, 4 * values.offset)


def _schema_ids(ends: NDArray[np.int32], data: pa.Buffer) -> NDArray[np.uint32]:
    if np.diff(ends).min() < HEADER_BYTES:
        raise NotPlainError
    starts = ends[:-1].astype(np.int64)
    headers = np.frombuffer(data, np.uint8)[starts[:, None] + np.arange(HEADER_BYTES)]
    if headers[:, 0].any():
        raise NotPlainError
    found: NDArray[np.uint32] = np.unique(np.ascontiguousarray(headers[:, 1:]).view(">u4"))
    if len(found) > SCHEMAS_MAX:
        raise NotPlainError
    return found
