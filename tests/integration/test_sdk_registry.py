"""What cannot be read, and what cannot be known because the schema registry is out of reach."""

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from pydantic import BaseModel, create_model

import bucketlog
from bucketlog import Log, SchemaRegistry, Topic
from bucketlog.log_format.errors import (
    InvalidDataError,
    SchemaRegistryError,
    SchemaRegistryUnavailableError,
)
from bucketlog.schema_registry.framing import header
from tests.rigs.patience import PATIENCE_S, eventually_async
from tests.servers.schema_registry import Registry
from tests.servers.way import ANY_PORT, State, Way

pytestmark = pytest.mark.long


class Line(BaseModel):
    sku: str
    count: int = 1


class Wide(Line):
    more: str = ""


@contextmanager
def way_to(server: Registry) -> Iterator[tuple[Way, str]]:
    with Way(server.address, ANY_PORT) as way:
        yield way, server.url.replace(str(server.address[1]), str(way.port))


def read(log: Log, topic: Topic[Any, Any], **options: Any) -> list[bucketlog.Record[Any, Any]]:
    with log.consumer(topic, start="earliest", until="end", **options) as consumer:
        return list(consumer)


def send(log: Log, topic: Topic[Any, Any], *values: Any, key: Any = None) -> None:
    with log.producer() as producer:
        for value in values:
            producer.send(topic, value, key=key)


def test_no_frame_and_unknown_ids_are_poison(log: Log, registry: SchemaRegistry, name: str) -> None:
    topic = Topic(name, value=registry.avro(Line))
    send(log, topic, Line(sku="1"))
    text = Topic(f"{name}-text", value=registry.json(Line)).value_format.encode(Line(sku="x"))
    send(log, Topic(name), b'{"sku":"x"}', b"\0\0", header(99_999_999) + b"x", text)
    send(log, topic, Line(sku="2"))
    reasons = ["begins with byte 0x7b", "2 bytes", "no schema 99999999", "is JSON, not AVRO"]
    with log.consumer(topic, start="earliest", until="end") as consumer:
        assert next(consumer).value == Line(sku="1")
        for offset, reason in enumerate(reasons, 1):
            with pytest.raises(InvalidDataError, match=reason) as caught:
                next(consumer)
            assert f"{name}[0]@{offset}" in caught.value.message
        assert next(consumer).value == Line(sku="2")
    assert [record.value.sku for record in read(log, topic, on_error="skip")] == ["1", "2"]


@pytest.mark.parametrize("on_error", ["raise", "skip", "aside"])
@pytest.mark.parametrize("in_batches", [False, True])
def test_a_registry_out_of_reach_skips_nothing(
    log: Log, schema_registry: Registry, name: str, on_error: Any, in_batches: bool
) -> None:
    log.topics.create(f"{name}-dead")
    chosen = bucketlog.DeadLetter(f"{name}-dead") if on_error == "aside" else on_error
    send(log, Topic(name, value=SchemaRegistry(schema_registry.url).avro(Line)), Line(sku="1"))
    with way_to(schema_registry) as (way, url):
        registry = SchemaRegistry(url, timeout_s=5, config={"max.retries": 0})
        topic = Topic(name, value=registry.avro(Line))
        options: Any = {"group": name, "start": "earliest", "until": "end", "on_error": chosen}
        way.be(State.CLOSED)
        with log.consumer(topic, **options) as consumer:
            for _ in range(2):
                with pytest.raises(SchemaRegistryUnavailableError, match=r"127\.0\.0\.1") as caught:
                    consumer.poll(timeout_s=PATIENCE_S) if in_batches else next(consumer)
                assert caught.value.retriable
            way.be(State.OPEN)
            found = consumer.poll(timeout_s=PATIENCE_S) if in_batches else [next(consumer)]
            assert [record.value.sku for record in found] == ["1"]
            assert consumer.passed_over == 0
    assert read(log, Topic(f"{name}-dead")) == []


