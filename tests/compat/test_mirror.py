"""Topics of Apache Kafka in bucketlog: the same records at the same offsets, also after kills."""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.cimpl import NewTopic

from bucketlog.client.admin import LATEST, Admin
from bucketlog.embedded.cluster import EmbeddedCluster
from bucketlog.log_format.errors import ConfigurationError, LogError
from bucketlog.mirror.groups import commit_offsets, committed_offsets
from bucketlog.mirror.source import Partition
from bucketlog.mirror.topics import (
    MIRROR_SOURCE,
    WRITE_LIMIT,
    add_partitions,
    alter,
    change_of,
    configs_of,
    topics_of,
)
from localstack.apache_kafka import running_kafka
from tests.rigs.patience import PATIENCE_S, eventually
from tests.servers.components import Components

pytestmark = pytest.mark.long

TOPICS = {"plain": 3, "txn": 2, "keyed": 1}
RECORDS = 20_000
Rows = dict[tuple[str, int], list[tuple[object, ...]]]


@dataclass(frozen=True, slots=True)
class Clusters:
    kafka: str
    bucketlog: str
    log: Path
    started: "list[subprocess.Popen[str]]" = field(default_factory=list)

    def mirror(self, *arguments: str) -> "subprocess.Popen[str]":
        with self.log.open("a") as log:
            process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "bucketlog.cli", "mirror", "--topics", "*"),
                    *("--from", f"kafka://{self.kafka}", "-b", self.bucketlog, *arguments),
                ],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        self.started.append(process)
        return process

    def kill(self) -> None:
        """End the commands that a failed test has left."""
        for process in self.started:
            process.kill()
            process.wait()
            assert process.stdout is not None
            process.stdout.close()

    def done(self, *arguments: str) -> str:
        process = self.mirror(*arguments)
        said, _ = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0, self.log.read_text()
        return said

    def refused(self, why: str, *arguments: str) -> None:
        process = self.mirror(*arguments)
        process.communicate(timeout=PATIENCE_S)
        assert process.returncode
        assert why in self.log.read_text().splitlines()[-1]


@pytest.fixture
def clusters(tmp_path: Path, components: Components) -> Iterator[Clusters]:
    try:
        with (
            running_kafka(tmp_path / "kafka") as kafka,
            EmbeddedCluster(tmp_path / "bucketlog", brokers=2) as cluster,
        ):
            components.took_part("Apache Kafka broker", kafka.version)
            found = Clusters(kafka.bootstrap, cluster.bootstrap, tmp_path / "mirror.log")
            yield found
            found.kill()
    except ConfigurationError as error:
        components.missing("Apache Kafka", error.remedy)


def fill(kafka: str) -> None:
    """Idempotent, plain and transactional batches, some aborted; committed offsets."""
    admin = Admin({"bootstrap.servers": kafka}, timeout_s=PATIENCE_S)
    configs = {"keyed": {"cleanup.policy": "compact"}, "txn": {"retention.ms": "-1"}}
    new = [NewTopic(name, count, 1, config=configs.get(name, {})) for name, count in TOPICS.items()]
    for future in admin.client.create_topics(new).values():
        future.result(PATIENCE_S)
    plain = Producer(
        {"bootstrap.servers": kafka, "compression.type": "lz4", "enable.idempotence": True}
    )
    for number in range(RECORDS):
        topic = "keyed" if number % 10 == 0 else "plain"
        key = str(number % 97).encode()
        plain.produce(topic, str(number).encode(), key=key, headers={"h": b"x"})
        if number % 500 == 0:
            plain.flush()
    plain.flush()
    ending = Producer({"bootstrap.servers": kafka, "transactional.id": "t"})
    ending.init_transactions(PATIENCE_S)
    for number in range(20):
        ending.begin_transaction()
        for _ in range(30):
            ending.produce("txn", str(number).encode())
        ending.flush()
        if number % 3 == 0:
            ending.abort_transaction(PATIENCE_S)
        else:
            ending.commit_transaction(PATIENCE_S)
    rows = {Partition("plain", 0): (77, "from here"), Partition("txn", 1): (5, "")}

    def is_committed() -> bool:
        commit_offsets(admin, "g", rows)
        return True

    eventually(is_committed, despite=(LogError,))


