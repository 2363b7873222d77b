"""Topics of bucketlog in Apache Kafka: the same records, and groups at their places."""

import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka import Producer

import bucketlog
from bucketlog.client.admin import Admin
from bucketlog.embedded.cluster import EmbeddedCluster
from bucketlog.log_format.errors import ConfigurationError
from bucketlog.mirror.groups import commit_offsets, committed_offsets
from bucketlog.mirror.source import Partition
from localstack.apache_kafka import running_kafka
from tests.rigs.patience import PATIENCE_S
from tests.servers.components import Components


def produce(bootstrap: str, topic: str, count: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(count):
        producer.produce(topic, str(number).encode(), key=b"k", headers={"h": b"x"}, partition=0)
    producer.flush()


def abort(bootstrap: str, topic: str) -> None:
    """As an export that was killed in its first transaction: five offsets and a marker."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "killed"})
    producer.init_transactions(PATIENCE_S)
    producer.begin_transaction()
    for _ in range(5):
        producer.produce(topic, b"aborted", partition=0)
    producer.flush()
    producer.abort_transaction(PATIENCE_S)


@pytest.mark.parametrize("mode", ["--keep-offsets", "transactions"])
def test_an_export(tmp_path: Path, components: Components, mode: str) -> None:
    """By transactions, six offsets are before the first 300 records, and a marker behind them."""
    try:
        with (
            running_kafka(tmp_path / "kafka") as kafka,
            EmbeddedCluster(tmp_path / "bucketlog") as cluster,
        ):
            components.took_part("Apache Kafka broker", kafka.version)
            with bucketlog.connect(cluster.bootstrap) as log:
                log.topics.create("a", partitions=1)
            if not mode.startswith("--"):
                abort(kafka.bootstrap, "a")
            command = [
                *(sys.executable, "-m", "bucketlog.cli", "export", "--topics", "a"),
                *("--to", f"kafka://{kafka.bootstrap}", "-b", cluster.bootstrap),
                *([mode] if mode.startswith("--") else []),
            ]
            produce(cluster.bootstrap, "a", 300)
            subprocess.run([*command, "--once"], check=True, timeout=PATIENCE_S)
            produce(cluster.bootstrap, "a", 200)
            source = Admin({"bootstrap.servers": cluster.bootstrap}, timeout_s=PATIENCE_S)
            commit_offsets(source, "g", {Partition("a", 0): (400, "here")})
            said = subprocess.run(
                [*command, "--finish"],
                check=True,
                stdout=subprocess.PIPE,
                text=True,
                timeout=PATIENCE_S,
            ).stdout
            target = Admin({"bootstrap.servers": kafka.bootstrap}, timeout_s=PATIENCE_S)
            place = committed_offsets(target, "g")
    except ConfigurationError as error:
        components.missing("Apache Kafka", error.remedy)
    assert "1 partition with 500 records are equal" in said
    assert place == {Partition("a", 0): (400 if mode == "--keep-offsets" else 407, "here")}
