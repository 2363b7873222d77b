"""Topics with records that are computed from numbers, and the expected rows of Iceberg tables.

Flights are JSON, Avro and Protobuf. Changes are nested, like the records of change data capture.
Most records of the topic `skewed` are in partition 0.
"""

import json
import threading
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from confluent_kafka import KafkaError, Message, Producer
from pydantic import BaseModel

from bucketlog import SchemaRegistry, Topic
from bucketlog.demo.flights import read_flights
from tests.models.flight_messages import COLUMNS, FlightMessage, flight_message
from tests.rigs.patience import PATIENCE_S, eventually

FLIGHTS_MAX = 10_000
TICK_S = 0.05
PARTITIONS = 3
SKEW = 10
"""One of `SKEW` records of the skewed topic goes to all partitions in turn, the others to 0."""
_START = datetime(2024, 1, 1, tzinfo=UTC)
Rows = Callable[[Sequence[int], pa.Schema], pa.Table]
"""Returns the rows for the numbers of records, with the types of a schema."""


@dataclass(frozen=True)
class LakeTopic:
    """A topic and its table. `flags` are options of `bucketlog table run`. `rows` returns the
    expected fields for numbers of records. The first field is `id`. `share` is the topic's share of
    all records."""

    name: str
    flags: Sequence[str]
    encode: Callable[[int], bytes]
    rows: Rows
    share: float
    partition: Callable[[int], int] = lambda number: number % PARTITIONS


class LakeFlight(BaseModel):
    """A flight without `year`, `month` and `day`, because tables have a column `day`."""

    id: int
    carrier: str
    flight: int
    tailnum: str | None
    origin: str
    dest: str
    dep_delay: int | None
    air_time: int | None
    distance: int
    time_hour: datetime


def lake_topics(registry: SchemaRegistry) -> list[LakeTopic]:
    """Return all topics. The first record of a topic registers the schema."""
    flights = list(read_flights(FLIGHTS_MAX))

    def flight(number: int) -> LakeFlight:
        return LakeFlight(id=number, **flights[number % len(flights)].model_dump())

    def flight_rows(names: Sequence[str]) -> Rows:
        return lambda ids, schema: pa.Table.from_pylist(
            [flight(number).model_dump(include=set(names)) for number in ids], schema
        )

    avro = Topic("flights-avro", value=registry.avro(LakeFlight)).value_format
    message: Any = Topic("flights-protobuf", value=registry.protobuf(FlightMessage)).value_format
    named = ("--value-format", "registry", "--registry-url", registry.url)
    every = tuple(LakeFlight.model_fields)
    return [
        LakeTopic(
            "flights-json",
            ("--schema", _flight_schema()),
            lambda number: flight(number).model_dump_json().encode(),
            flight_rows(every),
            0.05,
        ),
        LakeTopic(
            "flights-avro",
            named,
            lambda number: avro.encode(flight(number)),
            flight_rows(every),
            0.05,
        ),
        LakeTopic(
            "flights-protobuf",
            named,
            lambda number: message.encode(flight_message(flight(number))),
            flight_rows(COLUMNS),
            0.05,
        ),
        LakeTopic(
            "changes", CHANGE_FLAGS, lambda number: _json(_change(number)), _change_rows, 0.05
        ),
        LakeTopic(
            "skewed",
            ("--schema", "id bigint, amount decimal(12,2), text string"),
            lambda number: b'{"id":%d,"amount":%d.25,"text":"t%d"}' % (number, number, number),
            _skewed_rows,
            0.8,
            lambda number: 0 if number % SKEW else number // SKEW % PARTITIONS,
        ),
    ]


def _flight_schema() -> str:
    """Return the fields of a flight as Spark's DDL."""
    kinds: dict[Any, str] = {int: "int", int | None: "int", str: "string", str | None: "string"}
    kinds[datetime] = "timestamp"
    fields = {name: kinds[each.annotation] for name, each in LakeFlight.model_fields.items()}
    return ", ".join(f"`{name}` {kind}" for name, kind in (fields | {"id": "bigint"}).items())


_PERSON = "struct<name: string, tags: array<string>, address: struct<zip: int>>"
CHANGE_FLAGS = (
    *("--schema", f"id bigint, op string, before {_PERSON}, after {_PERSON}, at timestamp"),
    *("--epoch-unit", "at=milliseconds"),
)


