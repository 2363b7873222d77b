"""Kafka clients of other people behind one interface: produce rows, consume rows.

Invariant: an adapter adds no retry, order or check of its own; what it reports is what the client
acknowledged or delivered. Partitions are explicit, so that the order of each is known.
"""

import asyncio
import importlib.metadata
import os
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from typing import IO, Any, NamedTuple, Protocol

import aiokafka
import confluent_kafka
import kafka

from tests.rigs.client_tls import ClientTls
from tests.rigs.patience import PATIENCE_S
from tests.servers import franz_go

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
LINGER_MS = 20
BATCH_BYTES = 100_000


class Row(NamedTuple):
    """The value is never empty and, like the key, has no NUL, tab or newline (kcat's limits)."""

    partition: int
    key: bytes
    value: bytes


Rows = Sequence[Row]
Consumed = dict[int, list[tuple[bytes | None, bytes | None]]]
"""By partition: key and value, in offset order. Offsets are dense from 0, or an adapter fails."""


class KafkaClient(Protocol):
    name: str

    def version(self) -> str: ...

    def produce(
        self, bootstrap: str, topic: str, rows: Rows, *, codec: str, idempotent: bool
    ) -> None:
        """Returns when all are acknowledged by all; raises if one is not."""
        ...

    def consume(self, bootstrap: str, topic: str, partitions: int, count: int) -> Consumed:
        """The first `count` records of the topic, from the beginning."""
        ...


class _Collector:
    """Records by partition, each held against the offset it must have."""

    def __init__(self, partitions: int) -> None:
        self.rows: Consumed = {partition: [] for partition in range(partitions)}
        self.count = 0

    def add(self, partition: int, offset: int, key: bytes | None, value: bytes | None) -> None:
        mine = self.rows[partition]
        if offset != len(mine):
            raise AssertionError(f"partition {partition}: offset {offset}, not {len(mine)}")
        mine.append((key, value))
        self.count += 1


def _collect(data: bytes, partitions: int) -> _Collector:
    """Of each record: a line with partition, offset and two lengths, then the key and the value."""
    found = _Collector(partitions)
    at = 0
    while at < len(data):
        end = data.index(b"\n", at)
        partition, offset, key_length, value_length = map(int, data[at:end].split())
        middle = end + 1 + key_length
        at = middle + value_length
        found.add(partition, offset, data[end + 1 : middle], data[middle:at])
    return found


class ConfluentKafka:
    name = "confluent-kafka"

    def __init__(self, tls: ClientTls | None = None) -> None:
        self._security = tls.librdkafka() if tls else {}

    def version(self) -> str:
        return f"{confluent_kafka.__version__}, librdkafka {confluent_kafka.libversion()[0]}"

    def produce(
        self, bootstrap: str, topic: str, rows: Rows, *, codec: str, idempotent: bool
    ) -> None:
        producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": bootstrap,
                "compression.type": codec,
                "enable.idempotence": idempotent,
                "linger.ms": LINGER_MS,
                "batch.size": BATCH_BYTES,
            }
            | self._security
        )
        failures: list[str] = []

        def acknowledged(error: object, _: object) -> None:
            if error is not None:
                failures.append(str(error))

        for row in rows:
            while True:
                try:
                    producer.produce(
                        topic, row.value, row.key, row.partition, on_delivery=acknowledged
                    )
                    break
                except BufferError:
                    producer.poll(0.1)
            producer.poll(0)
        left = producer.flush(PATIENCE_S)
        if left or failures:
            raise AssertionError(f"{left} not acknowledged, {len(failures)} failed: {failures[:3]}")

    def consume(self, bootstrap: str, topic: str, partitions: int, count: int) -> Consumed:
        consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "none",
                "enable.auto.commit": False,
                "check.crcs": True,
            }
            | self._security
        )
        found = _Collector(partitions)
        try:
            consumer.assign(
                [confluent_kafka.TopicPartition(topic, number, 0) for number in range(partitions)]
            )
            while found.count < count:
                messages = consumer.consume(min(10_000, count - found.count), timeout=PATIENCE_S)
                if not messages:
                    raise AssertionError(f"nothing within {PATIENCE_S} s, {found.count} so far")
                for message in messages:
                    if message.error():
                        raise AssertionError(str(message.error()))
                    found.add(
                        _whole(message.partition()),
                        _whole(message.offset()),
                        _octets(message.key()),
                        _octets(message.value()),
                    )
        finally:
            consumer.close()
        return found.rows


