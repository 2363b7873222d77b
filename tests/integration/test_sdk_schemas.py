"""Avro, JSON and Protobuf with a real schema registry, both ways with confluent-kafka's own
serializers, over a real broker."""

import json
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any
from uuid import UUID

import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import AliasChoices, BaseModel, Field, NaiveDatetime

import bucketlog
from bucketlog import Log, SchemaRegistry, Topic
from bucketlog.log_format.errors import (
    ConfigurationError,
    IncompatibleSchemaError,
    InvalidDataError,
    SchemaRegistryError,
)
from bucketlog.schema_registry.framing import header
from tests.models import order_messages
from tests.servers.schema_registry import Registry

TOPIC_NAMES = {"subject.name.strategy.type": "TOPIC"}
"""What confluent-kafka did by default, before it had associations."""


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Line(BaseModel):
    sku: str
    count: int = 1


@dataclass
class Place:
    city: str
    zip_codes: list[str] = field(default_factory=list)


class Order(BaseModel):
    id: UUID
    placed: datetime
    local: NaiveDatetime
    due: date
    at: time
    price: Annotated[Decimal, Field(max_digits=12, decimal_places=2)]
    weight: float
    count: int
    paid: bool
    blob: bytes
    colour: Colour
    note: str | None = None
    lines: list[Line] = []
    tags: dict[str, int] = {}
    place: Place | None = None
    either: int | str | None = None


ORDER = Order(
    id=UUID(int=7),
    placed=datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC),
    local=datetime.fromisoformat("2026-01-02T03:04:05"),
    due=date(2026, 2, 3),
    at=time(1, 2, 3, 4),
    price=Decimal("-12.50"),
    weight=1.5,
    count=-(2**62),
    paid=True,
    blob=b"\x00\xff",
    colour=Colour.BLUE,
    note="Zürich",
    lines=[Line(sku="a"), Line(sku="b", count=2)],
    tags={"x": 1},
    place=Place("Bern", ["3000"]),
    either="text",
)

IN_JSON = ORDER.model_copy(update={"blob": b"text"})
"""Pydantic writes bytes into JSON as UTF-8, unless it is told otherwise."""


def read(log: Log, topic: Topic[Any, Any], **options: Any) -> list[bucketlog.Record[Any, Any]]:
    with log.consumer(topic, start="earliest", until="end", **options) as consumer:
        return list(consumer)


def send(log: Log, topic: Topic[Any, Any], *values: Any, key: Any = None) -> None:
    with log.producer() as producer:
        for value in values:
            producer.send(topic, value, key=key)


def value_of(topic: str) -> SerializationContext:
    return SerializationContext(topic, MessageField.VALUE)


# Through the broker, and with confluent-kafka on the other side -----------------------------------


def test_a_topic_of_each_kind(log: Log, registry: SchemaRegistry, name: str) -> None:
    for kind, values in (
        (registry.avro(Order), [ORDER]),
        (registry.json(Order), [IN_JSON]),
        (registry.protobuf(order_messages.Order), [order_messages.order()]),
    ):
        topic: Topic[Any, Any] = Topic(f"{name}-{kind.name.split()[-1]}", value=kind, key=str)
        log.topics.create(topic)
        send(log, topic, *values, None, key="k")
        first, tombstone = read(log, topic)
        assert (first.key, first.value) == ("k", values[0])
        assert tombstone.is_tombstone


def test_avro_keys(log: Log, registry: SchemaRegistry, theirs: Any, name: str) -> None:
    topic: Topic[Line, str] = Topic(name, key=registry.avro(Line), value=registry.avro(str))
    send(log, topic, "v", key=Line(sku="k"))
    (record,) = read(log, topic)
    assert (record.key, record.value) == (Line(sku="k"), "v")
    assert {f"{name}-key", f"{name}-value"} <= set(theirs.get_subjects())


def test_confluent_reads_our_avro(registry: SchemaRegistry, theirs: Any, name: str) -> None:
    ours = Topic(name, value=registry.avro(Order)).value_format
    seen = AvroDeserializer(theirs, conf=TOPIC_NAMES)(ours.encode(ORDER), value_of(name))
    assert seen["colour"] == "blue"
    assert seen["lines"] == [{"sku": "a", "count": 1}, {"sku": "b", "count": 2}]
    assert Order.model_validate(seen) == ORDER


def test_we_read_confluents_avro(registry: SchemaRegistry, theirs: Any, name: str) -> None:
    ours = registry.avro(Order)
    write = AvroSerializer(theirs, ours.schema, conf=TOPIC_NAMES)
    data = ORDER.model_dump() | {"colour": "blue"}
    written = write(data, value_of(name))
    bound = Topic(name, value=ours).value_format
    assert bound.decode(written) == ORDER
    assert bound.encode(ORDER) == written