def read(bootstrap: str) -> Rows:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"judge-{uuid4().hex}",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    found: Rows = {(name, number): [] for name, count in TOPICS.items() for number in range(count)}
    consumer.assign([TopicPartition(*place, 0) for place in found])
    left = set(found)
    while left:
        message = consumer.poll(PATIENCE_S)
        assert message is not None, left
        place = str(message.topic()), int(message.partition() or 0)
        error = message.error()
        if error is not None:
            if error.code() != KafkaError._PARTITION_EOF:
                raise KafkaException(error)
            left.discard(place)
            found[place].append(("end", message.offset()))
            continue
        row = message.timestamp(), message.key(), message.value(), str(message.headers())
        found[place].append((message.offset(), *row))
    consumer.close()
    return found


def test_a_mirror_that_is_killed(clusters: Clusters) -> None:
    fill(clusters.kafka)
    target = Admin({"bootstrap.servers": clusters.bucketlog}, timeout_s=PATIENCE_S)
    for least in (1, 5_000):
        process = clusters.mirror("--no-acls")
        eventually(partial(_has, target, least), clusters.log.read_text)
        process.kill()
        process.communicate()
    clusters.done("--once")
    source_rows, target_rows = read(clusters.kafka), read(clusters.bucketlog)
    assert target_rows == source_rows
    assert sum(len(rows) for rows in source_rows.values()) > RECORDS
    assert committed_offsets(target, "g") == {
        Partition("plain", 0): (77, "from here"),
        Partition("txn", 1): (5, ""),
    }
    refused: list[object] = []
    producer = Producer({"bootstrap.servers": clusters.bucketlog})
    producer.produce("plain", b"new", on_delivery=lambda error, _: refused.append(error))
    producer.flush()
    assert "POLICY_VIOLATION" in str(refused)
    clusters.refused("the source has no authorizer", "--cut-over", "--stop-writers", "acl")
    clusters.refused("omit --cut-over and --once", "--cut-over", "--groups-alone")
    said = clusters.done("--cut-over", "--quiet-s", "0.5")
    source = Admin({"bootstrap.servers": clusters.kafka}, timeout_s=PATIENCE_S)
    commit_offsets(source, "g", {Partition("plain", 0): (78, "later")})
    assert "new offsets of 1 group copied" in clusters.done("--groups-alone")
    assert "new offsets of 0 groups copied" in clusters.done("--groups-alone")
    clusters.refused("a cut-over has freed the topic", "--cut-over")
    assert "3 topics, 6 partitions" in said
    assert "are equal" in said
    producer.produce("plain", b"new", partition=0, on_delivery=lambda _, got: refused.append(got))
    producer.flush()
    rows = read(clusters.bucketlog)["plain", 0]
    assert rows[:-2] == source_rows["plain", 0][:-1]
    assert rows[-1] == ("end", len(rows) - 1)


def test_a_transaction_that_is_open_when_producers_are_stopped(clusters: Clusters) -> None:
    """Its marker must not be refused with the records."""
    fill(clusters.kafka)
    producer = Producer(
        {
            "bootstrap.servers": clusters.kafka,
            "transactional.id": "late",
            "transaction.timeout.ms": 800_000,
        }
    )
    producer.init_transactions(PATIENCE_S)
    producer.begin_transaction()
    producer.produce("txn", b"late", partition=0)
    producer.flush()
    stop = "--no-acls", "--cut-over", "--stop-writers", "config", "--quiet-s", "0.5"
    process = clusters.mirror(*stop)
    eventually(lambda: "producers of the source are stopped" in clusters.log.read_text())
    producer.commit_transaction(PATIENCE_S)
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, clusters.log.read_text()
    rows = read(clusters.bucketlog)
    assert rows == read(clusters.kafka)
    assert rows["txn", 0][-2][3] == b"late"


