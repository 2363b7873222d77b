"""`bucketlog.testing`: assertions about records, and faults of a cluster on this machine."""

import re
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from unittest.mock import ANY

import psutil
import pytest
from pydantic import BaseModel

import bucketlog
from bucketlog import ClusterStartError, ConfigurationError, EmbeddedCluster, Log, Topic
from bucketlog.testing import (
    Cluster,
    assert_published,
    broker_paused,
    redis_paused,
    stop_broker,
)
from tests.integration.test_embedded import wait_until_alone
from tests.rigs.patience import PATIENCE_S, eventually

pytestmark = pytest.mark.long

_numbers = count()


class Order(BaseModel):
    id: str
    amount: float


@pytest.fixture
def orders(log: Log) -> Topic[str, Order]:
    """With five records."""
    topic = Topic(f"published-{next(_numbers)}", value=Order, key=str)
    log.topics.create(topic, partitions=2)
    with log.producer() as producer:
        for number in range(4):
            headers = {"src": "web", "n": str(number)}
            order = Order(id=str(number), amount=1.5)
            producer.send(topic, order, key="ann", headers=headers, partition=0)
        producer.send(topic, None, key="bob", partition=1)
    return topic


def test_matching_records_are_returned(log: Log, orders: Topic[str, Order]) -> None:
    two = Order(id="2", amount=1.5)
    (record,) = assert_published(log, orders, value=two, key="ann", times=1, within_s=PATIENCE_S)
    assert record.offset == 2
    found = assert_published(
        log, orders, key="ann", headers={"src": "web"}, times=4, within_s=PATIENCE_S
    )
    assert [record.offset for record in found] == [0, 1, 2, 3]
    assert_published(log, orders, value=None, key="bob", times=1, within_s=PATIENCE_S)
    assert_published(log, orders, headers={"n": b"3"}, value=ANY, within_s=PATIENCE_S)
    assert_published(log, orders.name, key=b"bob", times=1, within_s=PATIENCE_S)
    assert assert_published(log, orders, key="eve", times=0) == []


def test_a_failure_shows_the_nearest_records(log: Log, orders: Topic[str, Order]) -> None:
    with pytest.raises(AssertionError) as failure:
        assert_published(
            log,
            orders,
            value=Order(id="2", amount=9),
            key="ann",
            headers={"src": "app"},
            within_s=0,
        )
    first, second, *rows = str(failure.value).splitlines()
    assert first == (
        "expected at least 1 record with key='ann', value=Order(id='2', amount=9.0), "
        f"headers={{'src': 'app'}} in topic '{orders.name}', found 0"
    )
    assert second == "the nearest of 5 records:"
    assert rows[0].startswith(
        f"  {orders.name}[0]@2 (other value, header 'src'): key='ann', value="
    )
    assert len(rows) == 5
    assert f"{orders.name}[1]@0" in rows[-1], "the tombstone of bob is the most unlike"


@pytest.mark.parametrize(("times", "found"), [(0, "[1-4]"), (3, "4"), (5, "4")])
def test_another_number_of_records_fails(
    times: int, found: str, log: Log, orders: Topic[str, Order]
) -> None:
    with pytest.raises(AssertionError, match=rf"expected {times} record.* found {found}\n"):
        assert_published(log, orders, key="ann", times=times, within_s=0)


def test_records_that_come_later_are_waited_for(log: Log, orders: Topic[str, Order]) -> None:
    late = bucketlog.connect(log.bootstrap)
    with late, late.producer(linger_ms=300) as producer:
        producer.send(orders, Order(id="9", amount=0), key="late")
        producer.poll(0)
        assert_published(log, orders, key="late", times=1, within_s=PATIENCE_S)


def test_empty_topics_and_long_values(log: Log, orders: Topic[str, Order]) -> None:
    empty = Topic(f"{orders.name}-empty", value=str)
    log.topics.create(empty)
    assert_published(log, empty, times=0)
    with pytest.raises(AssertionError, match="found 0: the topic is empty"):
        assert_published(log, empty, value="x", within_s=0)
    with log.producer() as producer:
        producer.send(empty, "y" * 100_000)
    with pytest.raises(AssertionError) as failure:
        assert_published(log, empty, value="x" * 10, within_s=0)
    assert len(str(failure.value)) < 1000
    with pytest.raises(ConfigurationError, match="times is -1"):
        assert_published(log, empty, times=-1)


# Faults ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(tmp_path_factory.mktemp("pair"), brokers=2) as cluster:
        yield cluster


def is_stopped(pid: int) -> bool:
    return bool(psutil.Process(pid).status() == psutil.STATUS_STOPPED)


def test_a_broker_is_paused_in_the_block(pair: EmbeddedCluster) -> None:
    pid = pair.pids["broker-1"]

    def leave() -> None:
        eventually(lambda: is_stopped(pid))
        raise ValueError("left")

    with pytest.raises(ValueError, match="left"), broker_paused(pair, 1):
        leave()
    eventually(lambda: not is_stopped(pid))
    with bucketlog.connect(pair.bootstrap) as log:
        assert log.cluster_id()


def test_nothing_is_acknowledged_while_redis_is_paused(pair: EmbeddedCluster) -> None:
    words = Topic("words", value=str)
    with bucketlog.connect(pair.bootstrap) as log, log.producer() as producer:
        log.topics.create(words)
        producer.send(words, "before").result(PATIENCE_S)
        with redis_paused(pair):
            eventually(lambda: is_stopped(pair.pids["valkey"]))
            waiting = producer.send(words, "during")
            with pytest.raises(TimeoutError):
                waiting.result(timeout_s=0.5)
        waiting.result(PATIENCE_S)
        producer.send(words, "after").result(PATIENCE_S)
        assert_published(log, words, value="after", times=1, within_s=PATIENCE_S)


@pytest.mark.parametrize("kill", [False, True])
def test_a_stopped_broker_is_gone_and_the_other_serves(kill: bool, tmp_path: Path) -> None:
    with EmbeddedCluster(tmp_path, brokers=2) as cluster:
        pid = cluster.pids["broker-0"]
        stop_broker(cluster, kill=kill)
        assert not psutil.pid_exists(pid)
        wait_until_alone(cluster.members[1].address)
        with bucketlog.connect(cluster.bootstrap) as log:
            log.topics.create("t")
        with pytest.raises(ClusterStartError):
            stop_broker(cluster, 1, kill=kill)


def test_a_cluster_elsewhere_has_no_faults() -> None:
    elsewhere = Cluster(bootstrap="localhost:9092")
    for fault in (broker_paused(elsewhere), redis_paused(elsewhere)):
        with pytest.raises(
            ConfigurationError, match=re.escape("on this machine (processes: none)")
        ):
            fault.__enter__()
