"""Arrow arrays from NumPy arrays and byte strings, and back, by their buffers.

`pyarrow.array` and `to_numpy` import pandas, if pandas is installed, to look for
pandas objects. This takes a third of a second. Reading a few records must not cost that much, so
the readers of the log build their arrays here.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


def number_array(
    values: NDArray[np.int32] | NDArray[np.int64], *, is_null: NDArray[np.bool_] | None = None
) -> pa.Array:
    """`values`, which the array shares; null where `is_null`."""
    kind = pa.int32() if values.dtype == np.int32 else pa.int64()
    if values.dtype not in (np.int32, np.int64):
        raise TypeError(f"{values.dtype} instead of int32 or int64")
    bits = None if is_null is None else validity(is_null)
    buffer = pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(kind, len(values), [bits, buffer])


def validity(is_null: NDArray[np.bool_]) -> pa.Buffer | None:
    """An array's buffer of validity; None if no value is null."""
    return _bits(~is_null) if is_null.any() else None


def numbers_of(array: pa.Array) -> NDArray[np.int64]:
    """The numbers of an int64 array or timestamp array without nulls, which they share."""
    values = np.frombuffer(array.buffers()[1], np.int64)
    return values[array.offset : array.offset + len(array)]


def flag_array(values: NDArray[np.bool_]) -> pa.Array:
    return pa.Array.from_buffers(pa.bool_(), len(values), [None, _bits(values)])


def scalar_of(value: int | float | str | bool, kind: pa.DataType) -> pa.Scalar:
    """`value` as an int64, a double, a string or a boolean. Raises `OverflowError`."""
    if kind == pa.string():
        return binary_array([str(value).encode()], kind)[0]
    if kind == pa.bool_():
        return flag_array(np.array([value], np.bool_))[0]
    data = pa.py_buffer(np.array([value], np.int64 if kind == pa.int64() else np.float64))
    return pa.Array.from_buffers(kind, 1, [None, data])[0]


def binary_array(values: Sequence[bytes | None], kind: pa.DataType | None = None) -> pa.Array:
    """`values` one after another. `kind` is `pa.binary()` (the default), or `pa.string()` if all
    are valid UTF-8."""
    ends = np.zeros(len(values) + 1, np.int64)
    np.cumsum([0 if value is None else len(value) for value in values], out=ends[1:])
    if ends[-1] > np.iinfo(np.int32).max:
        raise OverflowError(f"{ends[-1]} bytes do not fit an Arrow array with 32-bit offsets")
    is_null = np.array([value is None for value in values], np.bool_)
    data = pa.py_buffer(b"".join(value for value in values if value))
    buffers = [validity(is_null), pa.py_buffer(ends.astype(np.int32)), data]
    return pa.Array.from_buffers(kind or pa.binary(), len(values), buffers)


def repeated_text(text: str, count: int) -> pa.Array:
    data = text.encode()
    ends = np.arange(count + 1, dtype=np.int64) * len(data)
    if ends[-1] > np.iinfo(np.int32).max:
        raise OverflowError(f"{ends[-1]} bytes do not fit an Arrow array with 32-bit offsets")
    buffers = [None, pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(data * count)]
    return pa.Array.from_buffers(pa.string(), count, buffers)


def replaced(fast: pa.Array, rows: Sequence[int] | NDArray[np.int64], better: pa.Array) -> pa.Array:
    """Return `fast`, with the values of `better` in the rows `rows`."""
    wanted = np.arange(len(fast), dtype=np.int64)
    wanted[rows] = len(fast) + np.arange(len(rows))
    return pa.concat_arrays([fast, better]).take(number_array(wanted))


def _bits(values: NDArray[np.bool_]) -> pa.Buffer:
    return pa.py_buffer(np.packbits(values, bitorder="little"))
