"""Kafka Streams is stopped (SIGSTOP) until brokers abort its transaction: it continues, and nothing
is counted twice."""

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.rigs.patience import PATIENCE_S, eventually, let_pass
from tests.scenarios.committed_watch import committed_log
from tests.scenarios.round_trip import create_topic
from tests.servers.components import Components
from tests.servers.kafka_tools import KafkaTools, participating_tools
from tests.servers.own_cluster import OwnCluster

pytestmark = pytest.mark.long

TIMEOUT_MS = 2_000
STOPPED_S = 4.0
"""Longer than the timeout, and shorter than the sessions of the members of a group."""
TIMEOUTS = 2
ABORTED = "after their timeouts"
"""In a broker's log."""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[OwnCluster]:
    cluster = OwnCluster(tmp_path)
    cluster.start()
    yield cluster
    cluster.stop()


@pytest.fixture
def tools(cluster: OwnCluster, components: Components) -> KafkaTools:
    return participating_tools(cluster.bootstrap, components)


def timeouts(cluster: OwnCluster) -> int:
    return (cluster.place / "broker-0.log").read_text().count(ABORTED)


def stop_for_a_while(cluster: OwnCluster, process: "subprocess.Popen[str]") -> bool:
    """True if a transaction was open and is aborted."""
    before = timeouts(cluster)
    process.send_signal(signal.SIGSTOP)
    let_pass(STOPPED_S)
    process.send_signal(signal.SIGCONT)
    return timeouts(cluster) > before


def values(cluster: OwnCluster, topic: str) -> list[bytes]:
    (rows,) = committed_log(cluster.bootstrap, [topic], 1).values()
    return [value for _, value in rows]


def write(cluster: OwnCluster, topic: str, *records: bytes) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "enable.idempotence": True})
    for record in records:
        producer.produce(topic, record, partition=0)
    assert producer.flush(PATIENCE_S) == 0


def test_kafka_streams_continues(cluster: OwnCluster, tools: KafkaTools) -> None:
    words, counts = "streams-plaintext-input", "streams-wordcount-output"
    for topic in (words, counts):
        create_topic(cluster.bootstrap, topic, 1)
    config, said = cluster.place / "streams.properties", cluster.place / "said"
    lines = {
        "bootstrap.servers": cluster.bootstrap,
        "processing.guarantee": "exactly_once_v2",
        "state.dir": cluster.place / "state",
        "commit.interval.ms": TIMEOUT_MS * 3 // 4,
        "producer.transaction.timeout.ms": TIMEOUT_MS,
        "consumer.session.timeout.ms": 10_000,
        "replication.factor": 1,
    }
    config.write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
    written = 0

    def is_counted() -> bool:
        last = values(cluster, counts)[-1:]
        return bool(last) and int.from_bytes(last[0], "big") == written

    with said.open("ab") as output:
        process = tools.start_application("word-count", config, output)
        try:
            for _ in range(TIMEOUTS):
                write(cluster, words, b"word")
                written += 1
                eventually(is_counted, lambda: said.read_text()[-4_000:], pause_s=0.2)

                def stop_while_it_counts() -> bool:
                    nonlocal written
                    write(cluster, words, b"word")
                    written += 1
                    let_pass(0.3)
                    return stop_for_a_while(cluster, process)

                eventually(stop_while_it_counts)
            eventually(is_counted, lambda: said.read_text()[-4_000:], pause_s=0.2)
        finally:
            process.kill()
            process.wait()
