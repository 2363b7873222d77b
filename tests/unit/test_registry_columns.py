"""Columns of a table from the schemas of a registry."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from bucketlog.log_format.errors import ConfigurationError
from bucketlog.log_reader.tables.registry_formats.avro_columns import avro_fields
from bucketlog.log_reader.tables.registry_formats.columns import (
    FIELDS_MAX,
    INSTANT,
    PATH_MAX,
    WALL_CLOCK,
    merged,
)
from bucketlog.log_reader.tables.registry_formats.json_schema_columns import json_schema_fields
from bucketlog.log_reader.tables.registry_formats.protobuf_columns import message_fields
from bucketlog.schema_registry.avro_parsing import parsed_schema
from bucketlog.schema_registry.codec import SchemaText
from tests.models import order_messages

TWICE = {"type": "record", "name": "I", "fields": [{"name": "x", "type": "int"}] * 2}
DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}


def record(name: str, **fields: Any) -> dict[str, Any]:
    return {
        "type": "record",
        "name": name,
        "fields": [{"name": each, "type": kind} for each, kind in fields.items()],
    }


def of_avro(schema: Any) -> pa.Schema:
    return avro_fields(parsed_schema(SchemaText(json.dumps(schema), "AVRO")))


def of_json(schema: Any, **references: Any) -> pa.Schema:
    texts = {name: json.dumps(each) for name, each in references.items()}
    return json_schema_fields(json.dumps(schema), texts)


def logical(base: str, name: str) -> dict[str, str]:
    return {"type": base, "logicalType": name}


def json_object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


@pytest.mark.parametrize(
    ("kind", "column"),
    [
        ("boolean", pa.bool_()),
        ("int", pa.int32()),
        ("long", pa.int64()),
        ("float", pa.float32()),
        ("double", pa.float64()),
        ("bytes", pa.binary()),
        ("string", pa.string()),
        ({"type": "string"}, pa.string()),
        ({"type": "fixed", "name": "F", "size": 3}, pa.binary()),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, pa.string()),
        (logical("string", "uuid"), pa.string()),
        (logical("int", "date"), pa.date32()),
        (logical("int", "time-millis"), pa.time32("ms")),
        (logical("long", "time-micros"), pa.time64("us")),
        (logical("long", "timestamp-millis"), INSTANT),
        (logical("long", "timestamp-micros"), INSTANT),
        (logical("long", "local-timestamp-micros"), WALL_CLOCK),
        (logical("long", "timestamp-nanos"), pa.int64()),
        ({"type": "int", "logicalType": ["date"]}, pa.int32()),
        (DECIMAL, pa.decimal128(9, 2)),
        (["null", "string"], pa.string()),
        (["int", "null", "long"], pa.int64()),
        ({"type": "array", "items": "int"}, pa.list_(pa.int32())),
        ({"type": "map", "values": ["null", DECIMAL]}, pa.map_(pa.string(), pa.decimal128(9, 2))),
        (record("I", x="int"), pa.struct([("x", pa.int32())])),
        (record("I", x="int", nothing="null"), pa.struct([("x", pa.int32())])),
    ],
)
def test_types_of_avro(kind: Any, column: pa.DataType) -> None:
    assert of_avro(record("R", a=kind)) == pa.schema([("a", column)])


def nested_arrays(levels: int) -> Any:
    kind: Any = "int"
    for _ in range(levels):
        kind = {"type": "array", "items": kind}
    return kind


def doubling_records(levels: int) -> Any:
    """Return a schema with 2 ** `levels` fields: each record contains the next record twice."""
    inner: Any = record(f"R{levels}", x="int")
    for level in reversed(range(levels)):
        inner = record(f"R{level}", a=inner, b=f"R{level + 1}")
    return inner


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ("string", "not a record"),
        (["null", record("R", a="int")], "not a record"),
        (record("R"), "no fields"),
        (record("R", a="null"), "no fields"),
        (record("R", a=record("I")), "a cannot be a column: the schema has no fields"),
        (record("R", a=["null", "R"]), "a cannot be a column: the record R contains itself"),
        (record("R", a={"type": "array", "items": "null"}), r"a\[\] .*all values are null"),
        (record("R", a=["int", "string"]), "a cannot .* types int32 and string"),
        (record("R", a=[record("A", x="int"), record("B", x="int")]), "a union of several types"),
        (record("R", a={**DECIMAL, "precision": 39}), "39 digits, and the limit is 38"),
        (record("R", a=nested_arrays(101)), "more than 100 levels of nested types"),
        (doubling_records(20), f"more than {FIELDS_MAX:,} fields"),
        (record("R", a=logical("bytes", "decimal")), "a cannot .* the precision None"),
        (record("R", a={**DECIMAL, "precision": 0, "scale": 0}), "a cannot .* the precision 0"),
        (record("R", a={**DECIMAL, "scale": None}), "a cannot .* the scale None"),
        (record("R", **{"": "int"}), "the schema has a field of the name ''"),
        ({"type": "record", "name": "R", "fields": [{"name": 5, "type": "int"}]}, "the name '5'"),
        (record("R", a=record("I", **{"\ud800": "int"})), "a cannot .* name is not Unicode"),
        (record("R", a=record("I", **{"n" * PATH_MAX: "int"})), "path has more than 2,000"),
        (record("R", a=TWICE), "a cannot be a column: the schema has the field 'x' twice"),
    ],
)
def test_schemas_of_avro_without_columns(schema: Any, reason: str) -> None:
    with pytest.raises(ConfigurationError, match=reason) as caught:
        of_avro(schema)
    assert "--schema" in str(caught.value)


def test_types_of_protobuf() -> None:
    line = pa.struct([("sku", pa.string()), ("count", pa.int64())])
    assert message_fields(order_messages.Order.DESCRIPTOR) == pa.schema(
        [
            ("id", pa.string()),
            ("total", pa.struct([("cents", pa.int64())])),
            ("lines", pa.list_(line)),
            ("placed", INSTANT),
        ]
    )


@pytest.mark.parametrize(
    ("schema", "column"),
    [
        ({"type": "string"}, pa.string()),
        ({"type": "integer"}, pa.int64()),
        ({"type": "number"}, pa.float64()),
        ({"type": ["null", "boolean"]}, pa.bool_()),
        ({"type": ["integer", "number"], "minimum": 1}, None),
        ({"type": "string", "format": "date-time"}, INSTANT),
        ({"type": "string", "format": "date"}, pa.date32()),
        ({"type": "string", "format": "email"}, pa.string()),
        ({"oneOf": [{"type": "null"}, {"type": "string"}]}, pa.string()),
        ({"allOf": [{"$ref": "#/$defs/i"}]}, pa.struct([("x", pa.int64())])),
        ({"enum": ["a", "b"]}, pa.string()),
        ({"type": "array", "items": {"type": "integer"}}, pa.list_(pa.int64())),
        (
            {"type": "object", "additionalProperties": {"type": "number"}},
            pa.map_(pa.string(), pa.float64()),
        ),
        ({"$ref": "#/$defs/i"}, pa.struct([("x", pa.int64())])),
        ({"$ref": "other.json"}, pa.struct([("y", pa.string())])),
        ({"$ref": "other.json#/properties/y"}, pa.string()),
        ({"type": "object"}, None),
        ({"$ref": "#"}, None),
        ({"$ref": "#/$defs/none"}, None),
        (True, None),
        (json_object(x={"type": "null"}), None),
        (json_object(**{"\ud800": {"type": "string"}}), None),
        ({"$ref": ["#"]}, None),
        ({"$ref": f"#/$defs/{'/' * 1_000}i"}, None),
        ({"type": ["string"] * 8}, None),
    ],
)
def test_types_of_a_json_schema(schema: Any, column: pa.DataType | None) -> None:
    """A schema without a column is refused."""
    inner = json_object(x={"type": "integer"})
    whole = {**json_object(a=schema), "$defs": {"i": inner}}
    other = json_object(y={"type": "string"})
    if column is None:
        with pytest.raises(ConfigurationError, match="a cannot be a column"):
            of_json(whole, **{"other.json": other})
    else:
        assert of_json(whole, **{"other.json": other}) == pa.schema([("a", column)])


def test_a_json_schema_of_a_text_has_no_columns() -> None:
    with pytest.raises(ConfigurationError, match="not an object with properties"):
        of_json({"type": "string"})


def test_versions_are_merged() -> None:
    inner = pa.struct([("x", pa.int32())])
    first = pa.schema([("id", pa.string()), ("n", pa.int32()), ("s", inner), ("old", pa.bool_())])
    wide = pa.struct([("x", pa.int64()), ("y", pa.string())])
    second = pa.schema(
        [("n", pa.int64()), ("s", wide), ("id", pa.string()), ("d", pa.decimal128(5, 2))]
    )
    third = pa.schema([("d", pa.decimal128(9, 2))])
    assert merged([first, second, third]) == pa.schema(
        [
            ("id", pa.string()),
            ("n", pa.int64()),
            ("s", wide),
            ("old", pa.bool_()),
            ("d", pa.decimal128(9, 2)),
        ]
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (pa.string(), pa.int32()),
        (pa.int64(), pa.float64()),
        (pa.decimal128(5, 2), pa.decimal128(5, 3)),
        (pa.list_(pa.string()), pa.string()),
        (pa.timestamp("us"), pa.timestamp("us", tz="UTC")),
        (pa.time32("ms"), pa.time64("us")),
        (pa.time32("ms"), pa.int64()),
    ],
)
def test_versions_of_other_types_are_refused(one: pa.DataType, other: pa.DataType) -> None:
    schemas = [pa.schema([("a", pa.struct([("b", kind)]))]) for kind in (one, other)]
    with pytest.raises(ConfigurationError, match=r"a\.b cannot be a column: the types"):
        merged(schemas)


def test_versions_of_too_many_fields_are_refused() -> None:
    members = pa.struct([(f"f{number}", pa.int32()) for number in range(100)])
    schemas = (pa.schema([(f"a{number}", pa.list_(members))]) for number in range(FIELDS_MAX))
    with pytest.raises(ConfigurationError, match="schemas have more than 10,000 fields"):
        merged(schemas)
    assert next(schemas).names == ["a99"]


def test_times_of_day_are_numbers() -> None:
    """Milliseconds cannot become wider: numbers of 64 bits are microseconds."""
    millis, micros = pa.time32("ms"), pa.time64("us")
    both = pa.struct([("m", pa.map_(pa.string(), micros)), ("l", pa.list_(millis))])
    kinds = [("a", millis), ("b", micros), ("c", both), ("d", pa.int32()), ("e", pa.int64())]
    later = pa.schema([("a", pa.int32()), ("b", pa.int64()), ("d", millis), ("e", micros)])
    numbers = pa.struct([("m", pa.map_(pa.string(), pa.int64())), ("l", pa.list_(pa.int32()))])
    assert merged([pa.schema(kinds), later]) == pa.schema(
        [
            ("a", pa.int32()),
            ("b", pa.int64()),
            ("c", numbers),
            ("d", pa.int32()),
            ("e", pa.int64()),
        ]
    )
