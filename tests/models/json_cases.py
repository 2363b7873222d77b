"""JSON values, and what becomes of them in a column: a value, or the reason of a dead letter.

The rules are those of docs/lake.md. `CASES` are of one field `f`; `DOCUMENTS` are whole values.
"""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, NamedTuple

import pyarrow as pa


class Refused(NamedTuple):
    """The reason has this text."""

    reason: str


class Case(NamedTuple):
    """The value of field `f` as JSON text; `unit` is the declared epoch unit."""

    kind: pa.DataType
    text: str
    expected: Any
    unit: str | None = None


INT, LONG, TINY = pa.int32(), pa.int64(), pa.int8()
DOUBLE, FLOAT, TEXT, FLAG = pa.float64(), pa.float32(), pa.string(), pa.bool_()
MONEY = pa.decimal128(10, 2)
WIDE = pa.decimal128(38, 0)
DAY, MOMENT, LOCAL = pa.date32(), pa.timestamp("us", tz="UTC"), pa.timestamp("us")
BYTES = pa.binary()
LIST, MAP = pa.list_(INT), pa.map_(TEXT, INT)
PAIR = pa.struct([("a", INT), ("b", pa.list_(pa.struct([("c", MONEY)])))])


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[misc, arg-type] # year, month, day and more


