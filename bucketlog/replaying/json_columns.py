"""JSON values of many records, decoded at once: by the compiled kernel, else by pyarrow's reader.

The kernel decodes objects of simple fields, and pyarrow decodes the rows that the kernel doubts.
Invariant of the reader: each row comes from its own record. The values are joined by newlines. Each
begins with `{` and ends with `}`. The sequence `}`, newline, `{` can only be between two JSON
documents, because a string with a newline inside is an error of the reader. So each value has at
least one document, and each exactly one if there are as many documents as values.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from bucketlog.log_format.arrow_building import flag_array, number_array, replaced, scalar_of
from bucketlog.log_format.json_values.compiled_values import can_compile
from bucketlog.replaying.column import Column, Doubts, NotPlainError, text_array
from bucketlog.replaying.compiled_json import layout_of, parse_objects
from bucketlog.replaying.json_limits import rows_beyond

if TYPE_CHECKING:
    from bucketlog.log_reader.decoder_choice import DecoderChoice

_NEWLINE = scalar_of("\n", pa.string())
JOINED_BYTES_MAX = 2**30
"""pyarrow's reader counts the bytes of a block in 32 bits."""


def json_parser(
    column: Column, choice: "DecoderChoice"
) -> Callable[[pa.Array], tuple[pa.Array, pa.Array]]:
    """Make a function that decodes values of one column, as `parse_json` does. It compiles the
    kernel if `choice` compiles decoders."""
    layout = layout_of(column)

    def parse(values: pa.Array) -> tuple[pa.Array, pa.Array]:
        if layout is None or not len(values) or not (choice.compiles(0) and can_compile()):
            return parse_json(values, column)
        try:
            found, doubts = parse_objects(values, layout)
        except NotPlainError:
            return parse_json(values, column)
        return (
            _parsed_again(values, column, found, doubts) if doubts.true_count else (found, doubts)
        )

    return parse


def _parsed_again(
    values: pa.Array, column: Column, found: pa.Array, doubts: pa.Array
) -> tuple[pa.Array, pa.Array]:
    """`found`, with the doubtful rows as pyarrow reads them, and the rows that stay doubtful."""
    rows = pc.indices_nonzero(doubts)
    try:
        better, left = parse_json(values.take(rows), column)
    except NotPlainError:
        return found, doubts
    places = np.frombuffer(rows.buffers()[1], np.uint64, len(rows)).astype(np.int64)
    still = np.zeros(len(values), np.bool_)
    still[places] = np.array(left.to_pylist(), np.bool_)
    return replaced(found, places, better), flag_array(still)


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
