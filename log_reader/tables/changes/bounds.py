"""Files that cannot have a key of a batch, by the minima and maxima of their columns. Pure.

Invariant: a file that has a key of the batch is never left out. A file without bounds, or with
unreadable bounds, counts as a file that may have a key.
"""

import struct
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.types as kinds
from pyiceberg.conversions import from_bytes
from pyiceberg.manifest import DataFile
from pyiceberg.schema import Schema
from pyiceberg.types import PrimitiveType


class _SortedColumn(NamedTuple):
    field_id: int
    kind: PrimitiveType
    values: pa.Array


class KeyBounds:
    """`values` has the distinct values of each column of the key, by the column's name."""

    def __init__(self, schema: Schema, values: Mapping[str, pa.Array]) -> None:
        self._columns = [_sorted(schema, name, found) for name, found in values.items()]

    def may_have_keys(self, file: DataFile) -> bool:
        """Return False if no row of the file has a key of the batch."""
        return all(
            _may_have(
                column,
                (file.lower_bounds or {}).get(column.field_id),
                (file.upper_bounds or {}).get(column.field_id),
            )
            for column in self._columns
        )


def _sorted(schema: Schema, name: str, values: pa.Array) -> _SortedColumn:
    field = schema.find_field(name)
    assert isinstance(field.field_type, PrimitiveType)
    in_order = values.take(pa.compute.sort_indices(values))
    if kinds.is_timestamp(in_order.type):
        in_order = in_order.cast(pa.int64())
    elif kinds.is_date32(in_order.type):
        in_order = in_order.cast(pa.int32())
    return _SortedColumn(field.field_id, field.field_type, in_order)


def _may_have(column: _SortedColumn, lower: bytes | None, upper: bytes | None) -> bool:
    values: Sequence[Any] = column.values
    if lower is None or upper is None:
        return len(values) > 0
    try:
        first, last = (from_bytes(column.kind, bytes(bound)) for bound in (lower, upper))
        at = bisect_left(values, first, key=lambda value: value.as_py())
        return at < len(values) and bool(values[at].as_py() <= last)
    except (TypeError, ValueError, ArithmeticError, struct.error):
        return len(values) > 0  # bounds of another type, or damaged ones