def _whole(number: int | None) -> int:
    assert number is not None
    return number


def _octets(data: str | bytes | None) -> bytes | None:
    return data.encode() if isinstance(data, str) else data


class AioKafka:
    name = "aiokafka"

    def __init__(self, tls: ClientTls | None = None) -> None:
        self._security = tls.python() if tls else {}

    def version(self) -> str:
        return importlib.metadata.version("aiokafka")

    def produce(
        self, bootstrap: str, topic: str, rows: Rows, *, codec: str, idempotent: bool
    ) -> None:
        asyncio.run(self._produce(bootstrap, topic, rows, codec, idempotent))

    async def _produce(
        self, bootstrap: str, topic: str, rows: Rows, codec: str, idempotent: bool
    ) -> None:
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=bootstrap,
            compression_type=None if codec == "none" else codec,
            enable_idempotence=idempotent,
            acks="all",
            linger_ms=LINGER_MS,
            max_batch_size=BATCH_BYTES,
            **self._security,
        )
        async with producer:
            waiting = [
                await producer.send(topic, row.value, row.key, row.partition) for row in rows
            ]
            await asyncio.wait_for(asyncio.gather(*waiting), PATIENCE_S)

    def consume(self, bootstrap: str, topic: str, partitions: int, count: int) -> Consumed:
        return asyncio.run(self._consume(bootstrap, topic, partitions, count))

    async def _consume(self, bootstrap: str, topic: str, partitions: int, count: int) -> Consumed:
        consumer = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=bootstrap,
            group_id=None,
            auto_offset_reset="earliest",
            **self._security,
        )
        found = _Collector(partitions)
        async with consumer:
            where = [aiokafka.TopicPartition(topic, number) for number in range(partitions)]
            consumer.assign(where)
            await consumer.seek_to_beginning(*where)
            async with asyncio.timeout(PATIENCE_S):
                while found.count < count:
                    batches = await consumer.getmany(timeout_ms=1000)
                    for messages in batches.values():
                        for each in messages:
                            found.add(each.partition, each.offset, each.key, each.value)
        return found.rows


class KafkaPython:
    name = "kafka-python"

    def __init__(self, tls: ClientTls | None = None) -> None:
        self._security = tls.python() if tls else {}

    def version(self) -> str:
        return importlib.metadata.version("kafka-python")

    def produce(
        self, bootstrap: str, topic: str, rows: Rows, *, codec: str, idempotent: bool
    ) -> None:
        producer = kafka.KafkaProducer(
            bootstrap_servers=bootstrap,
            compression_type=None if codec == "none" else codec,
            enable_idempotence=idempotent,
            acks="all",
            linger_ms=LINGER_MS,
            batch_size=BATCH_BYTES,
            **self._security,
        )
        try:
            waiting: list[Any] = [
                producer.send(topic, row.value, row.key, partition=row.partition) for row in rows
            ]
            producer.flush(PATIENCE_S)
            for each in waiting:
                each.get(timeout=PATIENCE_S)
        finally:
            producer.close(PATIENCE_S)

    def consume(self, bootstrap: str, topic: str, partitions: int, count: int) -> Consumed:
        consumer = kafka.KafkaConsumer(bootstrap_servers=bootstrap, group_id=None, **self._security)
        found = _Collector(partitions)
        try:
            where = [kafka.TopicPartition(topic, number) for number in range(partitions)]
            consumer.assign(where)
            consumer.seek_to_beginning(*where)
            while found.count < count:
                batches = consumer.poll(timeout_ms=1000 * PATIENCE_S, max_records=10_000)
                if not batches:
                    raise AssertionError(f"nothing within {PATIENCE_S} s, {found.count} so far")
                for messages in batches.values():
                    for each in messages:
                        found.add(each.partition, each.offset, each.key, each.value)
        finally:
            consumer.close()
        return found.rows


