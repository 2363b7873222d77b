"""Rows from values in the wire format of a schema registry."""

from __future__ import annotations

import base64
import io
import json
import pickle
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from bucketlog.log_format.errors import ConfigurationError, SchemaRegistryError
from bucketlog.log_reader.tables.conversions import TimeRules
from bucketlog.log_reader.tables.registry_formats.values import (
    VERSIONS_MAX,
    NewerSchemaError,
    RegistryColumns,
    RegistryValues,
)
from bucketlog.log_reader.tables.rows import MadeRows, RowMaker, RowShape
from bucketlog.schema_registry.framing import header, message_indexes
from bucketlog.schema_registry.registry_access import RegistryAccess
from tests.models import order_messages
from tests.servers.stand_in_registry import (
    NOT_FOUND,
    RegistryAnswer,
    json_answer,
    schema_answer,
    served_registry,
)

SUBJECT = "orders-value"
FIRST = {"type": "record", "name": "R", "fields": [{"name": "id", "type": "string"}]}
SECOND = {**FIRST, "fields": [*FIRST["fields"], {"name": "n", "type": ["null", "long"]}]}
MILLIS = {"logicalType": "time-millis"}
AT = datetime(2024, 5, 1, 12, tzinfo=UTC)
UNAVAILABLE = RegistryAnswer(503, b"{}")


def registry_answers(versions: Mapping[int, RegistryAnswer]) -> dict[str, RegistryAnswer]:
    """Return answers of a registry with one subject. `versions` has answers by schema id."""
    answers = {f"/subjects/{SUBJECT}/versions": json_answer([*range(1, len(versions) + 1)])}
    for version, (schema_id, answer) in enumerate(versions.items(), 1):
        found = json.loads(answer.body) | {"subject": SUBJECT, "version": version, "id": schema_id}
        answers[f"/schemas/ids/{schema_id}"] = answer
        answers[f"/subjects/{SUBJECT}/versions/{version}"] = json_answer(found)
    return answers


def avro_answer(schema: Any) -> RegistryAnswer:
    return schema_answer(json.dumps(schema))


def avro_value(schema_id: int, schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    out.write(header(schema_id))
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()


def rows_of(shape: RowShape, *values: bytes | None) -> MadeRows:
    """Return the rows of records with these values. The shape is pickled, as for a task."""
    count = len(values)
    records = pa.RecordBatch.from_pydict(
        {
            "key": pa.nulls(count, pa.binary()),
            "value": pa.array(values, pa.binary()),
            "topic": ["orders"] * count,
            "partition": pa.array([0] * count, pa.int32()),
            "offset": list(range(count)),
            "timestamp": pa.array([AT] * count, pa.timestamp("us", tz="UTC")),
        }
    )
    return RowMaker(pickle.loads(pickle.dumps(shape))).rows(records)


@contextmanager
def shape_of(
    versions: Mapping[int, RegistryAnswer], message: str | None = None
) -> Iterator[tuple[RowShape, dict[str, RegistryAnswer]]]:
    """Yield the shape from all versions, and the registry's answers. Tests may change answers."""
    answers = registry_answers(versions)
    with served_registry(answers) as url:
        access = RegistryAccess(url)
        columns = RegistryColumns.of(access, [SUBJECT], message)
        values = RegistryValues(access, columns, message)
        yield RowShape(columns.fields, bad_records="dead-letter", values=values), answers


def test_values_of_all_versions_become_rows() -> None:
    with shape_of({3: avro_answer(FIRST), 5: avro_answer(SECOND)}) as (shape, _):
        made = rows_of(
            shape,
            avro_value(5, SECOND, {"id": "new", "n": 7}),
            None,
            avro_value(3, FIRST, {"id": "old"}),
        )
    found = made.rows.select(["id", "n", "_log_offset", "_log_tombstone"]).to_pylist()
    assert [tuple(row.values()) for row in found] == [
        ("new", 7, 0, False),
        (None, None, 1, True),
        ("old", None, 2, False),
    ]
    assert made.dead.num_rows == 0


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b'{"id": "a"}', "begins with byte 0x7b"),
        (b"\0\0", "2 bytes, a frame has 5"),
        (header(3) + b"\x08a", "no Avro data of its schema"),
        (header(3) + b"\x02ab", "1 bytes are left over"),
        (header(99) + b"\x02a", "schema 99 is not a version of subject 'orders-value'"),
    ],
)
def test_other_values_become_dead_letters(value: bytes, reason: str) -> None:
    with shape_of({3: avro_answer(FIRST)}) as (shape, _):
        made = rows_of(shape, value, avro_value(3, FIRST, {"id": "a"}))
    assert made.rows.num_rows == 1
    (letter,) = made.dead.to_pylist()
    assert (letter["_log_offset"], letter["value"]) == (0, value)
    assert reason in letter["reason"]


