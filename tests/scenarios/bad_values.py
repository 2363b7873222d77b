"""JSON values that fit `SCHEMA`, and kinds of values that do not fit, with parts of the reasons.

The rules are those of docs/lake.md. Pure: everything follows from a number or a seed.
"""

import base64
import json
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any, NamedTuple, TypeAlias

SCHEMA = (
    "id string, quantity int, small tinyint, total bigint, price decimal(10,2), ratio float, "
    "score double, paid boolean, due date, at timestamp, local timestamp_ntz, data binary, "
    "tags array<int>, counts map<string, int>, place struct<name: string, code: decimal(5,0)>"
)
START = datetime(2024, 2, 28, 23, 0, tzinfo=UTC)
LATE_MS = 1_709_209_800_000_000
"""The timestamp of a producer that writes microseconds as milliseconds: the year 56132."""
Row: TypeAlias = dict[str, Any]
Texts: TypeAlias = dict[str, str]
"""The JSON text of each field."""


class Good(NamedTuple):
    """A value that fits, and the columns that it becomes."""

    value: bytes
    row: Row


def good(number: int) -> Good:
    row, texts = _fields(number)
    return Good(_document(texts), row)


def _fields(number: int) -> tuple[Row, Texts]:
    """The row of a number, and the texts of its fields. In some values, fields are null, missing or
    unknown."""
    at = START + timedelta(milliseconds=number)
    local = at.replace(tzinfo=None) + timedelta(microseconds=number % 1000)
    data = number.to_bytes(8, "big")
    cents = number % 10_000_000
    row: Row = {
        "id": f"r{number} é😀\x00",
        "quantity": number % 1_000_000 - 500_000,
        "small": number % 256 - 128,
        "total": (number << 42) % (1 << 63),
        "price": Decimal(cents).scaleb(-2),
        "ratio": number / 4,
        "score": number / 7,
        "paid": number % 2 == 0,
        "due": date(2000, 1, 1) + timedelta(days=number % 20_000),
        "at": at,
        "local": local,
        "data": data,
        "tags": [number % 7, None],
        "counts": [("a", number % 100)],
        "place": {"name": f"p{number % 50}", "code": Decimal(number % 100_000)},
    }
    texts = {
        "id": json.dumps(row["id"], ensure_ascii=number % 2 == 0),
        "quantity": f"{row['quantity']}" if number % 4 else f"{row['quantity']}.0",
        "small": str(row["small"]),
        "total": str(row["total"]),
        "price": f"{cents // 100}.{cents % 100:02d}" if number % 4 else f'"{row["price"]}"',
        "ratio": repr(row["ratio"]),
        "score": repr(row["score"]),
        "paid": "true" if row["paid"] else "false",
        "due": f'"{row["due"]}"',
        "at": str(at_ms(at)) if number % 3 else f'"{at.isoformat()}"',
        "local": f'"{local.isoformat()}"',
        "data": f'"{base64.b64encode(data).decode()}"',
        "tags": f"[{number % 7}, null]",
        "counts": f'{{"a": {number % 100}}}',
        "place": f'{{"name": "p{number % 50}", "more": 1, "code": "{number % 100_000}"}}',
    }
    if number % 5 == 0:
        texts["unknown"] = '{"deep": [[[{"x": 1e999}]]]}'
    for name in list(row):
        if name != "id" and (number + len(name)) % 23 == 0:
            row[name] = None
            if number % 2:
                del texts[name]
            else:
                texts[name] = "null"
    return row, texts


