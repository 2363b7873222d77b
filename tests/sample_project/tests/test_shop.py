"""The shop on a real cluster."""

import bucketlog
import pytest
import shop
from bucketlog.testing import ConsumerFactory, RecordReader, TopicFactory
from shop import Bill, Order


@pytest.mark.parametrize(("country", "gross"), [("de", 119.0), ("fr", 120.0)])
def test_a_bill_has_the_countrys_tax(
    bucketlog_log: bucketlog.Log,
    bucketlog_topic_factory: TopicFactory,
    bucketlog_producer: bucketlog.Producer,
    bucketlog_records: RecordReader,
    country: str,
    gross: float,
) -> None:
    orders = bucketlog_topic_factory.like(shop.orders)
    bills = bucketlog_topic_factory.like(shop.bills)
    bucketlog_producer.send(orders, Order(id="1", country=country, amount=100), key=country)
    bucketlog_producer.flush()
    assert shop.bill_all(bucketlog_log, orders, bills) == 1
    (record,) = bucketlog_records(bills)
    assert (record.key, record.value) == (country, Bill(order_id="1", gross=gross))


@pytest.mark.parametrize("count", [1, 10, 100])
def test_no_order_is_billed_twice(
    bucketlog_log: bucketlog.Log,
    bucketlog_topic_factory: TopicFactory,
    bucketlog_producer: bucketlog.Producer,
    bucketlog_consumer: ConsumerFactory,
    count: int,
) -> None:
    orders = bucketlog_topic_factory.like(shop.orders, partitions=3)
    bills = bucketlog_topic_factory.like(shop.bills)
    placed = (Order(id=str(number), country="de", amount=1) for number in range(count))
    bucketlog_producer.send_many(orders, placed, key=lambda order: order.id)
    bucketlog_producer.flush()
    billed = [shop.bill_all(bucketlog_log, orders, bills) for _ in range(2)]
    assert billed == [count, 0]
    ids = [record.value.order_id for record in bucketlog_consumer(bills, until="end")]
    assert sorted(ids, key=int) == [str(number) for number in range(count)]


@pytest.mark.asyncio
async def test_placing_with_pytest_asyncio(
    bucketlog_bootstrap: str, bucketlog_topic_factory: TopicFactory
) -> None:
    orders = bucketlog_topic_factory.like(shop.orders)
    async with bucketlog.aconnect(bucketlog_bootstrap) as log:
        first = await shop.place(log, orders, Order(id="1", country="fr", amount=1))
        assert (first, await shop.place(log, orders, Order(id="2", country="fr", amount=1))) == (
            0,
            1,
        )


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_placing_with_anyio(
    bucketlog_bootstrap: str, bucketlog_topic_factory: TopicFactory, anyio_backend: str
) -> None:
    orders = bucketlog_topic_factory.like(shop.orders)
    async with bucketlog.aconnect(bucketlog_bootstrap) as log:
        assert await shop.place(log, orders, Order(id="1", country="fr", amount=1)) == 0


def test_a_topic_of_words(
    bucketlog_topic: str,
    bucketlog_producer: bucketlog.Producer,
    bucketlog_consumer: ConsumerFactory,
) -> None:
    words = bucketlog.Topic(bucketlog_topic, value=str)
    assert bucketlog_producer.send(words, "hello").result().offset == 0
    received = bucketlog_consumer(words).poll(max_records=1, timeout_s=10)
    assert [record.value for record in received] == ["hello"]
