"""A small shop: it takes orders, and bills them."""

import bucketlog
from pydantic import BaseModel


class Order(BaseModel):
    id: str
    country: str
    amount: float


class Bill(BaseModel):
    order_id: str
    gross: float


VAT = {"de": 0.19, "fr": 0.20}
orders = bucketlog.Topic("orders", value=Order, key=str)
bills = bucketlog.Topic("bills", value=Bill, key=str)


def bill_for(order: Order) -> Bill:
    return Bill(order_id=order.id, gross=round(order.amount * (1 + VAT[order.country]), 2))


def bill_all(
    log: bucketlog.Log,
    source: bucketlog.Topic[str, Order] = orders,
    target: bucketlog.Topic[str, Bill] = bills,
) -> int:
    """Bill each order that is there and has no bill yet."""
    count = 0
    with (
        log.producer() as producer,
        log.consumer(source, group="billing", start="earliest", until="end") as consumer,
    ):
        for batch in consumer.batches():
            for record in batch:
                producer.send(target, bill_for(record.value), key=record.key)
            producer.flush()
            count += len(batch)
    return count


async def place(log: bucketlog.AsyncLog, topic: bucketlog.Topic[str, Order], order: Order) -> int:
    """Its offset."""
    async with log.producer() as producer:
        return (await producer.send(topic, order, key=order.country)).offset