def at_ms(moment: datetime) -> int:
    return round((moment - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(milliseconds=1))


def _document(texts: Mapping[str, str]) -> bytes:
    return ("{" + ", ".join(f'"{name}": {text}' for name, text in texts.items()) + "}").encode()


class Bad(NamedTuple):
    """A value that does not fit. The dead letter's reason contains `reason`. `number` is the
    number of the good value that was changed. `timestamp_ms` None means an ordinary timestamp."""

    kind: str
    value: bytes
    reason: str
    timestamp_ms: int | None = None
    number: int = 0


class _FieldKind(NamedTuple):
    """`text` takes the place of the field's value. The reason begins with `path`."""

    field: str
    text: str
    path: str


_FIELDS: Mapping[str, _FieldKind] = {
    "number for a string": _FieldKind("id", "5", "id: "),
    "object for a string": _FieldKind("id", '{"id": "a"}', "id: "),
    "lone surrogate": _FieldKind("id", r'"a\ud83d"', "id: "),
    "string for a whole number": _FieldKind("quantity", '"5"', "quantity: "),
    "boolean for a whole number": _FieldKind("quantity", "true", "quantity: "),
    "fraction": _FieldKind("quantity", "12.5", "quantity: 12.5 "),
    "int out of range": _FieldKind("quantity", "2147483648", "quantity: 2147483648 "),
    "tinyint out of range": _FieldKind("small", "-129", "small: -129 "),
    "bigint out of range": _FieldKind("total", "9223372036854775808", "total: "),
    "huge exponent": _FieldKind("total", "1e999999999", "total: "),
    "decimal that would be rounded": _FieldKind("price", "1.239", "price: 1.239 "),
    "decimal out of range": _FieldKind("price", "100000000.00", "price: "),
    "decimal with a comma": _FieldKind("price", '"1,20"', "price: "),
    "float out of range": _FieldKind("ratio", "1e39", "ratio: "),
    "double out of range": _FieldKind("score", "-1e309", "score: "),
    "NaN as a string": _FieldKind("score", '"NaN"', "score: "),
    "string for a boolean": _FieldKind("paid", '"yes"', "paid: "),
    "no such day": _FieldKind("due", '"2023-02-29"', "due: "),
    "another format of a date": _FieldKind("due", '"29.02.2024"', "due: "),
    "not a time": _FieldKind("at", '"now"', "at: "),
    "nanoseconds": _FieldKind("at", '"2024-02-29T12:30:00.123456789Z"', "at: "),
    "seconds for milliseconds": _FieldKind("at", "1709209800", "at: 1709209800 milliseconds "),
    "time before the range": _FieldKind("at", "-62135596800000", "at: "),
    "zone that the column lacks": _FieldKind("local", '"2024-02-29T12:30:00Z"', "local: "),
    "not base64": _FieldKind("data", '"AAE"', "data: "),
    "bits behind the last byte": _FieldKind("data", '"QR=="', "data: "),
    "object for an array": _FieldKind("tags", "{}", "tags: "),
    "bad element": _FieldKind("tags", "[1, true]", "tags[]: "),
    "bad value of a map": _FieldKind("counts", '{"x": "1"}', "counts{}: "),
    "array for an object": _FieldKind("place", "[]", "place: "),
    "bad member": _FieldKind("place", '{"code": 1.5}', "place.code: 1.5 "),
    "duplicate name in a member": _FieldKind("place", '{"name": "a", "name": "a"}', "'name'"),
}

_DOCUMENTS: Mapping[str, tuple[Callable[[bytes, Random], bytes], str]] = {
    "truncated": (lambda value, chance: value[: chance.randrange(1, 200)], "the value is not "),
    "invalid UTF-8": (lambda value, _: value[:-1] + b', "x": "\xff\xfe"}', "not UTF-8: byte "),
    "UTF-16": (lambda value, _: value.decode().encode("utf-16"), "not UTF-8: byte 0"),
    "byte order mark": (lambda value, _: b"\xef\xbb\xbf" + value, "not JSON: "),
    "duplicate name": (lambda value, _: value[:-1] + b', "id": "again"}', "the name 'id' is there"),
    "nested too deeply": (
        lambda value, chance: value[:-1] + b', "x": %s}' % _nested(chance.choice((500, 60_000))),
        "nested too deeply",
    ),
    "NaN": (lambda value, _: value[:-1] + b', "x": NaN}', "not JSON: NaN"),
    "Infinity": (lambda value, _: value[:-1] + b', "x": -Infinity}', "not JSON: -Infinity"),
    "trailing garbage": (lambda value, _: value + b" x", "not JSON: Extra data at "),
    "two values": (lambda value, _: value + b"\n" + value, "not JSON: Extra data at "),
    "empty": (lambda _value, chance: b" " * chance.randrange(3), "the value is empty"),
    "400 digits": (lambda value, _: value[:-1] + b', "x": %s}' % (b"1" * 401), "401 digits"),
    "single quotes": (lambda value, _: value.replace(b'"', b"'"), "not JSON: "),
    "not an object": (lambda value, _: b"[" + value + b"]", "an array, not an object"),
    "control character": (lambda value, _: value[:-1] + b', "x": "a\nb"}', "not JSON: "),
}
UNTIMELY = "timestamp of the record"
KINDS = (*_FIELDS, *_DOCUMENTS, UNTIMELY)
FIXED_SCHEMA = (
    SCHEMA.replace("quantity int", "quantity bigint")
    .replace("small tinyint", "small smallint")
    .replace("price decimal(10,2)", "price decimal(12,2)")
    .replace("ratio float", "ratio double")
)
"""The schema with wider types."""
FIXED: Mapping[str, tuple[str, Any]] = {
    "int out of range": ("quantity", 2147483648),
    "tinyint out of range": ("small", -129),
    "decimal out of range": ("price", Decimal("100000000.00")),
    "float out of range": ("ratio", 1e39),
}
"""The kinds that fit `FIXED_SCHEMA`, with their field and its value."""


def bad(kind: str, number: int, chance: Random) -> Bad:
    """Make a value of the kind, which otherwise is the value of `good(number)`."""
    _, texts = _fields(number)
    if kind in _FIELDS:
        field, text, path = _FIELDS[kind]
        return Bad(kind, _document({**texts, field: text}), path, number=number)
    value = _document(texts)
    if kind == UNTIMELY:
        reason = f"the timestamp of the record, {LATE_MS * 1000} "
        return Bad(kind, value, reason, LATE_MS, number)
    change, reason = _DOCUMENTS[kind]
    return Bad(kind, change(value, chance), reason, number=number)


def fixed_row(record: Bad) -> Row:
    """The row of a bad record of a kind in `FIXED`, by `FIXED_SCHEMA`."""
    field, value = FIXED[record.kind]
    return {**good(record.number).row, field: value}


def _nested(levels: int) -> bytes:
    return b"[" * levels + b"]" * levels
