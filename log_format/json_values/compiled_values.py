"""Decodes fields of JSON objects into columns, with the compiled code of `json_kernel`.

Invariant: a row that is not doubtful is one JSON object by RFC 8259. No name is repeated, and each
field has a value that the field's kind allows. The kernel marks every row that it does not
understand as doubtful. The caller decodes doubtful rows in another way.
"""

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bucketlog.log_format.arrow_building import flag_array, number_array, validity
from bucketlog.log_format.json_values import json_kernel
from bucketlog.log_format.json_values.json_kernel import (
    DATE,
    DECIMAL,
    FIELDS_MAX,
    FLAG,
    HARD_AT,
    HARD_COLUMNS,
    HARD_END,
    HARD_FIELD,
    HARD_ROW,
    INSTANT,
    INTEGER,
    JSON,
    KIND,
    LOCAL,
    PLAN_COLUMNS,
    POWERS,
    REAL,
    SLOT,
    SPAN_BITS,
    TEXT,
)
from bucketlog.log_format.json_values.json_tokens import PLACES
from bucketlog.log_format.machine_code import machine_code

TEXT_BYTES_MAX = 32 * 1024 * 1024
"""Maximum size of the texts of one call, in bytes. Larger inputs are decoded in several calls."""
DECIMAL_DIGITS_MAX = 18
"""Maximum number of digits of a decimal that the kernel decodes."""
_ARRAYS = {
    TEXT: 0,
    INTEGER: 1,
    INSTANT: 1,
    LOCAL: 1,
    DATE: 1,
    DECIMAL: 1,
    JSON: 1,
    REAL: 2,
    FLAG: 3,
}
"""The index of the array of results, by kind. Several kinds share an array."""
_POWERS = np.array([10.0**power for power in range(POWERS)], np.float64)
_ARGUMENTS = "data ends rows fields needed plan names ints reals flags text_ends texts room valid"
_ARGUMENTS += " doubts hard used powers places"
_NUMBERS = {"rows", "fields", "needed", "room"}


class JsonField(NamedTuple):
    """A field of the objects. `kind` is a constant of `json_kernel`. If `is_nullable`, JSON's null
    is a value. If `may_miss`, the field may be missing. A DECIMAL has at most `precision` digits,
    with `scale` digits after the point. `precision` is at most `DECIMAL_DIGITS_MAX`."""

    name: str
    kind: int
    is_nullable: bool = True
    may_miss: bool = True
    precision: int = 0
    scale: int = 0


@dataclass(frozen=True)
class Layout:
    """The description of fields for the kernel. `plan` has a row for each field, and `names` has
    all names. `needed` has a bit for each field that must exist. `slots` has the number of fields
    of each array."""

    plan: NDArray[np.int64]
    names: NDArray[np.uint8]
    needed: int
    slots: tuple[int, ...]

    @classmethod
    def of(cls, fields: Sequence[JsonField]) -> "Layout | None":
        """Return the layout, or None if there are no fields or too many for the kernel."""
        if not 0 < len(fields) <= FIELDS_MAX:
            return None
        slots = [0, 0, 0, 0]
        plan = np.zeros((len(fields), PLAN_COLUMNS), np.int64)
        names = [field.name.encode(errors="replace") for field in fields]
        needed = at = 0
        for number, (field, name) in enumerate(zip(fields, names, strict=True)):
            array = _ARRAYS[field.kind]
            place = field.kind, at, len(name), field.is_nullable, field.may_miss, slots[array]
            plan[number] = *place, field.scale, 10**field.precision
            needed |= 0 if field.may_miss else 1 << number
            slots[array] += 1
            at += len(name)
        return cls(plan, np.frombuffer(b"".join(names) or b"\0", np.uint8), needed, tuple(slots))


class ParsedValues(NamedTuple):
    """A column for each field, and the doubtful rows. In doubtful rows, all columns are null.
    Instants, dates and decimals (without their point) are integers. A JSON value is binary."""

    columns: list[pa.Array]
    doubts: NDArray[np.bool_]


@dataclass(frozen=True)
class _Result:
    """Arrays that the kernel fills. Each slot is a row of its array."""

    ints: NDArray[np.int64]
    reals: NDArray[np.float64]
    flags: NDArray[np.uint8]
    text_ends: NDArray[np.int32]
    texts: NDArray[np.uint8]
    valid: NDArray[np.uint8]
    doubts: NDArray[np.uint8]
    hard: NDArray[np.int64]
    used: NDArray[np.int64]

    @classmethod
    def of(cls, layout: Layout, rows: int, room: int) -> "_Result":
        texts, ints, reals, flags = layout.slots
        fields = len(layout.plan)
        return cls(
            np.empty((ints, rows), np.int64),
            np.empty((reals, rows), np.float64),
            np.empty((flags, rows), np.uint8),
            np.zeros((texts, rows + 1), np.int32),
            np.empty((texts, room), np.uint8),
            np.zeros((fields, rows), np.uint8),
            np.zeros(rows, np.uint8),
            np.empty((reals * rows, HARD_COLUMNS), np.int64),
            np.zeros(fields + 1, np.int64),
        )


