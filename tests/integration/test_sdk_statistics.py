"""Statistics of producers and consumers on a real broker."""

from itertools import count

import pytest

import bucketlog
from bucketlog import Log, Topic
from bucketlog.client.statistics import Statistics
from tests.rigs.patience import Deadline

_numbers = count()
INTERVAL_S = 0.05


@pytest.fixture
def topic(log: Log) -> Topic[bytes, str]:
    made = Topic(f"counted-{next(_numbers)}", value=str)
    log.topics.create(made, partitions=1)
    return made


def test_a_producer_has_statistics(log: Log, topic: Topic[bytes, str]) -> None:
    deadline = Deadline()
    with log.producer(statistics_interval_s=INTERVAL_S) as producer:
        while True:
            deadline.check()
            producer.send(topic, "one").result()
            found = producer.statistics
            if found is None or not found.sent_records:  # the first ones precede all answers
                continue
            if any(row.rtt_mean_ms for row in found.brokers):
                break
    assert found.sent_bytes > 0
    assert any(row.is_connected and row.node_id is not None for row in found.brokers)
    assert {row.topic for row in found.partitions} == {topic.name}
    assert producer.statistics is not None, "also after the end"


def test_a_consumer_has_statistics(log: Log, topic: Topic[bytes, str]) -> None:
    with log.producer() as producer:
        producer.send_many(topic, map(str, range(50)))
    deadline = Deadline()
    with log.consumer(
        topic, group=topic.name, start="earliest", statistics_interval_s=INTERVAL_S
    ) as consumer:
        found: Statistics | None = None
        while found is None or [row.lag_records for row in found.partitions] != [0]:
            deadline.check()
            consumer.poll(10, 0.01)
            found = consumer.statistics
    (row,) = found.partitions
    assert (row.topic, row.partition) == (topic.name, 0)
    assert found.received_records == 50


async def test_asynchronous_clients_have_statistics(log: Log, topic: Topic[bytes, str]) -> None:
    deadline = Deadline()
    async with bucketlog.aconnect(log.bootstrap) as alog:
        consumer = alog.consumer(topic, start="earliest", statistics_interval_s=INTERVAL_S)
        assert consumer.statistics is None
        async with alog.producer(statistics_interval_s=INTERVAL_S) as producer:
            while producer.statistics is None or consumer.statistics is None:
                deadline.check()
                await producer.send(topic, "one")
                await consumer.poll(10, 0.01)


def test_without_an_interval_there_are_none(log: Log, topic: Topic[bytes, str]) -> None:
    with log.producer() as producer:
        producer.send(topic, "one").result()
        assert producer.statistics is None
    with log.consumer(topic, start="earliest", until="end") as consumer:
        assert len(list(consumer)) == 1
        assert consumer.statistics is None
