"""JSON in Confluent's wire format: the fast decoder gives what decoding each record gives."""

import struct
from dataclasses import replace
from typing import Any

import pytest
from pydantic import BaseModel

import bucketlog
from bucketlog.client.schemas.registry import SchemaRegistry
from bucketlog.log_format.errors import SchemaRegistryError
from bucketlog.log_reader.decoder_choice import DecoderChoice
from bucketlog.replaying.framed_values import SCHEMAS_MAX
from bucketlog.replaying.typed_table import TypedTable
from bucketlog.schema_registry.codec import SchemaText
from tests.rigs.typed_batches import CHOICES, batch_of, outcome, plainly

JSON_IDS = range(100, 400)
AVRO_ID, MISSING_ID = 7, 8


class Line(BaseModel):
    sku: str
    count: int = 1


class Answering(SchemaRegistry):
    """A registry of JSON and Avro schemas that answers from memory, and notes which ids were asked
    for."""

    def __init__(self) -> None:
        super().__init__("http://127.0.0.1:1")
        self.asked: list[int] = []

    def schema(self, schema_id: int) -> SchemaText:
        self.asked.append(schema_id)
        if schema_id in JSON_IDS:
            return SchemaText("{}", "JSON")
        if schema_id == AVRO_ID:
            return SchemaText('"string"', "AVRO")
        raise SchemaRegistryError(f"no schema {schema_id}", remedy="register it")


def table_of(registry: SchemaRegistry, choice: DecoderChoice = CHOICES[0]) -> TypedTable:
    return TypedTable(bucketlog.Topic("lines", value=registry.json(Line)), "flat", None, choice)


def framed(schema_id: int, value: bytes) -> bytes:
    return struct.pack(">bI", 0, schema_id) + value


GOOD = framed(100, b'{"sku":"a","count":2}')


def test_the_fast_decoder_reads_values_of_several_schemas() -> None:
    registry = Answering()
    table = table_of(registry)

    def fail(data: bytes) -> Any:
        raise AssertionError(data)

    table._value = replace(table._value, decode=fail)
    values = [GOOD, None, framed(101, b'{"count":3,"sku":"\xc3\xa4"}'), GOOD]
    batch = batch_of(values)
    assert table.typed(batch).select(["sku", "count"]).to_pylist() == [
        {"sku": "a", "count": 2},
        {"sku": None, "count": None},
        {"sku": "ä", "count": 3},
        {"sku": "a", "count": 2},
    ]
    assert table.typed(batch.slice(2)).column("sku").to_pylist() == ["ä", "a"]
    assert sorted(set(registry.asked)) == sorted(registry.asked) == [100, 101]


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (b"", "no schema id: 0 bytes"),
        (b"\0\0\0\0", "no schema id: 4 bytes"),
        (b'{"sku":"a"}', "no schema id: it begins with byte 0x7b"),
        (framed(AVRO_ID, b'{"sku":"a"}'), f"schema {AVRO_ID} is AVRO, not JSON"),
        (framed(100, b""), "does not decode as Line"),
        (framed(100, b'{"sku":1}'), "does not decode as Line"),
        (framed(100, b"}\n{"), "does not decode as Line"),
    ],
)
def test_a_value_that_does_not_decode_is_named(bad: bytes, words: str) -> None:
    table = table_of(Answering())
    found = outcome(table, batch_of([GOOD, None, bad, GOOD]))
    assert isinstance(found, str)
    assert "lines[2]@2" in found
    assert words in found
    assert found == plainly(table, batch_of([GOOD, None, bad, GOOD]))


def test_a_schema_that_is_not_in_the_registry() -> None:
    with pytest.raises(SchemaRegistryError, match=f"no schema {MISSING_ID}"):
        table_of(Answering()).typed(batch_of([GOOD, framed(MISSING_ID, b"{}")]))


def test_doubtful_values_among_framed_ones() -> None:
    table = table_of(Answering())
    batch = batch_of([GOOD, framed(100, b'{"sku":"b"}'), framed(102, b' {"sku":"c","count":"4"} ')])
    found = outcome(table, batch)
    assert found == plainly(table, batch)
    assert [(row["sku"], row["count"]) for row in found if isinstance(row, dict)] == [
        ("a", 2),
        ("b", 1),
        ("c", 4),
    ]


def test_more_schemas_than_the_fast_decoder_takes() -> None:
    registry = Answering()
    values: list[bytes | None] = [
        framed(schema_id, b'{"sku":"a","count":1}') for schema_id in JSON_IDS[: SCHEMAS_MAX + 1]
    ]
    found = outcome(table_of(registry), batch_of(values))
    assert len(found) == SCHEMAS_MAX + 1
    assert len(registry.asked) == SCHEMAS_MAX + 1
