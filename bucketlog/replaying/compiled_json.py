"""Compiled code decodes JSON objects with fields of simple types into typed columns.

Invariant: a row that is not doubtful equals the row that pydantic makes of the same JSON. Other
decoders judge the doubtful rows.
"""

from dataclasses import dataclass, replace

import pyarrow as pa

from bucketlog.log_format.arrow_building import flag_array
from bucketlog.log_format.json_values.compiled_values import JsonField, Layout, parse_values
from bucketlog.log_format.json_values.json_kernel import FLAG, INSTANT, INTEGER, LOCAL, REAL, TEXT
from bucketlog.replaying.column import Column, Doubts


@dataclass(frozen=True)
class ColumnLayout:
    """A column, and the description of its fields for the kernel."""

    column: Column
    fields: Layout


def layout_of(column: Column) -> ColumnLayout | None:
    """Return the layout of a column, or None if the kernel cannot decode the column."""
    if column.plain is None:
        return None
    fields = []
    for field in column.fields:
        kind = _kind(field.column)
        if kind is None:
            return None
        may_miss = field.column.optional and field.column.may_miss
        fields.append(JsonField(field.json, kind, field.column.optional, may_miss))
    layout = Layout.of(fields)
    return None if layout is None else ColumnLayout(column, layout)


def _kind(column: Column) -> int | None:
    if column.plain == pa.string():
        if not pa.types.is_timestamp(column.kind):
            return TEXT
        return LOCAL if column.kind.tz is None else INSTANT
    known = {pa.int64(): INTEGER, pa.float64(): REAL, pa.bool_(): FLAG}
    return None if column.plain is None else known.get(column.plain)


def parse_objects(values: pa.Array, layout: ColumnLayout) -> tuple[pa.StructArray, pa.Array]:
    """Decode `values` (binary, no null). Returns the column, and an array of booleans that marks
    the doubtful rows. Raises `NotPlainError`. Needs `can_compile()`."""
    parsed = parse_values(values, layout.fields)
    doubts = Doubts(len(values))
    if parsed.doubts.any():
        doubts.add(flag_array(parsed.doubts))
    arrays = [
        _typed(field.column, found, doubts)
        for field, found in zip(layout.column.fields, parsed.columns, strict=True)
    ]
    found = pa.StructArray.from_arrays(arrays, fields=list(layout.column.kind))
    return found, doubts.rows


def _typed(column: Column, found: pa.Array, doubts: Doubts) -> pa.Array:
    if pa.types.is_timestamp(column.kind):
        return found.view(column.kind)
    # the kernel has judged missing fields and nulls
    return replace(column, optional=True, may_miss=True).parsed(found, None, doubts)
