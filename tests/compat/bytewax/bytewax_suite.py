"""Bytewax: dataflows from Kafka topics to Kafka topics, with recovery.

The published package is a wheel without tests. These cover what its documentation promises for
Kafka connectors. They run in Bytewax's environment (`scripts/client_suites.sh`).
"""

import os
import uuid
from pathlib import Path

import bytewax.operators as op
import pytest
from bytewax.connectors.kafka import KafkaSinkMessage, KafkaSource, KafkaSourceMessage
from bytewax.connectors.kafka import operators as kop
from bytewax.dataflow import Dataflow
from bytewax.recovery import RecoveryConfig, init_db_dir
from bytewax.testing import TestingSink, TestingSource, cluster_main, run_main
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

BOOTSTRAP = os.environ["GIVEN_BROKER"]
PARTITIONS = 3


@pytest.fixture
def topic() -> str:
    """A new topic with records: value n under key kM, M = n modulo 4."""
    name = f"bytewax-{uuid.uuid4()}"
    admin = AdminClient({"bootstrap.servers": BOOTSTRAP})
    created = admin.create_topics([NewTopic(name, num_partitions=PARTITIONS, replication_factor=1)])
    created[name].result()
    produce(name, range(20))
    return name


def produce(topic: str, numbers: range) -> None:
    producer = Producer({"bootstrap.servers": BOOTSTRAP})
    for number in numbers:
        producer.produce(topic, str(number).encode(), f"k{number % 4}".encode())
    assert producer.flush(60) == 0


def read(topic: str) -> list[tuple[bytes | None, bytes | None]]:
    """All records of a topic, read by a dataflow that ends at the topic's end."""
    rows: list[tuple[bytes | None, bytes | None]] = []
    flow = Dataflow("reader")
    source = kop.input("in", flow, brokers=[BOOTSTRAP], topics=[topic], tail=False)
    pairs = op.map("pair", source.oks, lambda message: (message.key, message.value))
    op.output("out", pairs, TestingSink(rows))
    run_main(flow)
    return rows


def doubling(topic: str) -> Dataflow:
    def double(message: KafkaSourceMessage) -> KafkaSinkMessage:
        return KafkaSinkMessage(message.key, str(2 * int(message.value)).encode())

    flow = Dataflow("double")
    source = op.input("in", flow, KafkaSource([BOOTSTRAP], [topic], tail=False))
    doubled = op.map("double", source, double)
    kop.output("out", doubled, brokers=[BOOTSTRAP], topic=f"{topic}-out")
    return flow


def expected(numbers: range) -> list[tuple[bytes, bytes]]:
    return sorted((f"k{number % 4}".encode(), str(2 * number).encode()) for number in numbers)


def test_a_topic_is_read_to_its_end(topic: str) -> None:
    rows = read(topic)
    assert sorted(int(value or b"") for _key, value in rows) == list(range(20))
    for key in {key for key, _value in rows}:
        values = [int(value or b"") for each, value in rows if each == key]
        assert values == sorted(values)


def test_records_are_written_to_another_topic(topic: str) -> None:
    run_main(doubling(topic))
    assert sorted(read(f"{topic}-out")) == expected(range(20))


def test_several_workers_share_the_partitions(topic: str) -> None:
    cluster_main(doubling(topic), [], 0, worker_count_per_proc=PARTITIONS)
    assert sorted(read(f"{topic}-out")) == expected(range(20))


def test_a_restarted_dataflow_continues(topic: str, tmp_path: Path) -> None:
    init_db_dir(tmp_path, 1)
    recovery = RecoveryConfig(str(tmp_path))
    run_main(doubling(topic), recovery_config=recovery)
    produce(topic, range(20, 30))
    run_main(doubling(topic), recovery_config=recovery)
    assert sorted(read(f"{topic}-out")) == expected(range(30))


def test_a_source_of_the_test_reaches_kafka() -> None:
    name = f"bytewax-{uuid.uuid4()}"
    flow = Dataflow("write")
    numbers = op.input("in", flow, TestingSource(range(5)))
    messages = op.map("wrap", numbers, lambda each: KafkaSinkMessage(None, str(each).encode()))
    kop.output("out", messages, brokers=[BOOTSTRAP], topic=name)
    run_main(flow)
    assert sorted(read(name)) == [(None, str(number).encode()) for number in range(5)]
