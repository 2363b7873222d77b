"""JSON objects with fields of simple types, decoded into columns by `json_kernel`.

Invariant: a row without doubt is what pydantic makes of the same JSON. The kernel doubts whatever
it does not know; other decoders judge the doubtful rows.
"""

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bucketlog.log_format.arrow_building import flag_array, number_array, validity
from bucketlog.log_format.machine_code import machine_code
from bucketlog.replaying import json_kernel
from bucketlog.replaying.column import Column, Doubts
from bucketlog.replaying.json_kernel import (
    FIELDS_MAX,
    FLAG,
    HARD_AT,
    HARD_COLUMNS,
    HARD_END,
    HARD_FIELD,
    HARD_ROW,
    INSTANT,
    INTEGER,
    LOCAL,
    PLAN_COLUMNS,
    POWERS,
    REAL,
    SLOT,
    TEXT,
)

TEXT_BYTES_MAX = 32 * 1024 * 1024
"""Largest size of the texts of one call, in bytes. More values are decoded in several calls."""
_ARRAYS = {TEXT: 0, INTEGER: 1, INSTANT: 1, LOCAL: 1, REAL: 2, FLAG: 3}
"""The number of the array of results by kind. Several kinds share an array."""
_POWERS = np.array([10.0**power for power in range(POWERS)], np.float64)
_ARGUMENTS = "data ends rows fields needed plan names ints reals flags text_ends texts room valid"
_ARGUMENTS += " doubts hard used powers"
_NUMBERS = {"rows", "fields", "needed", "room"}


@dataclass(frozen=True)
class Layout:
    """The kernel's view of a column's fields. `plan` has a row for each field, and `names` has the
    names. `needed` has a bit for each field that must exist. `slots` counts the fields by array."""

    column: Column
    plan: NDArray[np.int64]
    names: NDArray[np.uint8]
    needed: int
    slots: tuple[int, ...]


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


def layout_of(column: Column) -> Layout | None:
    """Return the kernel's view of a column, or None if the kernel cannot decode the column."""
    kinds = [_kind(field.column) for field in column.fields]
    names = [field.json.encode(errors="replace") for field in column.fields]
    if column.plain is None or None in kinds or not 0 < len(kinds) <= FIELDS_MAX:
        return None
    slots = [0, 0, 0, 0]
    plan = np.zeros((len(kinds), PLAN_COLUMNS), np.int64)
    needed = at = 0
    for number, (kind, name, field) in enumerate(zip(kinds, names, column.fields, strict=True)):
        assert kind is not None
        array = _ARRAYS[kind]
        may_miss = field.column.optional and field.column.may_miss
        plan[number] = kind, at, len(name), field.column.optional, may_miss, slots[array]
        needed |= 0 if may_miss else 1 << number
        slots[array] += 1
        at += len(name)
    joined = np.frombuffer(b"".join(names) or b"\0", np.uint8)
    return Layout(column, plan, joined, needed, tuple(slots))


def _kind(column: Column) -> int | None:
    if column.plain == pa.string():
        if not pa.types.is_timestamp(column.kind):
            return TEXT
        return LOCAL if column.kind.tz is None else INSTANT
    known = {pa.int64(): INTEGER, pa.float64(): REAL, pa.bool_(): FLAG}
    return None if column.plain is None else known.get(column.plain)


def can_compile() -> bool:
    """Compile the kernel. Returns False if llvmlite is not installed."""
    return _kernel() is not None


def parse_objects(values: pa.Array, layout: Layout) -> tuple[pa.StructArray, pa.Array]:
    """Decode `values` (binary, no null). Returns the column, and an array of booleans that marks
    the doubtful rows. Raises `NotPlainError`. Needs `can_compile()`."""
    ends = np.frombuffer(values.buffers()[1], np.int32, len(values) + 1, 4 * values.offset)
    room = int(ends[-1] - ends[0])
    if room * layout.slots[0] > TEXT_BYTES_MAX and len(values) > 1:
        half = len(values) // 2
        made = [parse_objects(part, layout) for part in (values[:half], values[half:])]
        first, second = zip(*made, strict=True)
        return pa.concat_arrays(first), pa.concat_arrays(second)
    result = _Result.of(layout, len(values), room)
    kernel = _kernel()
    assert kernel is not None
    data = values.buffers()[2]
    doubtful = kernel(
        data.address if data is not None else 0,
        ends.ctypes.data,
        len(values),
        len(layout.plan),
        layout.needed,
        *_addresses(layout.plan, layout.names, result.ints, result.reals, result.flags),
        *_addresses(result.text_ends, result.texts),
        room,
        *_addresses(result.valid, result.doubts, result.hard, result.used, _POWERS),
    )
    if result.used[-1]:
        _read_hard(data, layout, result)
    doubts = Doubts(len(values))
    if doubtful:
        doubts.add(flag_array(result.doubts.astype(np.bool_)))
    arrays = [_field(number, layout, result, doubts) for number in range(len(layout.plan))]
    found = pa.StructArray.from_arrays(arrays, fields=list(layout.column.kind))
    return found, doubts.rows


def _field(number: int, layout: Layout, result: _Result, doubts: Doubts) -> pa.Array:
    column, slot = layout.column.fields[number].column, layout.plan[number, SLOT]
    kind, valid = layout.plan[number, 0], result.valid[number].view(np.bool_)
    bits, rows = validity(~valid), len(valid)
    if kind == TEXT:
        text = result.texts[slot, : result.used[slot]].copy()
        ends = pa.py_buffer(result.text_ends[slot])
        found = pa.StringArray.from_buffers(rows, ends, pa.py_buffer(text), bits)
    elif kind == REAL:
        found = pa.Array.from_buffers(pa.float64(), rows, [bits, pa.py_buffer(result.reals[slot])])
    elif kind == FLAG:
        flags = flag_array(result.flags[slot].view(np.bool_)).buffers()[1]
        found = pa.Array.from_buffers(pa.bool_(), rows, [bits, flags])
    else:
        numbers = pa.py_buffer(result.ints[slot])
        found = pa.Array.from_buffers(pa.int64(), rows, [bits, numbers])
        if kind != INTEGER:
            return found.view(column.kind)
    # the kernel has judged missing fields and nulls
    return replace(column, optional=True, may_miss=True).parsed(found, None, doubts)


def _read_hard(data: pa.Buffer, layout: Layout, result: _Result) -> None:
    """Read doubles with many digits or large exponents by pyarrow, which rounds them correctly."""
    hard = result.hard[: result.used[-1]]
    bounds = np.ascontiguousarray(hard[:, [HARD_AT, HARD_END]], np.int32)
    spans = pa.StringArray.from_buffers(2 * len(hard) - 1, pa.py_buffer(bounds), data)
    texts = spans.take(number_array(np.arange(0, len(spans), 2, dtype=np.int32)))
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
