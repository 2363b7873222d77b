"""Idempotent producers of librdkafka and Java that expired between two records: they get
UNKNOWN_PRODUCER_ID, recover by themselves, and every record is in the log once."""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.rigs.patience import PATIENCE_S, eventually
from tests.scenarios.round_trip import create_topic
from tests.servers.broker_process import BrokerProcess
from tests.servers.components import Components
from tests.servers.kafka_tools import participating_tools

pytestmark = pytest.mark.long

VALUES = ["first", "second", "third"]


class Expiring:
    """A broker whose producers expire at once; `after_expiry` waits until one has expired."""

    def __init__(self, broker: BrokerProcess, log: Path) -> None:
        self.bootstrap = broker.bootstrap
        self._log = log
        self._seen = self._count()

    def _count(self) -> int:
        return self._log.read_text().count("rows of idle producers")

    def after_expiry(self) -> None:
        eventually(lambda: self._count() > self._seen)
        self._seen = self._count()


@pytest.fixture(scope="module")
def broker(
    tmp_path_factory: pytest.TempPathFactory, redis_url: str
) -> Iterator[tuple[BrokerProcess, Path]]:
    place = tmp_path_factory.mktemp("expiry")
    process = BrokerProcess(
        place / "broker.log",
        bucket_url=f"file://{place}/bucket",
        redis_url=redis_url,
        producer_id_expiration_ms="1",
        producer_id_expiration_check_interval_ms="50",
    ).wait_until_ready()
    yield process, place / "broker.log"
    process.kill()


def by_librdkafka(expiring: Expiring, topic: str, place: Path, components: Components) -> None:
    producer = Producer({"bootstrap.servers": expiring.bootstrap, "enable.idempotence": True})
    outcomes: list[object] = []
    for value in VALUES:
        producer.produce(topic, value, on_delivery=lambda error, _: outcomes.append(error))
        assert producer.flush(PATIENCE_S) == 0
        expiring.after_expiry()
    assert outcomes == [None] * len(VALUES)


def by_java(expiring: Expiring, topic: str, place: Path, components: Components) -> None:
    """Java's producer is idempotent by default."""
    tools = participating_tools(expiring.bootstrap, components)
    with (
        (place / "complaints").open("wb") as complaints,
        tools.start(
            "kafka-console-producer",
            *("--topic", topic, "--timeout", "1"),
            complaints=complaints,
            stdin=subprocess.PIPE,
        ) as process,
    ):
        try:
            assert process.stdin is not None
            for value in VALUES:
                process.stdin.write(f"{value}\n")
                process.stdin.flush()
                expiring.after_expiry()
            process.stdin.close()
            assert process.wait(PATIENCE_S) == 0
        finally:
            process.kill()
    said = (place / "complaints").read_text()
    assert "UNKNOWN_PRODUCER_ID" in said
    assert "ERROR" not in said


@pytest.mark.parametrize("produce", [by_librdkafka, by_java])
def test_expired_producers_recover(
    broker: tuple[BrokerProcess, Path],
    produce: Callable[[Expiring, str, Path, Components], None],
    tmp_path: Path,
    components: Components,
) -> None:
    process, log = broker
    topic = produce.__name__
    create_topic(process.bootstrap, topic, 1)
    produce(Expiring(process, log), topic, tmp_path, components)
    consumer = Consumer({"bootstrap.servers": process.bootstrap, "group.id": "unused"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found = [consumer.poll(PATIENCE_S) for _ in VALUES]
    consumer.close()
    assert [(each.value() or b"").decode() for each in found if each is not None] == VALUES