CASES = [
    # strings
    Case(TEXT, '"a"', "a"),
    Case(TEXT, '""', ""),
    Case(TEXT, "null", None),
    Case(TEXT, r'"\u00e9\ud83d\ude00"', "é😀"),
    Case(TEXT, r'"\ud83d"', Refused("half of a surrogate pair")),
    Case(TEXT, "1", Refused("f: a string is expected, not a number")),
    Case(TEXT, "true", Refused("not a boolean")),
    Case(TEXT, '{"x":1}', Refused("not an object")),
    Case(TEXT, '["a"]', Refused("not an array")),
    # booleans
    Case(FLAG, "true", True),
    Case(FLAG, "false", False),
    Case(FLAG, '"true"', Refused("f: true or false is expected, not a string")),
    Case(FLAG, "1", Refused("not a number")),
    # whole numbers
    Case(INT, "0", 0),
    Case(INT, "-0", 0),
    Case(INT, "-2147483648", -(2**31)),
    Case(INT, "2147483647", 2**31 - 1),
    Case(INT, "2147483648", Refused("f: 2147483648 is out of range")),
    Case(INT, "1.0", 1),
    Case(INT, "1e3", 1000),
    Case(INT, "12.5", Refused("12.5 is not a whole number")),
    Case(INT, "1e-1", Refused("is not a whole number")),
    Case(INT, "1e999999999", Refused("is not a whole number of this type")),
    Case(INT, '"5"', Refused("f: a whole number is expected, not a string")),
    Case(INT, "true", Refused("not a boolean")),
    Case(TINY, "127", 127),
    Case(TINY, "128", Refused("out of range")),
    Case(LONG, "9223372036854775807", 2**63 - 1),
    Case(LONG, "9223372036854775808", Refused("out of range")),
    Case(LONG, "9007199254740993", 2**53 + 1),
    # binary floating point: the nearest number
    Case(DOUBLE, "1", 1.0),
    Case(DOUBLE, "0.1", 0.1),
    Case(DOUBLE, "1e308", 1e308),
    Case(DOUBLE, "1e309", Refused("out of range")),
    Case(DOUBLE, "-1e309", Refused("out of range")),
    Case(DOUBLE, "1e-400", 0.0),
    Case(DOUBLE, '"NaN"', Refused("f: a number is expected, not a string")),
    Case(DOUBLE, "NaN", Refused("the value is not JSON: NaN")),
    Case(DOUBLE, "Infinity", Refused("not JSON: Infinity")),
    Case(DOUBLE, "false", Refused("not a boolean")),
    Case(FLOAT, "0.5", 0.5),
    Case(FLOAT, "1e39", Refused("out of range")),
    Case(FLOAT, "0.1", 0.10000000149011612),
    Case(FLOAT, "1.00000005960464477539", 1.0),
    Case(FLOAT, "1.000000059604644775390625", 1.0),
    Case(FLOAT, "1.00000005960464477540", 1 + 2**-23),
    Case(FLOAT, "-1.00000005960464477540", -1 - 2**-23),
    Case(FLOAT, "1.00000017881393432617187499", 1 + 2**-23),
    Case(FLOAT, "16777217.0000000000001", 16777218.0),
    Case(FLOAT, "16777217", 16777216.0),
    Case(FLOAT, "1e-400", 0.0),
    Case(FLOAT, "3.4028234663852886e38", 3.4028234663852886e38),
    # decimals: exact
    Case(MONEY, "1.23", Decimal("1.23")),
    Case(MONEY, "1", Decimal("1.00")),
    Case(MONEY, "1.230", Decimal("1.23")),
    Case(MONEY, "1e2", Decimal("100.00")),
    Case(MONEY, "1.239", Refused("f: 1.239 has more than 2 digits after the point")),
    Case(MONEY, "0.001", Refused("more than 2 digits")),
    Case(MONEY, "-0.01", Decimal("-0.01")),
    Case(MONEY, "0", Decimal("0.00")),
    Case(MONEY, "99999999.99", Decimal("99999999.99")),
    Case(MONEY, "100000000", Refused("does not fit in decimal(10,2)")),
    Case(MONEY, "1e999999999", Refused("does not fit")),
    Case(MONEY, '"12.30"', Decimal("12.30")),
    Case(MONEY, '" 12.30"', Refused("not the string")),
    Case(MONEY, '"1,2"', Refused("not the string")),
    Case(MONEY, '"0x10"', Refused("not the string")),
    Case(MONEY, "true", Refused("f: a number is expected, not a boolean")),
    Case(WIDE, "9" * 38, Decimal("9" * 38)),
    Case(WIDE, "1" + "0" * 38, Refused("does not fit")),
    # dates
    Case(DAY, '"2024-02-29"', date(2024, 2, 29)),
    Case(DAY, '"2023-02-29"', Refused("'2023-02-29' is not a date")),
    Case(DAY, '"2024-2-9"', Refused("is not a date")),
    Case(DAY, '"2024-02-29T00:00:00Z"', Refused("is not a date")),
    Case(DAY, '"29.02.2024"', Refused("is not a date")),
    Case(DAY, "19782", Refused("f: a string is expected, not a number")),
    # timestamps as strings
    Case(MOMENT, '"2024-02-29T12:30:00Z"', utc(2024, 2, 29, 12, 30)),
    Case(MOMENT, '"2024-02-29 12:30:00"', utc(2024, 2, 29, 12, 30)),
    Case(MOMENT, '"2024-02-29T12:30:00.123456+01:00"', utc(2024, 2, 29, 11, 30, 0, 123456)),
    Case(MOMENT, '"2024-02-29T12:30:00.5-05:30"', utc(2024, 2, 29, 18, 0, 0, 500000)),
    Case(MOMENT, '"2024-02-29T12:30:00.123456000Z"', utc(2024, 2, 29, 12, 30, 0, 123456)),
    Case(MOMENT, '"2024-02-29T12:30:00.123456789Z"', Refused("is finer than a microsecond")),
    Case(MOMENT, '"1969-12-31T23:00:00Z"', utc(1969, 12, 31, 23)),
    Case(MOMENT, '"2024-02-29"', Refused("is not a timestamp")),
    Case(MOMENT, '"2024-02-29T24:00:00Z"', Refused("is not a timestamp")),
    Case(MOMENT, '"2024-02-29T12:30:60Z"', Refused("is not a timestamp")),
    Case(MOMENT, '"2024-02-30T12:30:00Z"', Refused("is not a date")),
    Case(MOMENT, '"2024-02-29T12:30:00+99:00"', Refused("is not a timestamp")),
    Case(MOMENT, '"0001-01-01T00:00:00+01:00"', Refused("is not a timestamp")),
    Case(MOMENT, '"now"', Refused("is not a timestamp")),
    Case(LOCAL, '"2024-02-29T12:30:00"', datetime(2024, 2, 29, 12, 30)),  # noqa: DTZ001 - it has none
    Case(LOCAL, '"2024-02-29T12:30:00Z"', Refused("has a zone, the column has none")),
    # timestamps as numbers: a declared unit, and a sane range
    Case(MOMENT, "1709209800000", Refused("the epoch unit is not declared")),
    Case(MOMENT, "1709209800000", utc(2024, 2, 29, 12, 30), "milliseconds"),
    Case(MOMENT, "1709209800000.5", utc(2024, 2, 29, 12, 30, 0, 500), "milliseconds"),
    Case(MOMENT, "1709209800000.0001", Refused("finer than a microsecond"), "milliseconds"),
    Case(MOMENT, "1709209800", Refused("not between 1971-01-01 and 2100-01-01"), "milliseconds"),
    Case(MOMENT, "1709209800000", Refused("is the unit another one?"), "seconds"),
    Case(MOMENT, "1709209800000000", Refused("is the unit another one?"), "milliseconds"),
    Case(MOMENT, "1709209800.000001", utc(2024, 2, 29, 12, 30, 0, 1), "seconds"),
    Case(MOMENT, "1709209800000001", utc(2024, 2, 29, 12, 30, 0, 1), "microseconds"),
    Case(MOMENT, "0", Refused("not between"), "seconds"),
    Case(MOMENT, "1e30", Refused("out of range"), "seconds"),
    Case(MOMENT, '"1709209800"', Refused("is not a timestamp"), "seconds"),
    Case(MOMENT, "true", Refused("not a boolean"), "seconds"),
    Case(LOCAL, "1709209800", datetime(2024, 2, 29, 12, 30), "seconds"),  # noqa: DTZ001 - it has none
    # bytes
    Case(BYTES, '"AAE="', b"\x00\x01"),
    Case(BYTES, '""', b""),
    Case(BYTES, '"QQ=="', b"A"),
    Case(BYTES, '"QR=="', Refused("f: not base64: bits behind the last byte")),
    Case(BYTES, '"AAF="', Refused("f: not base64: bits behind the last byte")),
    Case(BYTES, '"AAE"', Refused("f: not base64")),
    Case(BYTES, '"A A E ="', Refused("f: not base64")),
    Case(BYTES, "[0, 1]", Refused("f: a string is expected, not an array")),
    # nested
    Case(LIST, "[1, null, 3]", [1, None, 3]),
    Case(LIST, "[]", []),
    Case(LIST, '[1, "2"]', Refused("f[]: a whole number is expected, not a string")),
    Case(LIST, "1", Refused("f: an array is expected, not a number")),
    Case(MAP, '{"x": 1, "y": null}', [("x", 1), ("y", None)]),
    Case(MAP, '{"x": "1"}', Refused("f{}: a whole number")),
    Case(MAP, "[]", Refused("f: an object is expected, not an array")),
    Case(PAIR, '{"a": 1, "more": 2}', {"a": 1, "b": None}),
    Case(PAIR, '{"b": [{"c": 1.5}]}', {"a": None, "b": [{"c": Decimal("1.50")}]}),
    Case(PAIR, '{"b": [{"c": 1.555}]}', Refused("f.b[].c: 1.555 has more than 2 digits")),
    Case(PAIR, '{"a": 1, "a": 2}', Refused("the name 'a' is there twice")),
]  # fmt: skip