class Kcat:
    """The program `kcat` (librdkafka of the system)."""

    name = "kcat"

    def __init__(self, tls: ClientTls | None = None) -> None:
        self._security = tuple(tls.kcat() if tls else ())
        self._environment = tls.kcat_environment() if tls else {}

    def version(self) -> str:
        done = subprocess.run(["kcat", "-V"], capture_output=True, text=True, check=True)
        return next(line for line in done.stdout.splitlines() if line.startswith("Version"))

    def produce(
        self, bootstrap: str, topic: str, rows: Rows, *, codec: str, idempotent: bool
    ) -> None:
        by_partition: dict[int, list[Row]] = {}
        for row in rows:
            by_partition.setdefault(row.partition, []).append(row)
        for partition, mine in by_partition.items():
            settings = (
                f"compression.codec={codec}",
                f"enable.idempotence={str(idempotent).lower()}",
                f"linger.ms={LINGER_MS}",
                f"batch.size={BATCH_BYTES}",
                *self._security,
            )
            where = ("-b", bootstrap, "-t", topic, "-p", str(partition))
            data = b"".join(row.key + b"\t" + row.value + b"\n" for row in mine)
            self._run(["-P", *where, "-K", "\t", *_options(settings)], data)

    def consume(self, bootstrap: str, topic: str, partitions: int, count: int) -> Consumed:
        where = ("-b", bootstrap, "-t", topic, "-o", "beginning", "-e", "-c", str(count))
        form = "%p %o %K %S\n%k%s"
        settings = ("check.crcs=true", *self._security)
        data = self._run(["-C", *where, "-q", *_options(settings), "-f", form], b"")
        found = _collect(data, partitions)
        if found.count != count:
            raise AssertionError(f"kcat printed {found.count} records, not {count}")
        return found.rows

    def list_brokers(self, bootstrap: str, timeout_s: int = 3) -> None:
        """Raises `AssertionError` if the client is not served in this time."""
        self._run(["-L", "-b", bootstrap, "-m", str(timeout_s), *_options(self._security)], b"")

    def _run(self, arguments: list[str], data: bytes) -> bytes:
        errors: IO[bytes]
        with tempfile.TemporaryFile() as errors:
            done = subprocess.run(
                ["kcat", *arguments],
                input=data,
                stdout=subprocess.PIPE,
                stderr=errors,
                timeout=PATIENCE_S,
                check=False,
                env=os.environ | self._environment,
            )
            errors.seek(0)
            told = errors.read().decode(errors="replace")
        if done.returncode or "ERROR" in told or "failed" in told:
            raise AssertionError(f"kcat ended with {done.returncode}: {told[-500:]}")
        return done.stdout


class FranzGo:
    """A program in Go. Raises `ConfigurationError` where it is not installed."""

    name = "franz-go"

    def __init__(self, tls: ClientTls | None = None) -> None:
        self._tls = tls

    def version(self) -> str:
        return franz_go.version()

    def produce(
        self, bootstrap: str, topic: str, rows: Rows, *, codec: str, idempotent: bool
    ) -> None:
        lines = b"".join(b"%d\t%s\t%s\n" % row for row in rows)
        words = ("produce", topic, codec, str(idempotent).lower())
        franz_go.run(bootstrap, self._tls, *words, stdin=lines)

    def consume(self, bootstrap: str, topic: str, partitions: int, count: int) -> Consumed:
        words = ("consume", topic, str(count), str(partitions))
        return _collect(franz_go.run(bootstrap, self._tls, *words), partitions).rows


def _options(settings: Sequence[str]) -> list[str]:
    return [word for setting in settings for word in ("-X", setting)]


CLIENTS: dict[str, KafkaClient] = {
    client.name: client for client in (ConfluentKafka(), AioKafka(), KafkaPython(), Kcat())
}
KINDS: dict[str, Callable[[ClientTls], KafkaClient]] = {
    "confluent-kafka": ConfluentKafka,
    "aiokafka": AioKafka,
    "kafka-python": KafkaPython,
    "kcat": Kcat,
    "franz-go": FranzGo,
}
"""By name, for a client with TLS or a login."""
