"""A typed column: its Arrow type, and both ways of filling it. Pure.

Invariant: if `parse` accepts JSON for a row, and marks no doubt about it, then the row is what
pydantic would make of the same JSON.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bucketlog.log_format.arrow_building import binary_array, flag_array, number_array

_NO = flag_array(np.zeros(1, np.bool_))[0]
_ZERO = number_array(np.zeros(1, np.int32))[0]

Check = Callable[[pa.Array], pa.Array]
"""Marks the values that need a closer look, by an array of booleans."""


class NotPlainError(Exception):
    """pyarrow cannot decode these JSON values as pydantic does: pydantic decodes them."""


class Doubts:
    """The rows that pydantic decodes again, as an array of booleans."""

    def __init__(self, rows: int) -> None:
        self.rows = flag_array(np.zeros(rows, np.bool_))

    def add(self, marked: pa.Array) -> None:
        self.rows = pc.or_(self.rows, pc.fill_null(marked, _NO))

    def add_rows(self, rows: np.ndarray) -> None:
        if len(rows):
            marked = np.zeros(len(self.rows), np.bool_)
            marked[rows] = True
            self.add(flag_array(marked))


@dataclass(frozen=True)
class Column:
    """`kind` is the column's type, `plain` what pyarrow reads of JSON (None: only pydantic decodes
    it), `value_of` makes what `pyarrow.array` takes of a decoded value. `checks` mark doubtful
    values. `optional`: JSON null is a value. `may_miss`: a missing field is null."""

    kind: pa.DataType
    plain: pa.DataType | None
    value_of: Callable[[Any], Any]
    checks: tuple[Check, ...] = ()
    optional: bool = False
    may_miss: bool = False
    fields: tuple["Field", ...] = ()
    items: "Column | None" = None

    def only(self, names: Collection[str]) -> "Column":
        """Return a struct with only these fields."""
        kept = tuple(field for field in self.fields if field.name in names)
        convert = self.value_of

        def value_of(value: Any) -> Any:
            row = convert(value)
            return None if row is None else {field.name: row[field.name] for field in kept}

        kind = pa.struct([field.arrow for field in kept])
        return replace(self, kind=kind, plain=None, value_of=value_of, fields=kept)

    def fields_of(self, found: pa.StructArray) -> pa.StructArray:
        """Select the fields of this column from a column with more fields."""
        made = [pc.struct_field(found, field.name) for field in self.fields]
        return pa.StructArray.from_arrays(made, fields=list(self.kind), mask=found.is_null())

    def parsed(self, found: pa.Array, present: pa.Array | None, doubts: Doubts) -> pa.Array:
        """The column from what pyarrow read. `present`: rows whose parent is not null (None: all).
        Raises `NotPlainError`."""
        is_null = found.is_null()
        if not (self.optional and self.may_miss):
            doubts.add(is_null if present is None else pc.and_(is_null, present))
        for check in self.checks:
            doubts.add(check(found))
        if self.fields:
            inside = found.is_valid()
            made = [
                field.column.parsed(
                    pc.struct_field(found, index), inside if found.null_count else present, doubts
                )
                for index, field in enumerate(self.fields)
            ]
            return pa.StructArray.from_arrays(made, fields=list(self.kind), mask=is_null)
        if self.items is not None:
            return self._parsed_list(found, self.items)
        if found.type == self.kind:
            return found
        try:
            return found.cast(self.kind)
        except pa.ArrowInvalid as error:
            raise NotPlainError from error

    def _parsed_list(self, found: pa.Array, items: "Column") -> pa.Array:
        values = found.flatten()
        inner = Doubts(len(values))
        made = items.parsed(values, None, inner)
        if inner.rows.true_count:
            raise NotPlainError
        if made is values:
            return found
        counts = pc.fill_null(pc.list_value_length(found), _ZERO)
        ends = pc.cumulative_sum(counts).cast(pa.int32())
        starts = pa.concat_arrays([number_array(np.zeros(1, np.int32)), ends])
        return pa.ListArray.from_arrays(starts, made, type=self.kind, mask=found.is_null())


@dataclass(frozen=True)
class Field:
    """`json` is its name in JSON, `name` the attribute and the column."""

    name: str
    json: str
    column: Column

    @property
    def arrow(self) -> pa.Field:
        return pa.field(self.name, self.column.kind)


@dataclass(frozen=True)
class StructReader:
    """Makes a row of a decoded value. `read` gets a field of the value by its name."""

    read: Callable[[Any, str], Any]
    fields: tuple[Field, ...]

    def __call__(self, value: Any) -> dict[str, Any] | None:
        if value is None:
            return None
        read = self.read
        return {field.name: field.column.value_of(read(value, field.name)) for field in self.fields}


def struct(fields: Sequence[Field], read: Callable[[Any, str], Any], *, plain: bool) -> Column:
    """`read` gets a field of a decoded value by its name."""
    readable = [(field.json, field.column.plain) for field in fields]
    names = {field.json for field in fields}
    is_plain = plain and len(names) == len(fields) and all(kind for _, kind in readable)
    return Column(
        pa.struct([field.arrow for field in fields]),
        pa.struct([pa.field(name, kind) for name, kind in readable]) if is_plain else None,
        StructReader(read, tuple(fields)),
        fields=tuple(fields),
    )


def scalar(kind: pa.DataType, plain: pa.DataType | None, *checks: Check) -> Column:
    """A column whose values are as pydantic gives them."""
    return Column(kind, plain, same, checks)


def same(value: Any) -> Any:
    return value


def text_array(values: pa.Array) -> pa.Array:
    """UTF-8. Raises `NotPlainError`."""
    try:
        return values.cast(pa.string())
    except pa.ArrowInvalid as error:
        raise NotPlainError from error


def filled(column: Column, values: Sequence[Any]) -> pa.Array:
    """Make the column of decoded values; None is null. Raises `ValueError`, `TypeError`,
    `OverflowError`."""
    if isinstance(column.value_of, StructReader):
        return _filled_struct(column, column.value_of, values)
    plain = [None if value is None else column.value_of(value) for value in values]
    if column.kind == pa.binary() and all(isinstance(each, bytes | None) for each in plain):
        return binary_array(plain)
    return pa.array(plain, column.kind)


def _filled_struct(column: Column, reader: StructReader, values: Sequence[Any]) -> pa.Array:
    """Column by column: a dictionary for each row would take as long as everything else."""
    present = [value for value in values if value is not None]
    read = reader.read
    made = pa.StructArray.from_arrays(
        [
            filled(field.column, [read(value, field.name) for value in present])
            for field in reader.fields
        ],
        fields=list(column.kind),
    )
    if len(present) == len(values):
        return made
    is_null = np.array([value is None for value in values], np.bool_)
    rows = np.cumsum(~is_null, dtype=np.int64) - 1
    return made.take(number_array(np.maximum(rows, 0), is_null=is_null))
