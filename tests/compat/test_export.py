"""Topics of bucketlog in Apache Kafka: the same records, and groups at their places."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer
from confluent_kafka import Producer

import bucketlog
from bucketlog.client.admin import Admin
from bucketlog.embedded.cluster import EmbeddedCluster
from bucketlog.log_format.errors import ConfigurationError
from bucketlog.mirror.groups import commit_offsets, committed_offsets
from bucketlog.mirror.source import Partition
from bucketlog.mirror.topics import add_partitions
from localstack.apache_kafka import running_kafka
from tests.rigs.patience import PATIENCE_S
from tests.servers.components import Components

pytestmark = pytest.mark.long


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


def run(command: list[str]) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)


def check_a_group_that_read_on(command: list[str], target: Admin) -> None:
    """Another `--finish` leaves the group where its consumers have read on."""
    further = {Partition("a", 0): (410, "there")}
    commit_offsets(target, "g", further)
    done = run([*command, "--finish"])
    assert done.returncode == 0, done.stderr
    assert committed_offsets(target, "g") == further
    assert "group 'g' has read further in the target" in done.stderr
    assert "offsets of 0 groups committed" in done.stdout


def check_that_a_second_export_ends_the_first(command: list[str], source: str) -> None:
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as first:
        assert first.stderr is not None
        while "exporting 1 topic" not in first.stderr.readline():
            assert first.poll() is None
        assert run([*command, "--topics", "a*", "--once"]).returncode == 0
        produce(source, "a", 1)
        _, errors = first.communicate(timeout=PATIENCE_S)
    assert first.returncode == 1, errors
    assert "another export to the same cluster has started" in errors
    assert "Traceback" not in errors


A_CONFIG = {"message.timestamp.type": "LogAppendTime", "max.message.bytes": "8000000"}


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
            check_a_group_that_read_on(command, target)
            if not mode.startswith("--"):
                check_that_a_second_export_ends_the_first(command, cluster.bootstrap)
            unknown = run([*command, "--topics", "nosuch", "--finish"])
            only = run([each if each != "a" else "nosuch" for each in [*command, "--finish"]])
    except ConfigurationError as error:
        components.missing("Apache Kafka", error.remedy)
    assert "1 partition with 500 records are equal" in said
    assert "offsets of 1 group committed" in said
    assert unknown.returncode == 0, "a pattern may match nothing if another matches"
    assert only.returncode == 1
    assert "no topic of the source matches 'nosuch'" in only.stderr
    assert place == {Partition("a", 0): (400 if mode == "--keep-offsets" else 407, "here")}


def test_what_kafka_would_change_or_refuse(tmp_path: Path, components: Components) -> None:
    """Timestamps that Kafka would replace, large records, added partitions, a new topic."""
    try:
        with (
            running_kafka(tmp_path / "kafka", properties={"message.max.bytes": "8000000"}) as kafka,
            EmbeddedCluster(tmp_path / "bucketlog") as cluster,
        ):
            components.took_part("Apache Kafka broker", kafka.version)
            with bucketlog.connect(cluster.bootstrap) as log:
                log.topics.create("a", partitions=1, configs=A_CONFIG)
                log.topics.create("zero", partitions=1)
            command = [
                *(sys.executable, "-m", "bucketlog.cli", "export", "--topics", "a", "--finish"),
                *("--to", f"kafka://{kafka.bootstrap}", "-b", cluster.bootstrap),
            ]
            asyncio.run(send(cluster.bootstrap, "a", bytes(3_000_000)))
            first = run(command)
            source = Admin({"bootstrap.servers": cluster.bootstrap}, timeout_s=PATIENCE_S)
            add_partitions(source, "a", 2)
            asyncio.run(send(cluster.bootstrap, "a", b"new", partition=1))
            second = run(command)
            asyncio.run(send(cluster.bootstrap, "zero", b"old", timestamp_ms=0))
            third = run([each if each != "a" else "zero" for each in command])
            with bucketlog.connect(cluster.bootstrap) as log:
                log.topics.delete("a")
                log.topics.create("a", partitions=2)
            asyncio.run(send(cluster.bootstrap, "a", b"newer", partition=1))
            fourth = run(command)
    except ConfigurationError as error:
        components.missing("Apache Kafka", error.remedy)
    assert first.returncode == 0, first.stderr
    assert "message.timestamp.type=LogAppendTime of 'a' is not copied" in first.stderr
    assert "1 partition with 1 record" in first.stdout
    assert second.returncode == 0, second.stderr
    assert "2 partitions with 2 records are equal" in second.stdout
    assert third.returncode == 1
    assert "zero-0: the record at offset 0 has the timestamp 0" in third.stderr
    assert fourth.returncode == 1
    assert "topic 'a' was deleted and created again since it was exported" in fourth.stderr


async def send(
    bootstrap: str, topic: str, value: bytes, *, partition: int = 0, timestamp_ms: int | None = None
) -> None:
    async with AIOKafkaProducer(bootstrap_servers=bootstrap, max_request_size=8_000_000) as client:
        await client.send_and_wait(topic, value, partition=partition, timestamp_ms=timestamp_ms)