def test_records_before_one_that_waits_for_the_registry_are_handed_out(
    log: Log, schema_registry: Registry, name: str
) -> None:
    direct = SchemaRegistry(schema_registry.url)
    send(log, Topic(name, value=direct.avro(Line)), Line(sku="1"), Line(sku="2"))
    send(log, Topic(name, value=direct.avro(Wide, name="Line")), Wide(sku="3"))
    with way_to(schema_registry) as (way, url):
        registry = SchemaRegistry(url, timeout_s=5, config={"max.retries": 0})
        topic = Topic(name, value=registry.avro(Line))
        with log.consumer(topic, start="earliest", until="end") as consumer:
            assert next(consumer).value.sku == "1"
            way.be(State.CLOSED)
            assert [record.value.sku for record in consumer.poll(timeout_s=PATIENCE_S)] == ["2"]
            with pytest.raises(SchemaRegistryUnavailableError):
                consumer.poll(timeout_s=PATIENCE_S)
            way.be(State.OPEN)
            assert [record.value.sku for record in consumer.poll(timeout_s=PATIENCE_S)] == ["3"]


def test_sending_while_the_registry_is_out_of_reach(
    log: Log, schema_registry: Registry, name: str
) -> None:
    with way_to(schema_registry) as (way, url), log.producer() as producer:
        registry = SchemaRegistry(url, timeout_s=5, config={"max.retries": 0})
        topic = Topic(name, value=registry.avro(Line))
        way.be(State.CLOSED)
        with pytest.raises(SchemaRegistryUnavailableError, match=f"{name}-value"):
            producer.send(topic, Line(sku="1"))
        way.be(State.OPEN)
        producer.send(topic, Line(sku="2"))
        producer.flush()
        way.be(State.CLOSED)  # nothing more is asked
        producer.send(topic, Line(sku="3"))
        producer.flush()
        way.be(State.OPEN)
        assert [record.value.sku for record in read(log, topic)] == ["2", "3"]


def test_a_url_that_is_no_registry(log: Log, schema_registry: Registry, name: str) -> None:
    """Never poison: it says nothing about the record."""
    send(log, Topic(name), header(1) + b"x")
    wrong = SchemaRegistry(schema_registry.url.removesuffix("/ccompat/v7"))
    with pytest.raises(SchemaRegistryError, match="HTTP 404") as caught:
        read(log, Topic(name, value=wrong.avro(Line)), on_error="skip")
    assert "/apis/ccompat/v7" in caught.value.remedy