def test_cut_overs_that_fail(clusters: Clusters) -> None:
    """Producers may write again, and with the limit that they had, but never in both clusters."""
    fill(clusters.kafka)
    source = Admin({"bootstrap.servers": clusters.kafka}, timeout_s=PATIENCE_S)
    target = Admin({"bootstrap.servers": clusters.bucketlog}, timeout_s=PATIENCE_S)
    set_config(source, "plain", WRITE_LIMIT, "5000000")
    process = stopped_cut_over(clusters, 1)
    process.kill()
    process.communicate()
    assert limits_of(source)["plain"] in ("78", "0")

    process = stopped_cut_over(clusters, 2)
    add_partitions(source, "plain", 4)
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 1
    said = clusters.log.read_text()
    assert "topic 'plain' has 4 partitions instead of 3" in said
    assert limits_of(source) == {"plain": "5000000"}

    process = stopped_cut_over(clusters, 3)
    set_config(target, "txn", MIRROR_SOURCE, None)
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 1
    said = clusters.log.read_text()
    assert "the target's topic 'txn' is no longer a mirror" in said
    assert "so they stay stopped at the source: txn" in said
    assert limits_of(source) == {"plain": "5000000", "txn": "0"}


def test_topics_that_are_deleted_or_created_again(clusters: Clusters) -> None:
    """Records of a new topic are never added to the copy of the old topic with the same name."""
    source = Admin({"bootstrap.servers": clusters.kafka}, timeout_s=PATIENCE_S)
    target = Admin({"bootstrap.servers": clusters.bucketlog}, timeout_s=PATIENCE_S)
    for name in ("again", "gone", "wider"):
        create_filled(source, clusters.kafka, name, 5)
    running = clusters.mirror()
    eventually(
        lambda: all(end_of(target, name) == 5 for name in ("again", "gone", "wider")),
        clusters.log.read_text,
        despite=(LogError,),
    )
    delete(source, "gone")
    eventually(
        lambda: "topic 'gone' is deleted at the source" in clusters.log.read_text(),
        clusters.log.read_text,
    )
    delete(source, "again")
    create_filled(source, clusters.kafka, "again", 10)
    running.communicate(timeout=PATIENCE_S)
    said = clusters.log.read_text()
    assert running.returncode == 1, said
    assert "topic 'again' was deleted at the source and created again" in said
    assert end_of(target, "again") == 5
    clusters.refused("was deleted at the source and created again", "--once")

    delete(target, "again")
    clusters.done("--once")
    assert end_of(target, "again") == 10
    # as of a source without topic ids
    set_config(target, "again", MIRROR_SOURCE, source_id(source))
    clusters.done("--once")
    assert configs_of(target, ["again"])["again"][MIRROR_SOURCE] != source_id(source)
    add_partitions(target, "wider", 2)
    clusters.refused("topic 'wider' has 2 partitions in the target, but 1 at the source", "--once")


def create_filled(admin: Admin, bootstrap: str, topic: str, records: int) -> None:
    for future in admin.client.create_topics([NewTopic(topic, 1, 1)]).values():
        future.result(PATIENCE_S)
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(records):
        producer.produce(topic, str(number).encode(), partition=0)
    assert producer.flush(PATIENCE_S) == 0


def delete(admin: Admin, topic: str) -> None:
    """Wait until Metadata does not show the topic, too."""
    for future in admin.client.delete_topics([topic]).values():
        future.result(PATIENCE_S)
    eventually(lambda: not topics_of(admin, [topic]))


def end_of(admin: Admin, topic: str) -> int:
    return admin.offsets(topic, [0], LATEST, "looking")[0]


def source_id(admin: Admin) -> str:
    return str(admin.client.list_topics(timeout=PATIENCE_S).cluster_id)


def stopped_cut_over(clusters: Clusters, number: int) -> "subprocess.Popen[str]":
    """A cut-over that has stopped the producers of the source, as `number` have; it waits then."""
    how = ("--no-acls", "--cut-over", "--stop-writers", "config", "--quiet-s", "8")
    process = clusters.mirror(*how)
    eventually(
        lambda: clusters.log.read_text().count("are stopped (--stop-writers config)") == number,
        clusters.log.read_text,
    )
    return process


def set_config(admin: Admin, topic: str, name: str, value: str | None) -> None:
    alter(admin, topic, [change_of(name, value)])


def limits_of(admin: Admin) -> dict[str, str]:
    """By topic, `max.message.bytes` where the topic has this config."""
    configs = configs_of(admin, topics_of(admin, ["*"]))
    return {name: each[WRITE_LIMIT] for name, each in configs.items() if WRITE_LIMIT in each}


def _has(admin: Admin, offsets: int) -> bool:
    try:
        return sum(admin.offsets("plain", range(3), LATEST, "looking").values()) >= offsets
    except LogError:  # not created yet
        return False