def can_compile() -> bool:
    """Compile the kernel. Returns False if llvmlite is not installed."""
    return _kernel() is not None


def parse_values(values: pa.Array, layout: Layout) -> ParsedValues:
    """Decode `values` (binary, without nulls). `can_compile()` must be true."""
    ends = np.frombuffer(values.buffers()[1], np.int32, len(values) + 1, 4 * values.offset)
    room = int(ends[-1] - ends[0])
    if room * layout.slots[0] > TEXT_BYTES_MAX and len(values) > 1:
        half = len(values) // 2
        first, second = (parse_values(part, layout) for part in (values[:half], values[half:]))
        pairs = zip(first.columns, second.columns, strict=True)
        return ParsedValues(
            [pa.concat_arrays(pair) for pair in pairs],
            np.concatenate([first.doubts, second.doubts]),
        )
    result = _Result.of(layout, len(values), room)
    places = np.empty(PLACES, np.int64)
    kernel = _kernel()
    assert kernel is not None
    data = values.buffers()[2]
    kernel(
        data.address if data is not None else 0,
        ends.ctypes.data,
        len(values),
        len(layout.plan),
        layout.needed,
        *_addresses(layout.plan, layout.names, result.ints, result.reals, result.flags),
        *_addresses(result.text_ends, result.texts),
        room,
        *_addresses(result.valid, result.doubts, result.hard, result.used, _POWERS, places),
    )
    if result.used[-1]:
        _read_hard(data, layout, result)
    columns = [_column(number, layout, result, data) for number in range(len(layout.plan))]
    return ParsedValues(columns, result.doubts.view(np.bool_))


def _column(number: int, layout: Layout, result: _Result, data: pa.Buffer) -> pa.Array:
    kind, slot = layout.plan[number, KIND], layout.plan[number, SLOT]
    valid = result.valid[number].view(np.bool_)
    bits, rows = validity(~valid), len(valid)
    if kind == TEXT:
        text = result.texts[slot, : result.used[slot]].copy()
        ends = pa.py_buffer(result.text_ends[slot])
        return pa.StringArray.from_buffers(rows, ends, pa.py_buffer(text), bits)
    if kind == REAL:
        return pa.Array.from_buffers(pa.float64(), rows, [bits, pa.py_buffer(result.reals[slot])])
    if kind == FLAG:
        flags = flag_array(result.flags[slot].view(np.bool_)).buffers()[1]
        return pa.Array.from_buffers(pa.bool_(), rows, [bits, flags])
    if kind == JSON:
        spans = result.ints[slot]
        behind = np.maximum.accumulate(np.where(valid, spans & (1 << SPAN_BITS) - 1, 0))
        return _slices(data, np.where(valid, spans >> SPAN_BITS, behind), behind, ~valid)
    return pa.Array.from_buffers(pa.int64(), rows, [bits, pa.py_buffer(result.ints[slot])])


def _slices(
    data: pa.Buffer | None,
    begins: NDArray[np.int64],
    ends: NDArray[np.int64],
    is_null: NDArray[np.bool_],
) -> pa.Array:
    """Return the bytes of `data` between `begins` and `ends`, which are in ascending order."""
    bounds = np.ascontiguousarray(np.column_stack([begins, ends]), np.int32).reshape(-1)
    count = max(0, 2 * len(begins) - 1)
    buffers = [None, pa.py_buffer(bounds), data or pa.py_buffer(b"")]
    spans = pa.Array.from_buffers(pa.binary(), count, buffers)
    return spans.take(number_array(np.arange(0, count, 2, dtype=np.int32), is_null=is_null))


def _read_hard(data: pa.Buffer, layout: Layout, result: _Result) -> None:
    """Read doubles with many digits or large exponents with pyarrow, which rounds correctly."""
    hard = result.hard[: result.used[-1]]
    none = np.zeros(len(hard), np.bool_)
    texts = _slices(data, hard[:, HARD_AT], hard[:, HARD_END], none).cast(pa.string())
    read = np.frombuffer(texts.cast(pa.float64()).buffers()[1], np.float64)
    result.reals[layout.plan[hard[:, HARD_FIELD], SLOT], hard[:, HARD_ROW]] = read


def _addresses(*arrays: NDArray[Any]) -> Sequence[int]:
    return [each.ctypes.data for each in arrays]


@cache
def _kernel() -> Callable[..., int] | None:
    from importlib.resources import files  # slower than decoding a few records

    code = machine_code(files(__package__).joinpath("json_kernel.ll"), json_kernel.parse.__name__)
    if code is None:
        return None
    types = [ctypes.c_int64 if name in _NUMBERS else ctypes.c_void_p for name in _ARGUMENTS.split()]
    function = ctypes.CFUNCTYPE(ctypes.c_int64, *types)(code.address)

    def parse(*arguments: int) -> int:
        found: int = function(*arguments)
        return found if code.engine else 0  # the function needs the engine

    return parse
