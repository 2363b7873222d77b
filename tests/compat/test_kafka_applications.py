"""Kafka Connect in distributed mode and Kafka Streams, whose state is in compacted topics: killed,
and begun again from what key compaction has left of it."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import bucketlog
from bucketlog import Topic
from bucketlog.client.log import Log
from bucketlog.embedded.cluster import EmbeddedCluster
from tests.rigs.patience import eventually, let_pass
from tests.servers.cluster import free_port
from tests.servers.kafka_applications import (
    FILE_SINK,
    FILE_SOURCE,
    KEPT,
    ConnectWorker,
    application,
    properties,
    worker_properties,
)
from tests.servers.kafka_tools import KafkaTools

pytestmark = pytest.mark.long

APPLICATION = "streams-wordcount"
QUICK_CLEANING = {
    "compaction_check_interval_ms": "250",
    "compaction_interval_ms": "500",
    "compaction_age_ms_min": "100",
}
ALWAYS_DIRTY = {"min.cleanable.dirty.ratio": "0.01"}
TWICE = 2
LINES = 50
WORDS_TOPIC, COUNTS_TOPIC = "streams-plaintext-input", "streams-wordcount-output"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    """One that compacts soon."""
    folder = tmp_path_factory.mktemp("applications")
    with EmbeddedCluster(folder, settings=QUICK_CLEANING) as cluster:
        yield cluster


@pytest.fixture
def log(broker: EmbeddedCluster) -> Iterator[Log]:
    with bucketlog.connect(broker.bootstrap) as log:
        yield log


def wait_until(what: Callable[[], bool], said: Path) -> None:
    eventually(what, lambda: said.read_text()[-4000:], pause_s=0.2)


def ends(log: Log, topic: str) -> int:
    return sum(each.latest for each in log.topics.describe(topic).partitions)


def records_left(broker: EmbeddedCluster, topic: str) -> int:
    """What a consumer sees from the beginning to the end."""
    with (
        bucketlog.connect(broker.bootstrap) as log,
        log.consumer(Topic(topic), start="earliest", until="end") as consumer,
    ):
        return sum(1 for _ in consumer)


def position_stored(broker: EmbeddedCluster, topic: str) -> int:
    """Of the file source, in bytes, as Connect keeps it: what a worker that starts goes on from."""
    with (
        bucketlog.connect(broker.bootstrap) as log,
        log.consumer(Topic(topic), start="earliest", until="end") as consumer,
    ):
        stored = [json.loads(record.value)["position"] for record in consumer if record.value]
    return int(stored[-1]) if stored else 0


def is_committed(log: Log, group: str) -> bool:
    """Whether the group has committed the end of all that it reads."""
    positions = log.groups.describe(group).positions
    return bool(positions) and all((row.committed or 0) == row.latest for row in positions)


def wait_until_cleaned(broker: EmbeddedCluster, topic: str, below: int, said: Path) -> None:
    wait_until(lambda: records_left(broker, topic) < below, said)


def test_connect_goes_on_from_its_compacted_topics(
    tools: KafkaTools, broker: EmbeddedCluster, log: Log, tmp_path: Path
) -> None:
    port, source, sink, said = free_port(), tmp_path / "in", tmp_path / "out", tmp_path / "said"
    said.touch()
    source.write_text("".join(f"line {number}\n" for number in range(LINES)))
    dirty = {f"{what}.storage.{key}": value for what in KEPT for key, value in ALWAYS_DIRTY.items()}
    config = worker_properties(tmp_path / "worker.properties", broker.bootstrap, port, dirty)
    worker = ConnectWorker(port)

    def arrived(lines: int) -> bool:
        return sink.exists() and len(sink.read_text().splitlines()) >= lines

    with application(tools, "connect-distributed", config, said):
        wait_until(worker.answers, said)
        worker.configure("from", FILE_SOURCE, {"file": str(source), "topic": "lines"})
        worker.configure("to", FILE_SINK, {"file": str(sink), "topics": "lines"})
        wait_until(lambda: arrived(LINES), said)
        for number in range(LINES, TWICE * LINES):  # each a flush of offsets of its own, at most
            with source.open("a") as lines:
                lines.write(f"line {number}\n")
            let_pass(0.05)
        wait_until(lambda: arrived(TWICE * LINES), said)
        assert log.topics.describe("connect-offsets").configs["cleanup.policy"] == "compact"
        written = ends(log, "connect-offsets")
        wait_until_cleaned(broker, "connect-offsets", written, said)
        size = source.stat().st_size
        wait_until(lambda: position_stored(broker, "connect-offsets") == size, said)
    with source.open("a") as lines:
        lines.writelines(f"line {number}\n" for number in range(TWICE * LINES, 3 * LINES))
    with application(tools, "connect-distributed", config, said):
        wait_until(lambda: arrived(3 * LINES), said)
        assert worker.connectors() == ["from", "to"]
    with log.consumer(Topic("lines"), start="earliest", until="end") as consumer:
        found = [record.value for record in consumer]
    assert found == [f"line {number}".encode() for number in range(3 * LINES)]


def test_streams_restore_their_state_from_a_compacted_changelog(
    tools: KafkaTools, broker: EmbeddedCluster, log: Log, tmp_path: Path
) -> None:
    said = tmp_path / "said"
    said.touch()
    for topic in (WORDS_TOPIC, COUNTS_TOPIC):
        log.topics.create(topic, partitions=1)

    def config(turn: int) -> Path:
        values = {
            "bootstrap.servers": broker.bootstrap,
            "state.dir": tmp_path / f"state{turn}",
            "commit.interval.ms": 100,
            "dsl.store.suppliers.class": "org.apache.kafka.streams.state."
            "BuiltInDslStoreSuppliers$InMemoryDslStoreSuppliers",
            "consumer.session.timeout.ms": 6_000,
            "replication.factor": 1,
            **{f"topic.{key}": value for key, value in ALWAYS_DIRTY.items()},
        }
        return properties(tmp_path / f"streams{turn}.properties", values)

    def counts() -> dict[bytes, int]:
        with log.consumer(Topic(COUNTS_TOPIC), start="earliest", until="end") as consumer:
            return {
                record.key: int.from_bytes(record.value, "big")
                for record in consumer
                if record.key is not None and record.value is not None
            }

    def say(times: int) -> None:
        with log.producer() as producer:
            for number in range(times):
                producer.send(Topic(WORDS_TOPIC), f"all words w{number % 5}".encode())

    with application(tools, "word-count", config(1), said):
        say(LINES)
        wait_until(lambda: counts().get(b"all") == LINES, said)
        (changelog,) = [each.name for each in log.topics.list() if each.name.endswith("-changelog")]
        assert "compact" in log.topics.describe(changelog).configs["cleanup.policy"]
        say(LINES)
        wait_until(lambda: counts().get(b"all") == TWICE * LINES, said)
        written = ends(log, changelog)
        wait_until_cleaned(broker, changelog, written, said)
        wait_until(lambda: is_committed(log, APPLICATION), said)
    say(LINES)
    with application(tools, "word-count", config(2), said):
        wait_until(lambda: counts().get(b"all", 0) >= 3 * LINES, said)
    found = counts()
    assert found == {b"all": 3 * LINES, b"words": 3 * LINES} | {
        f"w{number}".encode(): 3 * LINES // 5 for number in range(5)
    }
