"""What the SDK costs beside plain confluent-kafka, and asyncio beside plain calls.

    python -m benchmarks.sdk                      100 B records, JSON on stdout
    python -m benchmarks.sdk --limits             exits 1 where a ratio falls short

Each round runs every way once, and a ratio is the median over the rounds, so that what else the
machine does falls on both sides. Producers are timed from their first acknowledgement on: how
librdkafka begins is the same for all, and takes it 0.05 to 1 s by chance. `plain` produces one
record a call with a callback that counts failures (without one they would go unnoticed);
`plain_unchecked` has no callback.
"""

import argparse
import asyncio
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any

from confluent_kafka import Consumer as KafkaConsumer
from confluent_kafka import KafkaError, Message
from confluent_kafka import Producer as KafkaProducer
from confluent_kafka import TopicPartition as KafkaPartition
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from pydantic import BaseModel

import bucketlog
from benchmarks.under_test import add_arguments, broker_under_test, report
from bucketlog.client.formats import Format
from bucketlog.client.options import producer_config

TOPIC = "sdk"
MODEL_TOPIC = "sdk-model"
READ_TOPIC = "sdk-read"
WINDOW = 10_000
"""Records sent before their results are asked for."""
BATCH = 1000

RAW = bucketlog.Topic(TOPIC)
READ = bucketlog.Topic(READ_TOPIC)


class Reading(BaseModel):
    sensor: str
    at: int
    celsius: float
    note: str


MODEL = bucketlog.Topic(MODEL_TOPIC, value=Reading)
READING = Reading(sensor="sensor-17", at=1_700_000_000, celsius=21.25, note="x" * 36)

Begun = Callable[[], None]
Way = Callable[[str, int, bytes, Begun], None]
"""Address, records, value, and what is called when it has begun: time counts from then."""


