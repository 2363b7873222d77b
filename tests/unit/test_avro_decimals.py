"""Avro decimals are read exactly, up to a limit of bytes."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest

from bucketlog.client.schemas.avro import data_reader, parsed_schema
from bucketlog.client.schemas.avro_decimals import DECIMAL_BYTES_MAX
from bucketlog.client.schemas.codec import SchemaText
from bucketlog.log_format.errors import InvalidDataError

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
    """Data of a schema that contains itself is read by fastavro's Python code."""
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
