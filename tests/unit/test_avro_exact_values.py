"""Decimals, times and numbers of Avro data: read exactly, and within a limit of bytes."""

from __future__ import annotations

import json
from datetime import time
from decimal import Decimal
from typing import Any

import pytest

from bucketlog.log_format.errors import InvalidDataError
from bucketlog.log_format.wire.frames import uvarint
from bucketlog.schema_registry.avro_exact_values import DECIMAL_BYTES_MAX
from bucketlog.schema_registry.avro_parsing import data_reader, parsed_schema
from bucketlog.schema_registry.codec import SchemaText

OF_BYTES = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}
FIXED = {**OF_BYTES, "type": "fixed", "name": "F", "size": 4}
NINE_DIGITS = (123456789).to_bytes(4, "big")
"""More digits than the precision of the schemas."""
AS_BYTES = b"\x08" + NINE_DIGITS
EXACT = Decimal("1234567.89")


def read(schema: Any, data: bytes) -> Any:
    return data_reader(parsed_schema(SchemaText(json.dumps(schema), "AVRO")))(data, 0)


@pytest.mark.parametrize(
    ("schema", "data", "expected"),
    [
        (OF_BYTES, AS_BYTES, EXACT),
        (["null", OF_BYTES], b"\x02" + AS_BYTES, EXACT),
        ({"type": "array", "items": FIXED}, b"\x02" + NINE_DIGITS + b"\0", [EXACT]),
        ({"type": "map", "values": OF_BYTES}, b"\x02\x02k" + AS_BYTES + b"\0", {"k": EXACT}),
    ],
)
def test_a_decimal_keeps_all_its_digits(schema: Any, data: bytes, expected: Any) -> None:
    assert read(schema, data) == expected


@pytest.mark.parametrize("of_itself", [False, True])
def test_a_decimal_of_a_record_keeps_all_its_digits(of_itself: bool) -> None:
    """A schema that contains itself has another reader."""
    inner = {"type": "record", "name": "I", "fields": [{"name": "x", "type": FIXED}]}
    fields: list[Any] = [{"name": "i", "type": inner}, {"name": "again", "type": "F"}]
    if of_itself:
        fields.append({"name": "self", "type": ["null", "R"]})
    record = {"type": "record", "name": "R", "fields": fields}

    found = read(record, NINE_DIGITS + NINE_DIGITS + b"\0" * of_itself)

    assert (found["i"]["x"], found["again"]) == (EXACT, EXACT)


def test_a_decimal_of_too_many_bytes_is_refused() -> None:
    size = DECIMAL_BYTES_MAX + 1
    length = bytes([(size * 2) & 0x7F | 0x80, (size * 2) >> 7])
    with pytest.raises(InvalidDataError, match=r"1,025 bytes, and the limit is 1,024"):
        read(OF_BYTES, length + b"\x01" * size)


@pytest.mark.parametrize(
    ("kind", "logical", "units", "expected"),
    [
        ("int", "time-millis", 0, time()),
        ("int", "time-millis", 86_399_999, time(23, 59, 59, 999_000)),
        ("int", "time-millis", 86_400_000, None),
        ("int", "time-millis", -1, None),
        ("long", "time-micros", 7, time(0, 0, 0, 7)),
        ("long", "time-micros", -1, None),
    ],
)
def test_a_time_of_day_is_kept_or_refused(
    kind: str, logical: str, units: int, expected: time | None
) -> None:
    schema = {"type": kind, "logicalType": logical}
    data = uvarint(units << 1 if units >= 0 else (-units << 1) - 1)
    if expected is not None:
        assert read(schema, data) == expected
        return
    with pytest.raises(InvalidDataError, match="no day has the time"):
        read(schema, data)


def test_a_number_of_many_bytes_is_refused_at_once() -> None:
    """The reader of schemas that contain themselves would take time quadratic in the bytes."""
    fields = [{"name": "n", "type": "long"}, {"name": "next", "type": ["null", "R"]}]
    schema = {"type": "record", "name": "R", "fields": fields}
    with pytest.raises(InvalidDataError, match="a number has more than 10 bytes"):
        read(schema, b"\xff" * 11)
    longest = b"\xff" * 9 + b"\x01\0"
    assert read(schema, longest) == {"n": -(2**63), "next": None}
    assert read(schema, b"\x08\x02\x06\0") == {"n": 4, "next": {"n": 3, "next": None}}


@pytest.mark.parametrize("named", [{}, {"Q": 5}])
def test_a_schema_that_says_it_was_checked_is_checked(named: Any) -> None:
    marks = {"__fastavro_parsed": True, "__named_schemas": named}
    schema = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "Q"}], **marks}
    with pytest.raises(InvalidDataError, match="no Avro schema"):
        parsed_schema(SchemaText(json.dumps(schema), "AVRO"))


def test_a_schema_of_too_many_levels_has_no_reader() -> None:
    kind: Any = OF_BYTES
    for number in range(250):
        kind = {"type": "record", "name": f"R{number}", "fields": [{"name": "a", "type": kind}]}
    with pytest.raises(InvalidDataError, match="nested too deeply"):
        read(kind, b"\0")


def test_a_schema_of_many_levels_of_names_is_read_by_python() -> None:
    """Its text has few levels. The compiled reader's stack would overflow."""
    kinds: list[Any] = [{"type": "record", "name": "R0", "fields": [{"name": "a", "type": "int"}]}]
    for number in range(1, 3_000):
        fields = [{"name": "a", "type": f"R{number - 1}"}]
        kinds.append({"type": "record", "name": f"R{number}", "fields": fields})
    schema = {"type": "record", "name": "T", "fields": [{"name": "u", "type": kinds}]}
    assert read(schema, b"\x02\x06")["u"][1] == {"a": {"a": 3}}
    with pytest.raises(InvalidDataError, match="RecursionError"):
        read(schema, uvarint(2_999 << 1) + b"\x02")
