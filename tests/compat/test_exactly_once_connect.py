"""Connect's exactly-once sources: each line of a file becomes one committed record, although the
worker is killed repeatedly and Redis is wiped."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import bucketlog
from bucketlog import Log, Topic
from tests.rigs.patience import PATIENCE_S, eventually, let_pass
from tests.servers.cluster import free_port
from tests.servers.kafka_applications import (
    FILE_SOURCE,
    ConnectWorker,
    application,
    worker_properties,
)
from tests.servers.kafka_tools import KafkaTools
from tests.servers.own_cluster import OwnCluster

pytestmark = pytest.mark.long

LINES = 10
APPENDS = 20
TURNS = 3
TOPIC = Topic("lines", value=str)


@pytest.fixture
def own(tmp_path: Path) -> Iterator[OwnCluster]:
    cluster = OwnCluster(tmp_path)
    cluster.start()
    yield cluster
    cluster.stop()


def committed(log: Log) -> list[str]:
    with log.consumer(TOPIC, start="earliest", until="end") as consumer:
        return [record.value for record in consumer]


def test_each_line_is_one_record(tools: KafkaTools, own: OwnCluster, tmp_path: Path) -> None:
    port, source, said = free_port(), tmp_path / "source", tmp_path / "said"
    said.touch()
    exactly_once = {"exactly.once.source.support": "enabled"}
    config = worker_properties(tmp_path / "worker", own.bootstrap, port, exactly_once)
    worker = ConnectWorker(port)
    connector = {
        "file": str(source),
        "topic": TOPIC.name,
        "exactly.once.support": "required",
        "transaction.boundary": "poll",
    }
    kafka = KafkaTools(own.bootstrap)
    with bucketlog.connect(own.bootstrap) as log:
        log.topics.create(TOPIC, partitions=1)

        def wait_for(count: int) -> None:
            eventually(
                lambda: len(committed(log)) >= count,
                lambda: said.read_text()[-4000:],
                bound_s=2 * PATIENCE_S,
                pause_s=0.5,
            )

        written = 0
        for turn in range(TURNS):
            with application(kafka, "connect-distributed", config, said):
                eventually(worker.answers, lambda: said.read_text()[-4000:], pause_s=0.2)
                worker.configure("from", FILE_SOURCE, connector)
                for _ in range(APPENDS):  # each takes at least one transaction
                    with source.open("a") as lines:
                        lines.writelines(f"{written + number:05}\n" for number in range(LINES))
                    written += LINES
                    let_pass(0.05)
                if turn == 1:
                    own.valkey.wipe()
                wait_for(written - APPENDS // 2 * LINES)
        with application(kafka, "connect-distributed", config, said):
            wait_for(written)
        assert committed(log) == [f"{number:05}" for number in range(written)]
