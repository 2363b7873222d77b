"""Third-party clients that write transactions: what is committed is read once by `read_committed`,
what is aborted never, and nobody is ended by a timeout, a wiped Redis or a killed broker."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka import TopicPartition as AioPartition
from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from kafka import KafkaProducer

import bucketlog
from bucketlog.client.bounded import bounded
from bucketlog.inspect.verify import verify_log
from bucketlog.tiered_storage.backends.file import FileBucket
from tests.rigs.patience import PATIENCE_S, eventually
from tests.scenarios.round_trip import create_topic
from tests.servers.components import Components
from tests.servers.kafka_tools import participating_tools
from tests.servers.own_cluster import OwnCluster

pytestmark = pytest.mark.long

T = TypeVar("T")
CALL_S, HUNG_S = 10.0, 30.0
"""The limit of a call of librdkafka, and when a call that ignores it is given up."""


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnCluster]:
    cluster = OwnCluster(tmp_path_factory.mktemp("transactions"))
    cluster.start()
    yield cluster
    cluster.stop()


@pytest.fixture
def own(tmp_path: Path) -> Iterator[OwnCluster]:
    cluster = OwnCluster(tmp_path)
    cluster.start()
    yield cluster
    cluster.stop()


def producer_of(cluster: OwnCluster, transactional_id: str, **config: Any) -> Producer:
    made = Producer(
        {"bootstrap.servers": cluster.bootstrap, "transactional.id": transactional_id}
        | {each.replace("_", "."): value for each, value in config.items()}
    )
    made.init_transactions(PATIENCE_S)
    return made


def read(cluster: OwnCluster, topic: str, partitions: int = 1) -> list[bytes]:
    """All that is committed, sorted."""
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": "unused",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
    found: list[bytes] = []
    left = partitions
    while left:
        message = consumer.poll(PATIENCE_S)
        assert message is not None, "no record came"
        if message.error() is not None:
            left -= 1
        else:
            found.append(message.value() or b"")
    consumer.close()
    return sorted(found)


def wait_for(cluster: OwnCluster, topic: str, count: int) -> None:
    """Until so many records are committed."""
    eventually(lambda: len(read(cluster, topic)) >= count, bound_s=2 * PATIENCE_S)


def check_bucket(cluster: OwnCluster, topic: str, values: list[bytes]) -> None:
    """What a reader of the bucket alone shows, once all brokers have stopped, and that no byte of
    the log contradicts another."""
    for broker in cluster.brokers:
        if broker.process.poll() is None:
            broker.terminate()
    found = bucketlog.replay(f"file://{cluster.place}/bucket", topic)
    assert sorted(record.value for record in found) == values
    assert verify_log(FileBucket(cluster.place / "bucket" / "0")).damage == []


def write(producer: Producer, topic: str, *values: bytes) -> None:
    for value in values:
        producer.produce(topic, value, partition=0)
    assert producer.flush(PATIENCE_S) == 0


# One client at a time ----------------------------------------------------------------------------


def test_librdkafka_commits_and_aborts(shared: OwnCluster) -> None:
    create_topic(shared.bootstrap, "rdkafka", 2)
    producer = producer_of(shared, "rdkafka")
    for turn in range(6):
        producer.begin_transaction()
        for number in range(4):
            producer.produce("rdkafka", b"%d-%d" % (turn, number), partition=number % 2)
        if turn % 2:
            producer.flush(PATIENCE_S)
            producer.abort_transaction(PATIENCE_S)
        else:
            producer.commit_transaction(PATIENCE_S)
    expected = [b"%d-%d" % (turn, number) for turn in (0, 2, 4) for number in range(4)]
    assert read(shared, "rdkafka", 2) == expected


async def test_aiokafka_commits_aborts_and_copies(shared: OwnCluster) -> None:
    create_topic(shared.bootstrap, "aio-in", 1)
    create_topic(shared.bootstrap, "aio-out", 1)
    producer = AIOKafkaProducer(bootstrap_servers=shared.bootstrap, transactional_id="aio")
    await producer.start()
    consumer = AIOKafkaConsumer(
        "aio-in",
        bootstrap_servers=shared.bootstrap,
        group_id="aio",
        isolation_level="read_committed",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    try:
        async with producer.transaction():
            await producer.send_and_wait("aio-in", b"committed", partition=0)
        with suppress(ZeroDivisionError):
            async with producer.transaction():
                await producer.send_and_wait("aio-in", b"aborted", partition=0)
                raise ZeroDivisionError
        await consumer.start()
        message = await asyncio.wait_for(consumer.getone(), PATIENCE_S)
        assert message.value == b"committed"
        part = AioPartition("aio-in", 0)
        async with producer.transaction():
            await producer.send_and_wait("aio-out", message.value, partition=0)
            await producer.send_offsets_to_transaction({part: message.offset + 1}, "aio")
        assert await consumer.committed(part) == message.offset + 1
    finally:
        await consumer.stop()
        await producer.stop()
    assert read(shared, "aio-in") == [b"committed"]
    assert read(shared, "aio-out") == [b"committed"]


def test_kafka_python_commits_and_aborts(shared: OwnCluster) -> None:
    create_topic(shared.bootstrap, "python", 1)
    producer = KafkaProducer(bootstrap_servers=shared.bootstrap, transactional_id="python")
    try:
        producer.init_transactions()
        for turn in range(4):
            producer.begin_transaction()
            producer.send("python", b"%d" % turn, partition=0).get(PATIENCE_S)
            if turn % 2:
                producer.abort_transaction()
            else:
                producer.commit_transaction()
    finally:
        producer.close()
    assert read(shared, "python") == [b"0", b"2"]


def test_java_copies_in_transactions(shared: OwnCluster, components: Components) -> None:
    """Version 2 of transactions, with random aborts."""
    tools = participating_tools(shared.bootstrap, components)
    create_topic(shared.bootstrap, "java-in", 1)
    create_topic(shared.bootstrap, "java-out", 1)
    values = [b"%04d" % number for number in range(500)]
    producer = Producer({"bootstrap.servers": shared.bootstrap})
    write(producer, "java-in", *values)
    tools.lines(
        "transactional-message-copier",
        *("--input-topic", "java-in", "--output-topic", "java-out", "--input-partition", "0"),
        *("--transactional-id", "java", "--consumer-group", "java"),
        *("--transaction-size", "50", "--max-messages", "500", "--enable-random-aborts"),
        "--use-group-metadata",
    )
    assert read(shared, "java-out") == values


# What goes wrong ---------------------------------------------------------------------------------


def test_a_second_producer_fences_the_first(shared: OwnCluster) -> None:
    create_topic(shared.bootstrap, "fenced", 1)
    first = producer_of(shared, "fenced")
    first.begin_transaction()
    write(first, "fenced", b"of the first")
    second = producer_of(shared, "fenced")
    second.begin_transaction()
    write(second, "fenced", b"of the second")
    second.commit_transaction(PATIENCE_S)
    with pytest.raises(KafkaException) as caught:
        first.commit_transaction(PATIENCE_S)
    assert caught.value.args[0].fatal()
    assert read(shared, "fenced") == [b"of the second"]


def test_a_producer_goes_on_after_a_timeout(shared: OwnCluster) -> None:
    create_topic(shared.bootstrap, "late", 1)
    producer = producer_of(shared, "late", transaction_timeout_ms=1_000)
    producer.begin_transaction()
    write(producer, "late", b"too late")
    log = shared.place / "broker-0.log"
    eventually(lambda: "the first of them of 'late'" in log.read_text())
    with pytest.raises(KafkaException) as caught:
        producer.commit_transaction(PATIENCE_S)
    assert caught.value.args[0].txn_requires_abort()
    producer.abort_transaction(PATIENCE_S)
    producer.begin_transaction()
    write(producer, "late", b"in time")
    producer.commit_transaction(PATIENCE_S)
    assert read(shared, "late") == [b"in time"]


def test_a_transaction_outlives_redis(own: OwnCluster) -> None:
    create_topic(own.bootstrap, "wiped", 1)
    producer = producer_of(own, "wiped")
    for turn in range(3):
        producer.begin_transaction()
        write(producer, "wiped", b"%d, before" % turn)
        own.valkey.wipe()
        write(producer, "wiped", b"%d, after" % turn)
        producer.commit_transaction(PATIENCE_S)
    expected = [b"%d, %s" % (turn, when) for turn in range(3) for when in (b"after", b"before")]
    assert read(own, "wiped") == expected


def test_a_java_copy_job_outlives_brokers_and_redis(
    own: OwnCluster, components: Components
) -> None:
    create_topic(own.bootstrap, "in", 1)
    create_topic(own.bootstrap, "out", 1)
    own.start()
    values = [b"%05d" % number for number in range(4_000)]
    write(Producer({"bootstrap.servers": own.bootstrap}), "in", *values)
    with (
        (own.place / "complaints").open("wb") as complaints,
        participating_tools(own.bootstrap, components).start(
            "transactional-message-copier",
            *("--input-topic", "in", "--output-topic", "out", "--input-partition", "0"),
            *("--transactional-id", "java", "--consumer-group", "java", "--use-group-metadata"),
            *("--transaction-size", "10", "--max-messages", str(len(values)), "--group-mode"),
            complaints=complaints,
        ) as copier,
    ):
        try:
            for reached in (300, 900, 1_500, 2_100):
                wait_for(own, "out", reached)
                if reached in (900, 2_100):
                    own.kill_and_restart(own.brokers[-2])
                else:
                    own.valkey.wipe()
            said, _ = copier.communicate(timeout=2 * PATIENCE_S)
        finally:
            copier.kill()
    assert copier.returncode == 0, said[-2_000:]
    assert read(own, "out") == values
    check_bucket(own, "out", values)


class CopyJob:
    """Copies topic `in` to `out` as a member of a group, with the group's offsets in the
    transactions. A producer of librdkafka that hangs is replaced (its issue 5511)."""

    def __init__(self, cluster: OwnCluster) -> None:
        self._cluster = cluster
        self._producer = producer_of(cluster, "copy")
        self._consumer = Consumer(
            {
                "bootstrap.servers": cluster.bootstrap,
                "group.id": "copy",
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
            }
        )
        self._consumer.subscribe(["in"])

    def copy(self, count: int) -> int:
        """One transaction of up to `count` records. Returns how many were copied."""
        messages = [
            each for each in self._consumer.consume(count, timeout=1) if each.error() is None
        ]
        if not messages:
            return 0
        try:
            self._copy(messages)
        except KafkaException as error:
            if error.args[0].code() == KafkaError._TIMED_OUT:
                self._producer = producer_of(self._cluster, "copy")  # aborts what is open
            elif error.args[0].txn_requires_abort():
                self._producer.abort_transaction(PATIENCE_S)
            else:
                raise
            self._rewind()
            return 0
        return len(messages)

    def _copy(self, messages: list[Message]) -> None:
        self._producer.begin_transaction()
        for message in messages:
            self._producer.produce("out", message.value(), partition=0)
        metadata = self._consumer.consumer_group_metadata()
        position = self._consumer.position(self._consumer.assignment())
        self._retried(self._producer.send_offsets_to_transaction, position, metadata)
        self._retried(self._producer.commit_transaction)

    def _retried(self, call: Callable[..., T], *arguments: Any) -> T:
        while True:
            try:
                return bounded(lambda: call(*arguments, CALL_S), HUNG_S)
            except KafkaException as error:
                # errors of `committed` that a caller may retry are not marked retriable
                is_moving = error.args[0].code() == KafkaError.NOT_COORDINATOR
                if not is_moving and not error.args[0].retriable():
                    raise

    def _rewind(self) -> None:
        assigned = self._consumer.assignment()
        for part in self._retried(self._consumer.committed, assigned):
            self._consumer.seek(TopicPartition(part.topic, part.partition, max(part.offset, 0)))

    def close(self) -> None:
        self._consumer.close()


def test_a_copy_job_outlives_brokers_and_redis(own: OwnCluster) -> None:
    create_topic(own.bootstrap, "in", 1)
    create_topic(own.bootstrap, "out", 1)
    own.start()
    values = [b"%05d" % number for number in range(2_000)]
    write(Producer({"bootstrap.servers": own.bootstrap}), "in", *values)
    job = CopyJob(own)
    copied = turns = 0
    while copied < len(values):
        copied += job.copy(50)
        turns += 1
        if turns in (8, 24):
            own.valkey.wipe()
        if turns in (14, 30):
            own.kill_and_restart(own.brokers[-2])
    job.close()
    assert read(own, "out") == values
    check_bucket(own, "out", values)
