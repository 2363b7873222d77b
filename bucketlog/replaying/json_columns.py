"""JSON values of many records, decoded by pyarrow's reader instead of one after another.

Invariant: each row comes from its own record. The values are joined by newlines. Each begins with
`{` and ends with `}`, and `}`, newline, `{` can only be between two JSON documents: a string
with a newline inside is an error of the reader. So each value has at least one document, and each
exactly one if there are as many documents as values.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from bucketlog.log_format.arrow_building import number_array, scalar_of
from bucketlog.replaying.column import Column, Doubts, NotPlainError, text_array
from bucketlog.replaying.json_limits import rows_beyond

_NEWLINE = scalar_of("\n", pa.string())
JOINED_BYTES_MAX = 2**30
"""pyarrow's reader counts the bytes of a block in 32 bits."""


def parse_json(values: pa.Array, column: Column) -> tuple[pa.Array, pa.Array]:
    """The column of `values` (binary, no null), and which rows pydantic has to decode again, as an
    array of booleans. Raises `NotPlainError`."""
    if column.plain is None or not column.fields or values.nbytes > JOINED_BYTES_MAX:
        raise NotPlainError
    texts = _objects(values)
    joined = _joined(texts)
    found = _read(joined, column.plain)
    if found.num_rows != len(values):
        raise NotPlainError
    arrays = [each.combine_chunks() for each in found.select(_names(column.plain)).columns]
    read = pa.StructArray.from_arrays(arrays, fields=list(column.plain))
    doubts = Doubts(len(values))
    lengths = np.frombuffer(pc.binary_length(texts).buffers()[1], np.int32, len(texts))
    doubts.add_rows(rows_beyond(memoryview(joined), lengths))
    return column.parsed(read, None, doubts), doubts.rows


def replaced(fast: pa.Array, rows: Sequence[int], better: pa.Array) -> pa.Array:
    """`fast` with the values of `better` in `rows`."""
    wanted = np.arange(len(fast), dtype=np.int64)
    wanted[rows] = len(fast) + np.arange(len(rows))
    return pa.concat_arrays([fast, better]).take(number_array(wanted))


def _names(kind: pa.StructType) -> list[str]:
    return [field.name for field in kind]


def _objects(values: pa.Array) -> pa.Array:
    texts = text_array(values)
    if not _are_objects(texts):
        texts = pc.ascii_trim(texts, " \t\r\n")
        if not _are_objects(texts):
            raise NotPlainError
    return texts


def _joined(texts: pa.Array) -> pa.Buffer:
    bounds = number_array(np.array([0, len(texts)], np.int32))
    return pc.binary_join(pa.ListArray.from_arrays(bounds, texts), _NEWLINE)[0].as_buffer()


def _are_objects(texts: pa.Array) -> bool:
    begin, end = pc.starts_with(texts, "{"), pc.ends_with(texts, "}")
    return bool(pc.all(pc.and_(begin, end)).as_py())


def _read(data: pa.Buffer, kind: pa.StructType) -> pa.Table:
    try:
        return pyarrow.json.read_json(
            pa.BufferReader(data),
            read_options=pyarrow.json.ReadOptions(use_threads=False, block_size=data.size + 1),
            parse_options=pyarrow.json.ParseOptions(
                explicit_schema=pa.schema(list(kind)), unexpected_field_behavior="ignore"
            ),
        )
    except pa.ArrowInvalid as error:
        raise NotPlainError from error