_orders = st.builds(
    Order,
    placed=st.datetimes(timezones=st.just(UTC)),
    local=st.datetimes(),
    price=st.decimals(-(10**9), 10**9, places=2),
    count=st.integers(-(2**63), 2**63 - 1),
    weight=st.floats(allow_nan=False),
    tags=st.dictionaries(st.text(), st.integers(-(2**63), 2**63 - 1)),
    lines=st.lists(st.builds(Line, count=st.integers(-5, 5))),
    either=st.none() | st.text() | st.integers(-5, 5),
)


def test_the_very_bytes_of_confluent(registry: SchemaRegistry, theirs: Any, name: str) -> None:
    ours = Topic(name, value=registry.avro(Order)).value_format
    write = AvroSerializer(theirs, registry.avro(Order).schema, conf=TOPIC_NAMES)
    to = value_of(name)

    @settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(order=_orders)
    def same(order: Order) -> None:
        data = ours.encode(order)
        assert data == write(order.model_dump() | {"colour": order.colour.value}, to)
        assert ours.decode(data) == order

    same()


def test_json_both_ways(registry: SchemaRegistry, theirs: Any, name: str) -> None:
    form = registry.json(Order)
    ours = Topic(name, value=form).value_format
    to = value_of(name)
    seen = JSONDeserializer(form.schema, schema_registry_client=theirs, conf=TOPIC_NAMES)(
        ours.encode(IN_JSON), to
    )
    assert Order.model_validate(seen) == IN_JSON
    data = json.loads(IN_JSON.model_dump_json())
    compact = JSONSerializer(
        form.schema,
        theirs,
        conf=TOPIC_NAMES,
        json_encode=lambda value: json.dumps(value, separators=(",", ":"), ensure_ascii=False),
    )
    assert ours.decode(JSONSerializer(form.schema, theirs, conf=TOPIC_NAMES)(data, to)) == IN_JSON
    assert compact(data, to) == ours.encode(IN_JSON)


@pytest.mark.parametrize("which", ["shop.Order", "shop.Order.Line", "shop.Refund"])
def test_protobuf_both_ways(registry: SchemaRegistry, theirs: Any, name: str, which: str) -> None:
    """With the file that it imports; outermost, nested, and not the file's first."""
    cls = order_messages.CLASSES[which]
    value = order_messages.order() if which == "shop.Order" else cls()
    ours = Topic(name, value=registry.protobuf(cls)).value_format
    data = ours.encode(value)
    assert ours.decode(data) == value
    assert data == ProtobufSerializer(cls, theirs, conf=TOPIC_NAMES)(value, value_of(name))
    assert ProtobufDeserializer(cls, conf=TOPIC_NAMES)(data, value_of(name)) == value


def test_another_message_of_the_same_file(registry: SchemaRegistry, name: str) -> None:
    refunds = Topic(name, value=registry.protobuf(order_messages.Refund)).value_format
    orders = Topic(name, value=registry.protobuf(order_messages.Order)).value_format
    with pytest.raises(InvalidDataError, match=r"written as shop\.Refund, not shop\.Order"):
        orders.decode(refunds.encode(order_messages.Refund(id="1")))


def test_protobuf_that_is_registered_as_text(
    registry: SchemaRegistry, theirs: Any, name: str
) -> None:
    text = (
        'syntax = "proto3"; package shop;'
        "message Order { string id = 1; } message Refund { string id = 1; }"
    )
    schema_id = theirs.register_schema(f"{name}-value", Schema(text, "PROTOBUF"))
    refund = order_messages.Refund(id="1")
    data = refund.SerializeToString()
    ours = Topic(name, value=registry.protobuf(order_messages.Refund)).value_format
    assert ours.decode(header(schema_id) + b"\2\2" + data) == refund
    with pytest.raises(InvalidDataError, match=r"not shop\.Refund"):
        ours.decode(header(schema_id) + b"\0" + data)


# Evolution ----------------------------------------------------------------------------------------


class First(BaseModel):
    id: int
    total: int
    gone: str = ""


class Second(BaseModel):
    id: float  # promoted
    amount: int = Field(validation_alias=AliasChoices("amount", "total"))  # renamed
    note: str = "none"  # added
    lines: list[Line] = []


def test_reading_what_an_older_and_a_newer_class_wrote(
    log: Log, registry: SchemaRegistry, name: str
) -> None:
    old = Topic(name, value=registry.avro(First, name="shop.Event"))
    new = Topic(name, value=registry.avro(Second, name="shop.Event"))
    send(log, old, First(id=1, total=2, gone="x"))
    (record,) = read(log, new)
    assert record.value == Second(id=1.0, amount=2)
    send(log, new, Second(id=1.0, amount=2))
    with pytest.raises(InvalidDataError, match=r"shop\.Event\.id: double does not fit long"):
        read(log, Topic(name, value=registry.avro(First, name="shop.Event")))


