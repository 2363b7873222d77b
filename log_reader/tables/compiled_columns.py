"""Compiled code converts the JSON values of many records into typed columns at once.

Invariant: in a row that is not doubtful, each column equals the result of `conversions.converter`
for the same value. The conversions judge doubtful rows, and give the reasons of dead letters.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds
from numpy.typing import NDArray

from bucketlog.log_format.arrow_building import binary_array, number_array, numbers_of
from bucketlog.log_format.json_values.compiled_values import (
    DECIMAL_DIGITS_MAX,
    JsonField,
    Layout,
    ParsedValues,
    can_compile,
    parse_values,
)
from bucketlog.log_format.json_values.json_kernel import (
    DATE,
    DECIMAL,
    FLAG,
    INSTANT,
    INTEGER,
    JSON,
    LOCAL,
    REAL,
    TEXT,
)
from bucketlog.log_reader.decoder_choice import DecoderChoice
from bucketlog.log_reader.tables.conversions import (
    EPOCH_MICROSECONDS,
    Convert,
    TimeRules,
    converter,
    epoch_bounds,
    nullable,
)
from bucketlog.log_reader.tables.json_text import BadValueError, parse_value

PROCESS = DecoderChoice(20_000)
"""The choice of this process. Compiling takes as long as about 20,000 conversions one by one."""
Doubts = NDArray[np.bool_]
Finish = Callable[[pa.Array, Doubts], pa.Array]
"""Makes the column of a field from the kernel's column, and marks more doubtful rows."""
_NO_VALUE = binary_array([b"{}"])[0]
_FLOAT_MAX, _FLOAT_NORMAL_MIN = float(np.finfo(np.float32).max), float(np.finfo(np.float32).tiny)
_SCALE_MAX = 9
"""Maximum scale of decimals for the kernel. Of 18 digits, at least 9 are before the point."""
_BITS_BEHIND_FLOAT = (1 << 29) - 1
"""The bits of a double that a float does not have."""
_TIE = 1 << 28


class _Field(NamedTuple):
    field: JsonField
    finish: Finish


@dataclass(frozen=True)
class CompiledColumns:
    """Decodes JSON values into the columns of a table's fields."""

    layout: Layout
    finishers: Sequence[Finish]

    @classmethod
    def of(cls, fields: pa.Schema, times: TimeRules) -> "CompiledColumns | None":
        """Return a decoder, or None if the kernel cannot decode objects with these fields."""
        found = [_field(each.name, each.type, times) for each in fields]
        layout = Layout.of([each.field for each in found])
        return None if layout is None else cls(layout, [each.finish for each in found])

    def columns(self, values: pa.Array, choice: DecoderChoice) -> ParsedValues | None:
        """Return columns and doubtful rows of `values` (binary). The columns are null where a value
        is null. Return None if compiled code is not to decode these values."""
        if not len(values) or not choice.compiles(len(values)) or not can_compile():
            return None
        given = pc.fill_null(values, _NO_VALUE) if values.null_count else values
        parsed = parse_values(given, self.layout)
        columns = [
            finish(column, parsed.doubts)
            for finish, column in zip(self.finishers, parsed.columns, strict=True)
        ]
        return ParsedValues(columns, parsed.doubts)


