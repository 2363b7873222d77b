"""Values of Avro and Protobuf become values of columns, exactly or not at all."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest

from bucketlog.log_reader.tables.conversions import TimeRules, converter
from bucketlog.log_reader.tables.json_text import BadValueError
from bucketlog.log_reader.tables.native_values import native_simple

INSTANT, WALL_CLOCK = pa.timestamp("us", tz="UTC"), pa.timestamp("us")
NOON = datetime(2024, 2, 29, 12, 0, 0, 250, tzinfo=UTC)
IDENTITY = UUID("12345678123456781234567812345678")


def converted(kind: pa.DataType, found: Any) -> Any:
    return converter(kind, "a", TimeRules(), native_simple)(found)


@pytest.mark.parametrize(
    ("kind", "found", "expected"),
    [
        (pa.string(), "text", "text"),
        (pa.string(), IDENTITY, str(IDENTITY)),
        (pa.bool_(), True, True),
        (pa.int32(), 7, 7),
        (pa.int32(), time(0, 0, 1, 5_000), 1_005),
        (pa.int64(), time(1, 0, 0, 5), 3_600_000_005),
        (pa.float64(), 0.1, 0.1),
        (pa.float64(), 3, 3.0),
        (pa.float64(), math.inf, math.inf),
        (pa.float32(), 0.5, 0.5),
        (pa.float32(), -math.inf, -math.inf),
        (pa.decimal128(5, 2), Decimal("1.20"), Decimal("1.20")),
        (pa.decimal128(20, 0), 2**64 - 1, Decimal(2**64 - 1)),
        (pa.binary(), b"\0\xff", b"\0\xff"),
        (pa.date32(), date(1, 1, 1), date(1, 1, 1)),
        (INSTANT, NOON, NOON),
        (INSTANT, NOON.astimezone(timezone(timedelta(hours=2))), NOON),
        (WALL_CLOCK, NOON.replace(tzinfo=None), NOON.replace(tzinfo=None)),
        (pa.list_(pa.int32()), [1, None], [1, None]),
        (pa.map_(pa.string(), pa.binary()), {"k": b"v"}, [("k", b"v")]),
        (pa.struct([("x", pa.float32())]), {"x": 1.5, "y": 2}, {"x": 1.5}),
    ],
)
def test_a_value_is_kept(kind: pa.DataType, found: Any, expected: Any) -> None:
    made = converted(kind, found)
    assert made == expected
    assert pa.array([made], kind).to_pylist() == pa.array([expected], kind).to_pylist()


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
def test_what_is_not_a_number_is_kept(kind: pa.DataType) -> None:
    assert math.isnan(converted(kind, math.nan))


@pytest.mark.parametrize(
    ("kind", "found", "reason"),
    [
        (pa.string(), 7, "a string is expected, not a number"),
        (pa.string(), b"x", "a string is expected, not bytes"),
        (pa.string(), NOON, "a string is expected, not a time"),
        (pa.int32(), 2**31, "out of range"),
        (pa.int64(), 1.0, "a whole number is expected"),
        (pa.int32(), time(0, 0, 0, 1), "finer than a millisecond"),
        (pa.int64(), True, "a whole number is expected"),
        (pa.float32(), 1e39, "out of range"),
        (pa.decimal128(5, 2), Decimal("1.234"), "more than 2 digits after the point"),
        (pa.decimal128(5, 2), Decimal(1000), "does not fit"),
        (pa.decimal128(5, 2), 0.5, "a number"),
        (pa.date32(), NOON, "a string is expected"),
        (INSTANT, NOON.replace(tzinfo=None), "has no zone"),
        (WALL_CLOCK, NOON, "has a zone"),
        (INSTANT, date(2024, 1, 1), "a timestamp"),
    ],
)
def test_other_values_do_not_fit(kind: pa.DataType, found: Any, reason: str) -> None:
    with pytest.raises(BadValueError, match=reason):
        converted(kind, found)
