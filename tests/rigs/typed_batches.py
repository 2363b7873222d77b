"""Stored values as a batch, and what a typed table makes of them: by its fast decoder, or one
value after another."""

from dataclasses import replace
from typing import Any

import pyarrow as pa

from bucketlog.log_format.arrow_building import binary_array, number_array
from bucketlog.log_format.errors import InvalidDataError
from bucketlog.log_reader.decoder_choice import DecoderChoice
from bucketlog.replaying.typed_table import TypedTable

CHOICES = (DecoderChoice(-1), DecoderChoice(2**60))
"""JSON is decoded by the compiled kernel where possible, or always by pyarrow."""


def batch_of(given_values: list[bytes | None]) -> pa.RecordBatch:
    count = len(given_values)
    names = ("partition", "offset", "timestamp", "key", "value")
    numbers = number_array(pa.array(range(count), pa.int64()).to_numpy())
    columns = [
        numbers.cast(pa.int32()),
        numbers,
        numbers.cast(pa.timestamp("us", tz="UTC")),
        pa.nulls(count, pa.binary()),
        binary_array(given_values),
    ]
    return pa.RecordBatch.from_arrays(columns, names)


def outcome(table: TypedTable, batch: pa.RecordBatch) -> list[Any] | str:
    """The rows, or the error."""
    try:
        made = table.typed(batch)
    except InvalidDataError as error:
        return str(error)
    made.validate(full=True)
    found: list[Any] = made.to_pylist()
    return found


def plainly(table: TypedTable, batch: pa.RecordBatch) -> list[Any] | str:
    """`outcome`, with pydantic alone."""
    fast = table._value
    table._value = replace(fast, fast=None)
    try:
        return outcome(table, batch)
    finally:
        table._value = fast