def _field(name: str, kind: pa.DataType, times: TimeRules) -> _Field:
    simple = {pa.string(): TEXT, pa.bool_(): FLAG, pa.int64(): INTEGER, pa.float64(): REAL}
    if kind in simple:
        return _Field(JsonField(name, simple[kind]), _same)
    if kinds.is_signed_integer(kind):
        return _Field(JsonField(name, INTEGER), _narrow(kind))
    if kinds.is_float32(kind):
        return _Field(JsonField(name, REAL), _float)
    if kinds.is_date32(kind):
        return _Field(JsonField(name, DATE), _date)
    if kinds.is_decimal128(kind) and kind.scale <= _SCALE_MAX:
        digits = min(kind.precision, DECIMAL_DIGITS_MAX)
        field = JsonField(name, DECIMAL, precision=digits, scale=kind.scale)
        return _Field(field, lambda column, doubts: _decimals(column, kind))
    if kinds.is_timestamp(kind) and kind.unit == "us":
        unit = times.epoch_units.get(name, times.epoch_unit)
        if unit is not None:
            scale = EPOCH_MICROSECONDS[unit]
            return _Field(JsonField(name, INTEGER), _since_epoch(kind, scale, epoch_bounds(times)))
        place = LOCAL if kind.tz is None else INSTANT
        return _Field(JsonField(name, place), lambda column, doubts: column.view(kind))
    return _Field(JsonField(name, JSON), _converted(kind, nullable(converter(kind, name, times))))


def _same(column: pa.Array, doubts: Doubts) -> pa.Array:
    return column


def _doubt(column: pa.Array, doubts: Doubts, is_doubtful: NDArray[np.bool_]) -> None:
    """Mark doubtful values. Nulls are not marked, because their bytes have no meaning."""
    if is_doubtful.any():
        validity = column.buffers()[0]
        if validity is not None:
            bits = np.frombuffer(validity, np.uint8)
            is_valid = np.unpackbits(bits, count=len(column), bitorder="little").view(np.bool_)
            is_doubtful = is_doubtful & is_valid
        doubts |= is_doubtful


def _narrow(kind: pa.DataType) -> Finish:
    bound = 1 << (kind.bit_width - 1)

    def finish(column: pa.Array, doubts: Doubts) -> pa.Array:
        numbers = numbers_of(column)
        _doubt(column, doubts, (numbers < -bound) | (numbers >= bound))
        return column.cast(kind, safe=False)

    return finish


def _float(column: pa.Array, doubts: Doubts) -> pa.Array:
    """Make floats from doubles. A double halfway between two floats is doubtful, because it may
    already be rounded."""
    reals = np.frombuffer(column.buffers()[1], np.float64, len(column))
    size = np.abs(reals)
    is_tie = reals.view(np.int64) & _BITS_BEHIND_FLOAT == _TIE
    is_small = (size < _FLOAT_NORMAL_MIN) & (size != 0)
    with np.errstate(invalid="ignore"):
        _doubt(column, doubts, is_tie | is_small | ~(size <= _FLOAT_MAX))
    return column.cast(pa.float32(), safe=False)


def _date(column: pa.Array, doubts: Doubts) -> pa.Array:
    return column.cast(pa.int32(), safe=False).view(pa.date32())


def _decimals(column: pa.Array, kind: pa.Decimal128Type) -> pa.Array:
    low = numbers_of(column)
    both = np.column_stack([low, low >> 63])
    return pa.Array.from_buffers(kind, len(column), [column.buffers()[0], pa.py_buffer(both)])


def _since_epoch(kind: pa.TimestampType, scale: int, allowed: range) -> Finish:
    first, last = -(-allowed.start // scale), (allowed.stop - 1) // scale

    def finish(column: pa.Array, doubts: Doubts) -> pa.Array:
        numbers = numbers_of(column)
        is_out = (numbers < first) | (numbers > last)
        _doubt(column, doubts, is_out)
        micros = number_array(np.where(is_out, 0, numbers) * scale)
        made = pc.if_else(column.is_valid(), micros, pa.scalar(None, pa.int64()))
        return made.view(kind)

    return finish


def _converted(kind: pa.DataType, convert: Convert) -> Finish:
    """Convert values of a type that the kernel does not know, one after another."""

    def finish(column: pa.Array, doubts: Doubts) -> pa.Array:
        found: list[Any] = []
        for at, value in enumerate(column.to_pylist()):
            try:
                found.append(None if value is None else convert(parse_value(value)))
            except BadValueError:
                doubts[at] = True
                found.append(None)
        return pa.array(found, kind)

    return finish