def test_a_schema_that_is_registered_during_a_run_ends_it() -> None:
    """The table has no column for the new field yet. The next run adds the column."""
    value = avro_value(5, SECOND, {"id": "new", "n": 7})
    with shape_of({3: avro_answer(FIRST)}) as (shape, answers):
        answers.update(registry_answers({3: avro_answer(FIRST), 5: avro_answer(SECOND)}))
        with pytest.raises(NewerSchemaError, match=r"schema 5 .* after the run began") as caught:
            rows_of(shape, value)
    assert caught.value.retriable


@pytest.mark.parametrize("path", ["/schemas/ids/3", f"/subjects/{SUBJECT}/versions"])
def test_a_registry_that_does_not_answer_makes_no_dead_letters(path: str) -> None:
    with shape_of({3: avro_answer(FIRST)}) as (shape, answers):
        answers[path] = UNAVAILABLE
        schema_id = 3 if path.startswith("/schemas") else 5
        with pytest.raises(SchemaRegistryError) as caught:
            rows_of(shape, avro_value(schema_id, FIRST, {"id": "a"}))
    assert caught.value.retriable


def test_declared_fields_take_any_schema() -> None:
    fields = pa.schema([("id", pa.string()), ("n", pa.int32())])
    answers = registry_answers({3: avro_answer(FIRST), 5: avro_answer(SECOND)})
    with served_registry(answers) as url:
        values = RegistryValues(RegistryAccess(url))
        shape = RowShape(fields, bad_records="dead-letter", values=values)
        made = rows_of(
            shape,
            avro_value(3, FIRST, {"id": "a"}),
            avro_value(5, SECOND, {"id": "b", "n": 2**31}),
            header(99),
        )
    assert made.rows.column("id").to_pylist() == ["a"]
    assert [row["reason"] for row in made.dead.to_pylist()] == [
        "n: 2147483648 is out of range",
        "the schema registry has no schema 99",
    ]


def protobuf_answers() -> dict[str, RegistryAnswer]:
    """Return answers of a registry: the schema of orders imports the subject `money`."""
    order, money = order_messages.Order.DESCRIPTOR.file, order_messages.Money.DESCRIPTOR.file
    texts = [base64.b64encode(file.serialized_pb).decode() for file in (order, money)]
    reference = {"name": "shop/money.proto", "subject": "money", "version": 1}
    answers = registry_answers({4: schema_answer(texts[0], "PROTOBUF", references=[reference])})
    answers["/subjects/money/versions/1"] = schema_answer(
        texts[1], "PROTOBUF", subject="money", version=1, id=9
    )
    return answers


def test_messages_of_protobuf_become_rows() -> None:
    indexes = message_indexes([0])
    with served_registry(protobuf_answers()) as url:
        access = RegistryAccess(url)
        columns = RegistryColumns.of(access, [SUBJECT], None)
        values = RegistryValues(access, columns)
        shape = RowShape(columns.fields, bad_records="dead-letter", values=values)
        refund = order_messages.Refund(id="r").SerializeToString()
        made = rows_of(
            shape,
            header(4) + indexes + order_messages.order("a").SerializeToString(),
            header(4) + message_indexes([1]) + refund,
            header(4) + indexes,
            header(4) + indexes + b"\xff",
        )
    full, empty = made.rows.select(["id", "total", "lines", "placed"]).to_pylist()
    assert full == {
        "id": "a",
        "total": {"cents": 950},
        "lines": [{"sku": "a", "count": 2}],
        "placed": datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC),
    }
    assert empty == {"id": "", "total": None, "lines": [], "placed": None}
    reasons = [row["reason"] for row in made.dead.to_pylist()]
    assert reasons[0] == "the value is a message shop.Refund, not shop.Order"
    assert reasons[1].startswith("does not decode as shop.Order")