def test_what_is_kept_is_bounded_and_asked_for_again(
    log: Log, schema_registry: Registry, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bucketlog.client.schemas.registered.READERS_MAX", 2)
    monkeypatch.setattr("bucketlog.client.schemas.registry.IDS_MAX", 2)
    monkeypatch.setattr("bucketlog.schema_registry.registered_schemas.SCHEMAS_MAX", 2)
    registry = SchemaRegistry(schema_registry.url)
    for number in range(4):
        made = create_model("Line", sku=(str, ...), **{f"more{number}": (int, 0)})  # type: ignore[call-overload]  # made here
        send(log, Topic(name, value=registry.avro(made)), made(sku=str(number)))
    topic = Topic(name, value=registry.avro(Line))
    for _ in range(2):
        assert [record.value.sku for record in read(log, topic)] == ["0", "1", "2", "3"]
    assert (len(registry._schemas._schemas), len(registry._ids)) == (2, 2)


def test_a_second_topic_object_asks_nothing(log: Log, schema_registry: Registry, name: str) -> None:
    with way_to(schema_registry) as (way, url):
        registry = SchemaRegistry(url, config={"max.retries": 0})
        send(log, Topic(name, value=registry.avro(Line)), Line(sku="1"))
        assert len(read(log, Topic(name, value=registry.avro(Line)))) == 1
        way.be(State.CLOSED)
        send(log, Topic(name, value=registry.avro(Line)), Line(sku="2"))
        assert len(read(log, Topic(name, value=registry.avro(Line)))) == 2


# With asyncio ---------------------------------------------------------------------------------


async def held_back(way: Way, work: Coroutine[Any, Any, None]) -> None:
    """The registry answers only when the event loop says so, which must be free to do it."""
    way.be(State.BLACK_HOLE)
    connections = way.connections
    task = asyncio.create_task(work)
    await eventually_async(lambda: way.connections > connections, "the registry is not asked")
    assert not task.done()
    way.be(State.OPEN)
    async with asyncio.timeout(PATIENCE_S):
        await task


@pytest.mark.parametrize("many", [False, True])
async def test_the_loop_goes_on_while_the_registry_is_asked(
    log: Log, schema_registry: Registry, name: str, many: bool
) -> None:
    """Neither the first value that is sent nor the first that is read keeps the loop waiting."""
    with way_to(schema_registry) as (way, url):
        values = [Line(sku=str(number)) for number in range(10)]
        async with bucketlog.aconnect(log.bootstrap) as alog, alog.producer() as producer:
            topic = Topic(name, value=SchemaRegistry(url).avro(Line), key=str)

            async def write() -> None:
                if many:
                    await producer.send_many(topic, values, key=lambda value: value.sku)
                else:
                    sent = [producer.send(topic, value, key=value.sku) for value in values]
                    assert len(producer) == len(values)
                    assert [(await one).offset for one in sent] == list(range(10))

            await held_back(way, write())
            other = SchemaRegistry(schema_registry.url).avro(Wide, name="Line")
            await producer.send_many(Topic(name, value=other, key=str), [Wide(sku="w")])
            fresh = Topic(name, value=SchemaRegistry(url).avro(Line), key=str)
            seen: list[Line] = []

            async def back() -> None:
                async with alog.consumer(fresh, start="earliest", until="end") as consumer:
                    if many:
                        seen.extend([r.value async for batch in consumer.batches() for r in batch])
                    else:
                        seen.extend([record.value async for record in consumer])

            await held_back(way, back())
            assert seen == [*values, Line(sku="w")]


async def test_records_keep_their_order_behind_one_that_is_held_back(
    log: Log, schema_registry: Registry, name: str
) -> None:
    with way_to(schema_registry) as (way, url):
        way.delay_s = 0.1
        topic = Topic(name, value=SchemaRegistry(url).avro(Line))
        raw = Topic(name)
        async with bucketlog.aconnect(log.bootstrap) as alog, alog.producer() as producer:
            producer.send(raw, b"0")
            producer.send(topic, Line(sku="1"))
            producer.send(raw, b"2")
            bad = producer.send(topic, Line.model_construct(sku=3))  # type: ignore[arg-type]  # that is the point
            await producer.send_many(raw, [b"4"])
            with pytest.raises(InvalidDataError):
                await bad
    values = [record.value for record in read(log, raw)]
    assert (values[0], values[2:]) == (b"0", [b"2", b"4"])


async def test_what_asyncio_sends_while_the_registry_is_out_of_reach(
    log: Log, schema_registry: Registry, name: str
) -> None:
    with way_to(schema_registry) as (way, url):
        topic = Topic(name, value=SchemaRegistry(url, config={"max.retries": 0}).avro(Line))
        way.be(State.CLOSED)
        async with bucketlog.aconnect(log.bootstrap) as alog, alog.producer() as producer:
            sent = [producer.send(topic, Line(sku=str(number))) for number in range(3)]
            for delivery in sent[:2]:
                with pytest.raises(SchemaRegistryUnavailableError, match=f"{name}-value"):
                    await delivery
            with pytest.raises(SchemaRegistryUnavailableError):
                await producer.flush()  # the third, which nobody has seen
            way.be(State.OPEN)
            assert (await producer.send(topic, Line(sku="3"))).offset == 0


@pytest.mark.parametrize("on_error", ["raise", "skip"])
async def test_asyncio_reads_on_when_the_registry_is_back(
    log: Log, schema_registry: Registry, name: str, on_error: Any
) -> None:
    send(log, Topic(name, value=SchemaRegistry(schema_registry.url).avro(Line)), Line(sku="1"))
    send(log, Topic(name), header(99_999_999) + b"x")
    with way_to(schema_registry) as (way, url):
        topic = Topic(name, value=SchemaRegistry(url, config={"max.retries": 0}).avro(Line))
        way.be(State.CLOSED)
        async with (
            bucketlog.aconnect(log.bootstrap) as alog,
            alog.consumer(topic, start="earliest", until="end", on_error=on_error) as consumer,
        ):
            with pytest.raises(SchemaRegistryUnavailableError):
                await anext(consumer)
            way.be(State.OPEN)
            assert (await anext(consumer)).value == Line(sku="1")
            if on_error == "raise":
                with pytest.raises(InvalidDataError, match="no schema 99999999"):
                    await anext(consumer)
            with pytest.raises(StopAsyncIteration):
                await anext(consumer)
            assert consumer.passed_over == (on_error == "skip")