def _person(number: int) -> dict[str, Any]:
    return {
        "name": f"name {number}",
        "tags": [f"t{each}" for each in range(number % 4)],
        "address": {"zip": number % 100_000},
    }


def _change(number: int) -> dict[str, Any]:
    """Return a creation, an update or a deletion, with a time in milliseconds since 1970."""
    op = "cud"[number % 3]
    return {
        "id": number,
        "op": op,
        "before": None if op == "c" else _person(number),
        "after": None if op == "d" else _person(number + 1),
        "at": int(_START.timestamp() * 1_000) + number,
    }


def _change_rows(ids: Sequence[int], schema: pa.Schema) -> pa.Table:
    return pa.Table.from_pylist(
        [{**_change(number), "at": _START + timedelta(milliseconds=number)} for number in ids],
        schema,
    )


def _skewed_rows(ids: Sequence[int], schema: pa.Schema) -> pa.Table:
    numbers = pa.array(np.asarray(ids, np.int64))
    texts = numbers.cast(pa.string())
    amounts = pc.binary_join_element_wise(texts, pa.scalar("25"), ".")
    columns = {
        "id": numbers,
        "amount": amounts.cast(pa.decimal128(12, 2)),
        "text": pc.binary_join_element_wise(pa.scalar("t"), texts, ""),
    }
    return pa.table({name: columns[name] for name in schema.names}).cast(schema)


def _json(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value).encode()


@dataclass
class Acknowledged:
    """The records of a topic that brokers acknowledged, in three columns."""

    partitions: "array[int]" = field(default_factory=lambda: array("q"))
    offsets: "array[int]" = field(default_factory=lambda: array("q"))
    ids: "array[int]" = field(default_factory=lambda: array("q"))

    def __len__(self) -> int:
        return len(self.ids)


class LakeLoad:
    """An idempotent producer of about `records_per_s` and `records_max` records for all topics."""

    def __init__(
        self,
        bootstrap: str,
        topics: Sequence[LakeTopic],
        *,
        records_per_s: float,
        records_max: int,
    ) -> None:
        self._topics = topics
        self._records_per_s = records_per_s
        self._records_max = records_max
        self.failures: list[str] = []
        self.acknowledged = {topic.name: Acknowledged() for topic in topics}
        self._sent = {topic.name: 0 for topic in topics}
        self._client = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 20,
                "message.timeout.ms": int(PATIENCE_S * 1_000),
                "log_level": 0,
            }
        )

    @property
    def sent(self) -> int:
        return sum(self._sent.values())

    def run(self, stopped: threading.Event) -> None:
        """Send until `stopped` is set or all records are sent. Afterwards, each record is
        acknowledged, or `failures` has the reason."""
        while not stopped.wait(TICK_S) and self.sent < self._records_max:
            for topic in self._topics:
                self._send(topic, max(1, int(TICK_S * self._records_per_s * topic.share)))
        self._flush()

    def send_last(self, count: int) -> None:
        """Send `count` records to each topic."""
        for topic in self._topics:
            self._send(topic, count)
        self._flush()

    def _flush(self) -> None:
        left = self._client.flush(PATIENCE_S)
        if left:
            self.failures.append(f"{left} records are not acknowledged")

    def _send(self, topic: LakeTopic, count: int) -> None:
        acknowledged = self.acknowledged[topic.name]
        first = self._sent[topic.name]
        for number in range(first, first + count):
            self._put(topic, number, acknowledged)
        self._sent[topic.name] += count

    def _put(self, topic: LakeTopic, number: int, acknowledged: Acknowledged) -> None:
        value = topic.encode(number)

        def settled(error: KafkaError | None, message: Message) -> None:
            partition, offset = message.partition(), message.offset()
            if error is not None or partition is None or offset is None:
                self.failures.append(str(error))
                return
            acknowledged.partitions.append(partition)
            acknowledged.offsets.append(offset)
            acknowledged.ids.append(number)

        def accepted() -> bool:
            self._client.poll(0)
            try:
                self._client.produce(
                    topic.name, value, partition=topic.partition(number), on_delivery=settled
                )
            except BufferError:
                return False
            return True

        if not accepted():
            eventually(accepted)