def test_a_key_of_a_map_that_is_no_text_becomes_a_dead_letter() -> None:
    """The messages of proto2 may have any bytes as texts."""
    file = FileDescriptorProto(name="m.proto")
    message = file.message_type.add(name="M")
    message.field.add(name="m", number=1, type=11, type_name=".M.E", label=3)
    entry = message.nested_type.add(name="E")
    entry.options.map_entry = True
    for number, (name, kind) in enumerate({"key": 9, "value": 5}.items(), 1):
        entry.field.add(name=name, number=number, type=kind, label=1)
    schema = base64.b64encode(file.SerializeToString()).decode()
    with shape_of({4: schema_answer(schema, "PROTOBUF")}) as (shape, _):
        made = rows_of(shape, *(header(4) + b"\0\x0a\x03\x0a\x01" + key for key in (b"a", b"\xff")))
    assert made.rows.column("m").to_pylist() == [[("a", 0)]]
    (letter,) = made.dead.to_pylist()
    assert "a key of a map is not UTF-8" in letter["reason"]


def test_another_message_of_the_file_can_be_chosen() -> None:
    with served_registry(protobuf_answers()) as url:
        access = RegistryAccess(url)
        columns = RegistryColumns.of(access, [SUBJECT], "shop.Refund")
        assert columns.fields == pa.schema([("id", pa.string())])
        with pytest.raises(ConfigurationError, match=r"version 1 .* no message shop\.Nothing"):
            RegistryColumns.of(access, [SUBJECT], "shop.Nothing")


def test_json_in_frames_becomes_rows() -> None:
    properties = {"id": {"type": "string"}, "at": {"type": "string", "format": "date-time"}}
    schema = json.dumps({"type": "object", "properties": properties})
    with shape_of({6: schema_answer(schema, "JSON")}) as (shape, _):
        made = rows_of(
            shape, header(6) + b'{"id":"a","at":"2024-05-01T12:00:00Z"}', header(6) + b"[]"
        )
    assert made.rows.select(["id", "at"]).to_pylist() == [{"id": "a", "at": AT}]
    assert made.dead.column("reason").to_pylist() == ["the value is an array, not an object"]


def test_a_subject_that_is_missing_is_refused() -> None:
    with (
        served_registry({}, otherwise=NOT_FOUND) as url,
        pytest.raises(ConfigurationError, match=f"no subject '{SUBJECT}'"),
    ):
        RegistryColumns.of(RegistryAccess(url), [SUBJECT], None)


def test_a_schema_that_cannot_be_read_is_asked_for_once() -> None:
    """Its error may have half of a surrogate pair."""
    damaged = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "\ud800"}]}
    answers = {"/schemas/ids/8": avro_answer(damaged)}
    asked: list[str] = []
    with served_registry(answers, asked=asked) as url:
        values = RegistryValues(RegistryAccess(url))
        shape = RowShape(pa.schema([("a", pa.string())]), None, TimeRules(), "dead-letter", values)
        made = rows_of(shape, *(header(schema_id) for schema_id in (8, 99) * 3))
    reasons = made.dead.column("reason").to_pylist()
    assert reasons[:2] * 2 == reasons[2:]
    assert reasons[0] == "no Avro schema: UnknownType: \\ud800"
    assert reasons[1] == "the schema registry has no schema 99"
    assert sorted(asked) == ["/schemas/ids/8", "/schemas/ids/99"]


def test_too_many_versions_are_refused_before_they_are_asked_for() -> None:
    asked: list[str] = []
    answers = {f"/subjects/{SUBJECT}/versions": json_answer([*range(1, VERSIONS_MAX + 2)])}
    with (
        served_registry(answers, asked=asked) as url,
        pytest.raises(ConfigurationError, match="more than 1,000 versions"),
    ):
        RegistryColumns.of(RegistryAccess(url), [SUBJECT], None)
    assert len(asked) == 1


@pytest.mark.parametrize("later", [{"type": "long", "logicalType": "time-micros"}, "long"])
def test_milliseconds_of_the_day_do_not_become_microseconds(later: Any) -> None:
    """Earlier runs have written rows with milliseconds."""
    first = {**FIRST, "fields": [{"name": "t", "type": {"type": "int", **MILLIS}}]}
    second = {**FIRST, "fields": [{"name": "t", "type": later}]}
    with (
        pytest.raises(ConfigurationError, match="t cannot be a column: the types time32"),
        shape_of({3: avro_answer(first), 5: avro_answer(second)}),
    ):
        pass
    with shape_of({3: avro_answer(first)}) as (shape, _):
        made = rows_of(shape, header(3) + b"\x0e")
    assert made.rows.column("t").to_pylist() == [7]
