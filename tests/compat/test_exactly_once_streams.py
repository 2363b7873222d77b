"""Kafka Streams with `exactly_once_v2` counts each word once, although the application and a broker
are killed, and Redis is lost."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.rigs.patience import PATIENCE_S, eventually
from tests.scenarios.round_trip import create_topic
from tests.servers.components import Components
from tests.servers.kafka_tools import participating_tools
from tests.servers.own_cluster import OwnCluster

pytestmark = pytest.mark.long

WORDS, COUNTS = "streams-plaintext-input", "streams-wordcount-output"
LINES = 50
TURNS = 4


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[OwnCluster]:
    cluster = OwnCluster(tmp_path)
    cluster.start()
    yield cluster
    cluster.stop()


def counts(cluster: OwnCluster) -> dict[bytes, int]:
    """The last count of each word with `read_committed`. No count is repeated or skipped."""
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": "unused",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(COUNTS, 0, 0)])
    found: dict[bytes, int] = {}
    while True:
        message = consumer.poll(PATIENCE_S)
        assert message is not None, "no record came"
        if message.error() is not None:
            break
        key, value = message.key() or b"", int.from_bytes(message.value() or b"", "big")
        assert value > found.get(key, 0), f"{key!r} goes from {found.get(key)} to {value}"
        found[key] = value
    consumer.close()
    return found


def say(cluster: OwnCluster) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "enable.idempotence": True})
    for number in range(LINES):
        producer.produce(WORDS, f"all words w{number % 5}".encode(), partition=0)
    assert producer.flush(PATIENCE_S) == 0


def config(cluster: OwnCluster, turn: int) -> Path:
    values = {
        "bootstrap.servers": cluster.bootstrap,
        "processing.guarantee": "exactly_once_v2",
        "state.dir": cluster.place / f"state{turn}",
        "commit.interval.ms": 100,
        "consumer.session.timeout.ms": 6_000,
        "replication.factor": 1,
        "dsl.store.suppliers.class": "org.apache.kafka.streams.state."
        "BuiltInDslStoreSuppliers$InMemoryDslStoreSuppliers",
    }
    path = cluster.place / f"streams{turn}.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in values.items()))
    return path


def test_each_word_is_counted_once(cluster: OwnCluster, components: Components) -> None:
    tools = participating_tools(cluster.bootstrap, components)
    for topic in (WORDS, COUNTS):
        create_topic(cluster.bootstrap, topic, 1)
    cluster.start()
    complaints = cluster.place / "said"
    for turn in range(1, TURNS + 1):
        with complaints.open("ab") as said:
            process = tools.start_application("word-count", config(cluster, turn), said)
            try:
                say(cluster)
                if turn == 2:
                    cluster.valkey.wipe()
                if turn == 3:
                    cluster.brokers[0].kill()
                if turn == TURNS:
                    wait_for_counts(cluster, complaints)
                else:
                    eventually(lambda: bool(counts(cluster)), complaints.read_text)
            finally:
                process.kill()
                process.wait()
    assert counts(cluster) == {b"all": TURNS * LINES, b"words": TURNS * LINES} | {
        f"w{number}".encode(): TURNS * LINES // 5 for number in range(5)
    }


def wait_for_counts(cluster: OwnCluster, complaints: Path) -> None:
    eventually(
        lambda: counts(cluster).get(b"w4") == TURNS * LINES // 5,
        lambda: complaints.read_text()[-4_000:],
        bound_s=3 * PATIENCE_S,
        pause_s=0.5,
    )
