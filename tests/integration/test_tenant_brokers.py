"""Transactions and groups of equal names in two tenants, on two brokers that are killed and
restarted."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.rigs.patience import PATIENCE_S, Deadline
from tests.scenarios.round_trip import create_topic
from tests.servers.cluster import Cluster, running_cluster
from tests.servers.tenant_brokers import ACME, GLOBEX, OWN_LISTENERS, TENANTS, tenant_file

pytestmark = pytest.mark.long

SAME = "same"
"""The name of the topic, the transactional id and the group."""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    listeners = "ACME:PLAINTEXT://127.0.0.1:{port},GLOBEX:PLAINTEXT://127.0.0.1:0"
    settings = {"tenants_file": str(tenant_file(tmp_path)), "listeners": listeners}
    settings |= {"transactions": "true", "group_initial_rebalance_delay_ms": "0"}
    with running_cluster(2, settings=settings) as running:
        for tenant in TENANTS:
            create_topic(reach(running, tenant).partition(",")[0], SAME, 1)
        yield running


def reach(cluster: Cluster, tenant: str) -> str:
    """Where clients of the tenant reach the brokers that run."""
    running = [broker.process for broker in cluster.brokers if broker.process is not None]
    return ",".join(str(each.ready["listeners"][OWN_LISTENERS[tenant]]) for each in running)


def transactional(cluster: Cluster, tenant: str) -> Producer:
    producer = Producer(
        {
            "bootstrap.servers": reach(cluster, tenant),
            "transactional.id": SAME,
            "transaction.timeout.ms": 600_000,
        }
    )
    producer.init_transactions(PATIENCE_S)
    return producer


@contextmanager
def member(cluster: Cluster, tenant: str) -> Iterator[Consumer]:
    consumer = Consumer(
        {
            "bootstrap.servers": reach(cluster, tenant),
            "group.id": SAME,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
        }
    )
    consumer.subscribe([SAME])
    try:
        yield consumer
    finally:
        consumer.close()


def read(consumer: Consumer, count: int) -> list[bytes]:
    """The next records, which are then committed."""
    found: list[bytes] = []
    deadline = Deadline(f"{count} records")
    while len(found) < count:
        message = consumer.poll(0.1)
        if message is not None and message.error() is None:
            value = message.value()
            assert isinstance(value, bytes)
            found.append(value)
        deadline.pause()
    consumer.commit(asynchronous=False)
    return found


def committed(consumer: Consumer) -> int:
    (row,) = consumer.committed([TopicPartition(SAME, 0)], timeout=PATIENCE_S)
    return int(row.offset)


def send(producer: Producer, values: Sequence[bytes]) -> None:
    for value in values:
        producer.produce(SAME, value)
    assert not producer.flush(PATIENCE_S)


def test_equal_names_do_not_meet(cluster: Cluster) -> None:
    mine, theirs = (transactional(cluster, tenant) for tenant in TENANTS)
    for producer, value in ((mine, b"acme"), (theirs, b"globex")):
        producer.begin_transaction()
        send(producer, [value])
    theirs.abort_transaction(PATIENCE_S)
    mine.commit_transaction(PATIENCE_S)
    theirs.begin_transaction()
    send(theirs, [b"globex again"])
    theirs.commit_transaction(PATIENCE_S)
    with member(cluster, ACME) as one, member(cluster, GLOBEX) as other:
        assert read(one, 1) == [b"acme"]
        assert committed(one) > 0
        assert committed(other) < 0, "the group of the other tenant has no offset yet"
        assert read(other, 1) == [b"globex again"], "the group has all of its tenant's partitions"
        assert committed(other) != committed(one)


def test_tenants_outlive_a_broker(cluster: Cluster) -> None:
    for tenant in TENANTS:
        producer = Producer({"bootstrap.servers": reach(cluster, tenant)})
        send(producer, [f"{tenant} 1".encode()])
    cluster.brokers[0].kill()
    for tenant in TENANTS:
        producer = Producer({"bootstrap.servers": reach(cluster, tenant)})
        send(producer, [f"{tenant} 2".encode()])
    cluster.brokers[0].start()
    cluster.brokers[1].end()
    for tenant in TENANTS:
        with member(cluster, tenant) as consumer:
            wanted = [f"{tenant} {number}".encode() for number in (1, 2)]
            assert read(consumer, 2) == wanted
    cluster.brokers[0].end()
    for broker in cluster.brokers:
        broker.start()
    for tenant in TENANTS:
        with member(cluster, tenant) as consumer:
            assert committed(consumer) == 2, "offsets outlive all brokers"