def plain(bootstrap: str, count: int, value: bytes, begun: Begun) -> None:
    failures: list[KafkaError] = []

    def reported(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            failures.append(error)

    _plain(bootstrap, count, {"value": value, "on_delivery": reported}, begun)
    assert not failures


def plain_unchecked(bootstrap: str, count: int, value: bytes, begun: Begun) -> None:
    _plain(bootstrap, count, {"value": value}, begun)


def _plain(bootstrap: str, count: int, record: dict[str, Any], begun: Begun) -> None:
    producer = KafkaProducer({"bootstrap.servers": bootstrap, **producer_config({})})
    produce = producer.produce
    produce(TOPIC, **record)
    producer.flush()
    begun()
    for number in range(count):
        while True:
            try:
                produce(TOPIC, **record)
                break
            except BufferError:
                producer.poll(0.1)
        if number % 256 == 0:
            producer.poll(0)
    producer.flush()


def send(bootstrap: str, count: int, value: bytes, begun: Begun) -> None:
    with bucketlog.connect(bootstrap) as log, log.producer() as producer:
        producer.send(RAW, value).result()
        begun()
        for _ in range(count // WINDOW):
            sent = [producer.send(RAW, value) for _ in range(WINDOW)]
            for delivery in sent:
                delivery.result()


def async_send(bootstrap: str, count: int, value: bytes, begun: Begun) -> None:
    async def run() -> None:
        async with bucketlog.aconnect(bootstrap) as log, log.producer() as producer:
            await producer.send(RAW, value)
            begun()
            for _ in range(count // WINDOW):
                sent = [producer.send(RAW, value) for _ in range(WINDOW)]
                for delivery in sent:
                    await delivery

    asyncio.run(run())


def send_many(bootstrap: str, count: int, value: bytes, begun: Begun) -> None:
    with bucketlog.connect(bootstrap) as log, log.producer() as producer:
        producer.send(RAW, value).result()
        begun()
        producer.send_many(RAW, (value for _ in range(count)))


def async_send_many(bootstrap: str, count: int, value: bytes, begun: Begun) -> None:
    async def run() -> None:
        async with bucketlog.aconnect(bootstrap) as log, log.producer() as producer:
            await producer.send(RAW, value)
            begun()
            await producer.send_many(RAW, (value for _ in range(count)))

    asyncio.run(run())


def send_models(bootstrap: str, count: int, _: bytes, begun: Begun) -> None:
    with bucketlog.connect(bootstrap) as log, log.producer() as producer:
        producer.send(MODEL, READING).result()
        begun()
        producer.send_many(MODEL, (READING for _ in range(count)))


def plain_consume(bootstrap: str, count: int, _: bytes, begun: Begun) -> None:
    consumer = KafkaConsumer(
        {"bootstrap.servers": bootstrap, "group.id": "x", "enable.auto.commit": False}
    )
    begun()
    consumer.assign([KafkaPartition(READ_TOPIC, 0, 0)])
    seen = 0
    while seen < count:
        for message in consumer.consume(BATCH, 1.0):
            assert message.error() is None
            seen += len(message.value() or b"") > 0
    consumer.close()


def iterate(bootstrap: str, count: int, _: bytes, begun: Begun) -> None:
    begun()
    with (
        bucketlog.connect(bootstrap) as log,
        log.consumer(READ, start="earliest", until="end") as consumer,
    ):
        assert sum(len(record.value) > 0 for record in consumer) == count


def process(bootstrap: str, count: int, _: bytes, begun: Begun) -> None:
    begun()
    with (
        bucketlog.connect(bootstrap) as log,
        log.consumer(
            READ,
            group=f"process-{time.monotonic_ns()}",
            start="earliest",
            until="end",
            auto_commit="ack",
        ) as consumer,
    ):
        assert consumer.process(lambda record: record.value, concurrency=4) == count


def async_iterate(bootstrap: str, count: int, _: bytes, begun: Begun) -> None:
    async def run() -> None:
        begun()
        async with (
            bucketlog.aconnect(bootstrap) as log,
            log.consumer(READ, start="earliest", until="end") as consumer,
        ):
            seen = 0
            async for record in consumer:
                seen += len(record.value) > 0
            assert seen == count

    asyncio.run(run())


def batches(bootstrap: str, count: int, _: bytes, begun: Begun) -> None:
    begun()
    with (
        bucketlog.connect(bootstrap) as log,
        log.consumer(READ, start="earliest", until="end") as consumer,
    ):
        assert sum(len(r.value) > 0 for some in consumer.batches(BATCH) for r in some) == count


def async_batches(bootstrap: str, count: int, _: bytes, begun: Begun) -> None:
    async def run() -> None:
        begun()
        async with (
            bucketlog.aconnect(bootstrap) as log,
            log.consumer(READ, start="earliest", until="end") as consumer,
        ):
            seen = 0
            async for batch in consumer.batches(BATCH):
                seen += sum(len(record.value) > 0 for record in batch)
            assert seen == count

    asyncio.run(run())


WAYS: tuple[Way, ...] = (
    plain,
    plain_unchecked,
    send_many,
    async_send_many,
    send,
    async_send,
    send_models,
    plain_consume,
    batches,
    async_batches,
    iterate,
    async_iterate,
    process,
)
RATIOS = {
    "send_many": ("plain", 0.9),
    "send": ("plain", 0.4),
    "async_send_many": ("send_many", 0.8),
    "async_send": ("send", 0.8),
    "async_batches": ("batches", 0.8),
    "async_iterate": ("iterate", 0.8),
}
TOLD = {
    "send_many": "plain_unchecked",
    "batches": "plain_consume",
    "iterate": "plain_consume",
    "process": "plain_consume",
}


class Watch:
    """Wall and CPU seconds since it was begun."""

    def begin(self) -> None:
        self._began, self._used = time.perf_counter(), time.process_time()

    def seconds(self) -> tuple[float, float]:
        return time.perf_counter() - self._began, time.process_time() - self._used


def measure(args: argparse.Namespace) -> dict[str, Any]:
    times: dict[str, list[float]] = {}
    cpu: dict[str, list[float]] = {}
    value = b"x" * args.record_bytes
    with broker_under_test(args) as broker:
        with bucketlog.connect(broker.bootstrap) as log:
            for name in (TOPIC, MODEL_TOPIC, READ_TOPIC):
                log.topics.ensure(name, partitions=1)
            with log.producer() as producer:
                producer.send_many(READ, (value for _ in range(args.records)))
        ways = [way for way in WAYS if not args.only or way.__name__ in args.only]
        for _ in range(args.rounds):
            for way in ways:
                watch = Watch()
                way(broker.bootstrap, args.records, value, watch.begin)
                wall_s, cpu_s = watch.seconds()
                times.setdefault(way.__name__, []).append(wall_s)
                cpu.setdefault(way.__name__, []).append(cpu_s)
    micro = 1e6 / args.records
    return {
        "records_per_s": {name: round(args.records / median(all_)) for name, all_ in times.items()},
        "cpu_us_per_record": {name: round(median(all_) * micro, 2) for name, all_ in cpu.items()},
        "us_per_record": {name: round(median(all_) * micro, 2) for name, all_ in times.items()},
        "ratios": {
            f"{name}/{base}": round(ratio(times, name, base), 2)
            for name, base in [*((name, base) for name, (base, _) in RATIOS.items()), *TOLD.items()]
            if name in times and base in times
        },
        "format_us_per_record": {} if args.only else format_costs(args.records),
        "record_bytes": args.record_bytes,
        "records": args.records,
        "rounds": args.rounds,
    }


def ratio(times: dict[str, list[float]], name: str, base: str) -> float:
    """Of throughputs, the median over the rounds."""
    return median(there / here for here, there in zip(times[name], times[base], strict=True))


def format_costs(count: int) -> dict[str, dict[str, float]]:
    """What a value's own encoding and decoding takes, in the same process; a schema registry adds
    a frame and nothing more, once it was asked."""
    message = reading_message()
    typed: tuple[tuple[str, Format[Any], Any], ...] = (
        ("json", MODEL.value_format, READING),
        ("avro", bucketlog.Avro(Reading), READING),
        ("protobuf", bucketlog.Protobuf(type(message)), message),
    )
    return {name: format_cost(chosen, value, count) for name, chosen, value in typed}


def format_cost(chosen: Format[Any], value: Any, count: int) -> dict[str, float]:
    data = chosen.encode(value)
    found = {"bytes": float(len(data))}
    for name, call in (
        ("encode", lambda: chosen.encode(value)),
        ("decode", lambda: chosen.decode(data)),
    ):
        began = time.perf_counter()
        for _ in range(count):
            call()
        found[name] = round((time.perf_counter() - began) * 1e6 / count, 2)
    return found


def reading_message() -> Any:
    """`READING` as protoc's classes have it."""
    field = descriptor_pb2.FieldDescriptorProto
    kinds = (field.TYPE_STRING, field.TYPE_INT64, field.TYPE_DOUBLE, field.TYPE_STRING)
    file = descriptor_pb2.FileDescriptorProto(name="reading.proto", syntax="proto3")
    message = file.message_type.add(name="Reading")
    for number, (name, kind) in enumerate(zip(Reading.model_fields, kinds, strict=True), 1):
        message.field.add(name=name, number=number, type=kind, label=field.LABEL_OPTIONAL)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    made: Any = message_factory.GetMessageClass(pool.FindMessageTypeByName("Reading"))
    return made(**READING.model_dump())


def shortfalls(figures: dict[str, Any]) -> list[str]:
    return [
        f"{name} has {figures['ratios'][f'{name}/{base}']} of {base}'s throughput, {least} wanted"
        for name, (base, least) in RATIOS.items()
        if figures["ratios"].get(f"{name}/{base}", least) < least
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--record-bytes", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--limits", action="store_true")
    names = [way.__name__ for way in WAYS]
    parser.add_argument("--only", nargs="+", choices=names, help="ways to run; default: all")
    add_arguments(parser)
    args = parser.parse_args()
    if args.records % WINDOW:
        parser.error(f"--records is a multiple of {WINDOW}")
    figures = measure(args)
    return report("sdk", figures, shortfalls(figures) if args.limits else ())


if __name__ == "__main__":
    sys.exit(main())