DOCUMENTS: list[tuple[bytes, dict[str, Any] | Refused]] = [
    (b'{"f": "a"}', {"f": "a"}),
    (b"{}", {}),
    (b' {"f": "a", "other": {"x": [1, 2]}}\n', {"f": "a", "other": {"x": [1, 2]}}),
    (b'{"id":"a"},"value":{"id":"b"}', Refused("Extra data at 10")),
    (b'{"id":"a"} {"id":"b"}', Refused("Extra data")),
    (b'{"id":"a"}\n{"id":"b"}', Refused("Extra data")),
    (b'{"f":"a"}}', Refused("Extra data")),
    (b"", Refused("the value is empty")),
    (b" \n", Refused("the value is empty")),
    (b"no JSON", Refused("not JSON: Expecting value at 0")),
    (b"null", Refused("the value is null, not an object")),
    (b"5", Refused("the value is a number, not an object")),
    (b"[]", Refused("the value is an array")),
    (b'"a"', Refused("the value is a string")),
    (b'{"f":"a"', Refused("not JSON")),
    (b"{'f': 'a'}", Refused("not JSON")),
    (b"{\"f\": 'a'}", Refused("not JSON")),
    (b"{f: 1}", Refused("not JSON")),
    (b'{"f": 1,}', Refused("not JSON")),
    (b'{"f": 01}', Refused("not JSON")),
    (b'{"f": +1}', Refused("not JSON")),
    (b'{"f": .5}', Refused("not JSON")),
    (b'{"f": 1} // one', Refused("Extra data")),
    (b'{"f": "a\nb"}', Refused("not JSON: Invalid control character")),
    (b'{"f": "\xff"}', Refused("not UTF-8: byte 7")),
    (b'\xef\xbb\xbf{"f": "a"}', Refused("not JSON")),
    ('{"f": "a"}'.encode("utf-16"), Refused("not UTF-8")),
    (b"[" * 200_000, Refused("nested too deeply")),
    (b'{"f": ' + b"1" * 401 + b"}", Refused("a number has 401 digits")),
    (b'{"f": 1e99999999999999999999}', Refused("out of range")),
]
