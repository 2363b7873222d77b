"""Tests against a real cluster, with the pytest plugin. The first test that needs it starts it.

    pip install 'bucketlog[embedded]' pytest
    pytest -p bucketlog.testing examples/pytest_plugin.py

In a project of your own, `pytest_plugins = ["bucketlog.testing"]` in `conftest.py` replaces `-p`.
With BUCKETLOG_BOOTSTRAP (or `bucketlog_bootstrap` in pytest's settings), the tests use a cluster
that is already running.
"""

from pydantic import BaseModel

import bucketlog
from bucketlog.testing import RecordReader, TopicFactory


class Order(BaseModel):
    id: str
    amount: float


ORDERS = bucketlog.Topic("orders", value=Order, key=str)
LARGE = bucketlog.Topic("large-orders", value=Order, key=str)


def copy_large(
    log: bucketlog.Log, orders: bucketlog.Topic[str, Order], large: bucketlog.Topic[str, Order]
) -> None:
    """The program under test. It takes its topics as arguments, so each test has its own."""
    with (
        log.producer() as producer,
        log.consumer(orders, start="earliest", until="end") as consumer,
    ):
        for record in consumer:
            if record.value.amount >= 100:
                producer.send(large, record.value, key=record.key)


def test_large_orders_are_copied(
    bucketlog_log: bucketlog.Log,
    bucketlog_producer: bucketlog.Producer,
    bucketlog_topic_factory: TopicFactory,
    bucketlog_records: RecordReader,
) -> None:
    orders, large = bucketlog_topic_factory.like(ORDERS), bucketlog_topic_factory.like(LARGE)
    bucketlog_producer.send(orders, Order(id="1", amount=99.5), key="eu")
    bucketlog_producer.send(orders, Order(id="2", amount=100), key="us")
    bucketlog_producer.flush()
    copy_large(bucketlog_log, orders, large)
    assert [record.value.id for record in bucketlog_records(large)] == ["2"]


def test_an_empty_topic_gives_nothing(
    bucketlog_log: bucketlog.Log,
    bucketlog_topic_factory: TopicFactory,
    bucketlog_records: RecordReader,
) -> None:
    orders, large = bucketlog_topic_factory.like(ORDERS), bucketlog_topic_factory.like(LARGE)
    copy_large(bucketlog_log, orders, large)
    assert list(bucketlog_records(large)) == []
