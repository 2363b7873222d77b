"""The schema of values as text: what is accepted, and where it is wrong."""

import pyarrow as pa
import pytest

from bucketlog.log_format.errors import ConfigurationError
from bucketlog.log_reader.tables.schema_text import parse_schema

WHEN = pa.timestamp("us", tz="UTC")


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("", {}),
        ("id string", {"id": pa.string()}),
        (" ID: STRING ,amount  double ", {"ID": pa.string(), "amount": pa.float64()}),
        (
            "a tinyint, b smallint, c int, d bigint",
            {
                "a": pa.int8(),
                "b": pa.int16(),
                "c": pa.int32(),
                "d": pa.int64(),
            },
        ),
        (
            "a decimal, b decimal(7), c decimal(38,38)",
            {
                "a": pa.decimal128(10, 0),
                "b": pa.decimal128(7, 0),
                "c": pa.decimal128(38, 38),
            },
        ),
        (
            "a timestamp, b timestamp_ntz, c date",
            {
                "a": WHEN,
                "b": pa.timestamp("us"),
                "c": pa.date32(),
            },
        ),
        ("a array<array<int>>", {"a": pa.list_(pa.list_(pa.int32()))}),
        (
            "a map<string,struct<x:int,y binary>>",
            {
                "a": pa.map_(
                    pa.string(), pa.struct([pa.field("x", pa.int32()), pa.field("y", pa.binary())])
                ),
            },
        ),
        ("`a b,``c` boolean", {"a b,`c": pa.bool_()}),
        ("1st float", {"1st": pa.float32()}),
    ],
)
def test_schemas(text: str, fields: dict[str, pa.DataType]) -> None:
    assert parse_schema(text) == pa.schema(list(fields.items()))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("id", "character 3: '' is not a type"),
        ("id string,", "character 11: a field is expected"),
        ("id strin", "'strin' is not a type"),
        ("id string not null", "',' is expected, not 'not'"),
        ("id string amount double", "',' is expected, not 'amount'"),
        ("a decimal(39,1)", "decimal(39,1)"),
        ("a decimal(3,4)", "decimal(3,4)"),
        ("a decimal(0)", "decimal(0,0)"),
        ("a decimal(99999)", "is not a number of digits"),
        ("a array<int", "'>' is expected"),
        ("a map<int>", "',' is expected"),
        ("a struct<>", "'>' is not a name"),
        ("a interval", "'interval' is not a type"),
        ("a; drop", "'; drop' is unexpected"),
        ("`a int", "'`a int' is unexpected"),
        (", a int", "',' is not a name"),
        ("a " + "array<" * 60 + "int", "nested more than 50 deep"),
        ("a " + "struct<b:" * 60 + "int", "nested more than 50 deep"),
    ],
)
def test_the_error_names_the_place(text: str, told: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        parse_schema(text)
    assert told in raised.value.message


def test_a_long_schema_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="1,000,001 characters"):
        parse_schema("a" * 1_000_001)