def test_an_incompatible_schema_is_told(
    registry: SchemaRegistry, theirs: SchemaRegistryClient, name: str
) -> None:
    first = Topic(name, value=registry.avro(First, name="Event")).value_format
    first.encode(First(id=1, total=2))
    theirs.set_compatibility(f"{name}-value", "BACKWARD")

    class Third(BaseModel):
        id: int
        required: str

    other = Topic(name, value=registry.avro(Third, name="Event")).value_format
    with pytest.raises(IncompatibleSchemaError) as caught:
        other.encode(Third(id=1, required="x"))
    assert f"{name}-value" in caught.value.message
    assert "required" in caught.value.message
    assert "default" in caught.value.remedy
    assert not caught.value.retriable


def test_without_registering(
    schema_registry: Registry, registry: SchemaRegistry, name: str
) -> None:
    careful = SchemaRegistry(schema_registry.url, auto_register=False)
    ours = Topic(name, value=careful.avro(Line)).value_format
    with pytest.raises(SchemaRegistryError, match=f"{name}-value") as caught:
        ours.encode(Line(sku="a"))
    assert "register it first" in caught.value.remedy
    data = Topic(name, value=registry.avro(Line)).value_format.encode(Line(sku="a"))
    assert ours.encode(Line(sku="a")) == data


def test_by_the_latest_schema(
    schema_registry: Registry, theirs: SchemaRegistryClient, name: str
) -> None:
    """Of a Java program, say: another namespace, milliseconds, a field with a default."""
    latest = {
        "type": "record",
        "name": "Ping",
        "namespace": "com.shop",
        "fields": [
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
            {"name": "source", "type": "string", "default": "java"},
        ],
    }
    schema_id = theirs.register_schema(f"{name}-value", Schema(json.dumps(latest), "AVRO"))
    registry = SchemaRegistry(schema_registry.url, use_latest=True)

    class Ping(BaseModel):
        at: datetime

    ours = Topic(name, value=registry.avro(Ping)).value_format
    ping = Ping(at=datetime(2026, 1, 1, 0, 0, 0, 123000, UTC))
    data = ours.encode(ping)
    assert data.startswith(header(schema_id))
    assert ours.decode(data) == ping
    assert AvroDeserializer(theirs, conf=TOPIC_NAMES)(data, value_of(name))["source"] == "java"
    with pytest.raises(InvalidDataError, match="milliseconds"):
        ours.encode(Ping(at=datetime(2026, 1, 1, 0, 0, 0, 123456, UTC)))

    class More(BaseModel):
        at: datetime
        lost: str

    with pytest.raises(InvalidDataError, match="no field 'lost'"):
        Topic(name, value=registry.avro(More, name="Ping")).value_format.encode(
            More(at=ping.at, lost="x")
        )
    with pytest.raises(InvalidDataError, match="is AVRO, not JSON"):
        Topic(name, value=registry.json(Ping)).value_format.encode(ping)


def test_a_schema_that_refers_to_another(
    registry: SchemaRegistry, theirs: SchemaRegistryClient, name: str
) -> None:
    inner = {
        "type": "record",
        "name": "Line",
        "namespace": "shop",
        "fields": [{"name": "sku", "type": "string"}],
    }
    theirs.register_schema(f"{name}-line", Schema(json.dumps(inner), "AVRO"))
    outer = {
        "type": "record",
        "name": "Cart",
        "namespace": "shop",
        "fields": [{"name": "lines", "type": {"type": "array", "items": "shop.Line"}}],
    }
    reference = [{"name": "shop.Line", "subject": f"{name}-line", "version": 1}]
    schema = Schema.from_dict(
        {"schema": json.dumps(outer), "schemaType": "AVRO", "references": reference}
    )
    data = AvroSerializer(theirs, schema, conf=TOPIC_NAMES)(
        {"lines": [{"sku": "a"}]}, value_of(name)
    )

    class Cart(BaseModel):
        lines: list[Line]

    ours = Topic(name, value=registry.avro(Cart)).value_format
    assert ours.decode(data or b"") == Cart(lines=[Line(sku="a")])


@pytest.mark.parametrize(
    ("naming", "subject"), [("record", "shop.Line"), ("topic-record", "{}-shop.Line")]
)
def test_names_of_subjects(
    schema_registry: Registry, theirs: Any, name: str, naming: Any, subject: str
) -> None:
    registry = SchemaRegistry(schema_registry.url, naming=naming)
    Topic(name, value=registry.avro(Line, name="shop.Line")).value_format.encode(Line(sku="a"))
    assert subject.format(name) in theirs.get_subjects()
    assert Topic(name, value=registry.json(Line)).value_format.subject in ("Line", f"{name}-Line")  # type: ignore[attr-defined]  # of formats with a registry
    with pytest.raises(ConfigurationError, match="without a name"):
        Topic(name, value=registry.avro(str))
