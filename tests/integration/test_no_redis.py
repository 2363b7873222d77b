"""Broker processes with a bucket and nothing else, as people run them."""

import json
from collections.abc import Iterator

import psutil
import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer

from bucketlog.tiered_storage import keys
from tests.rigs.patience import Deadline, eventually
from tests.scenarios.round_trip import create_topic
from tests.servers.cluster import Cluster, ClusterBroker, running_cluster

pytestmark = pytest.mark.long

TOPIC = "t"
RECORDS = 60
NOT_A_MEMBER = (
    KafkaError.UNKNOWN_MEMBER_ID,
    KafkaError.ILLEGAL_GENERATION,
    KafkaError.REBALANCE_IN_PROGRESS,
    KafkaError._NO_OFFSET,
)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with running_cluster(2, without_redis=True) as running:
        create_topic(running.brokers[0].bootstrap, TOPIC, 3)
        yield running


@pytest.fixture
def consumer(cluster: Cluster) -> Iterator[Consumer]:
    group = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": "g",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "session.timeout.ms": 6000,
            "log_level": 0,
        }
    )
    group.subscribe([TOPIC])
    yield group
    group.close()


def holders(cluster: Cluster) -> list[ClusterBroker]:
    return [broker for broker in cluster.brokers if broker.valkey() is not None]


def produce(producer: Producer, numbers: range) -> None:
    for number in numbers:
        producer.produce(TOPIC, str(number), partition=number % 3)
    assert producer.flush(60) == 0


def consume(consumer: Consumer, count: int) -> list[int]:
    """The next records, which are then committed. The sequencer of a new epoch does not know the
    group's members: they join again, and read again what they have not committed."""
    found: set[int] = set()
    deadline = Deadline(lambda: f"{len(found)} of {count} records")
    while len(found) < count or not commits(consumer):
        deadline.check()
        messages = consumer.consume(count, timeout=0.2)
        found |= {int(message.value() or b"") for message in messages if message.error() is None}
    return sorted(found)


def commits(consumer: Consumer) -> bool:
    """Commit the consumer's position, if it is a member."""
    try:
        consumer.commit(asynchronous=False)
    except KafkaException as error:
        if error.args[0].code() not in NOT_A_MEMBER:
            raise
        return False
    return True


def test_producers_and_groups_outlive_the_broker_that_runs_the_valkey(
    cluster: Cluster, consumer: Consumer
) -> None:
    producer = Producer(
        {"bootstrap.servers": cluster.bootstrap, "enable.idempotence": True, "log_level": 0}
    )
    (holder,) = holders(cluster)
    assert holder.running.metrics()["bucketlog_sequencer_embedded"] == 1
    produce(producer, range(RECORDS))
    assert consume(consumer, RECORDS) == list(range(RECORDS))
    valkey = holder.valkey()
    assert valkey is not None
    holder.kill()
    produce(producer, range(RECORDS, 2 * RECORDS))
    assert consume(consumer, RECORDS) == list(range(RECORDS, 2 * RECORDS))
    eventually(lambda: not valkey.is_running() or valkey.status() == psutil.STATUS_ZOMBIE)
    holder.start()
    cluster.wait_until_all_are_members()
    (successor,) = holders(cluster)
    assert successor is not holder
    for broker in cluster.brokers:
        passwords = [claim["valkey"]["password"] for claim in claims(cluster)]
        assert len(passwords) == 2
        assert not any(password in broker.log.read_text() for password in passwords)


def claims(cluster: Cluster) -> list[dict[str, dict[str, str]]]:
    bucket = cluster.open_bucket()
    try:
        return [json.loads(bytes(bucket.get(info.key).data)) for info in bucket.list(keys.EPOCHS)]
    finally:
        bucket.close()
