"""An order service: it charges orders, retries, and sets aside the orders that it cannot charge.

    pip install bucketlog
    python examples/order_service/with_bucketlog.py       # until SIGTERM

Eight orders are charged at the same time, those of a customer (the key) in order. An order that
fails four times goes to `orders-failed`, with its reason and origin. An order is committed after
its receipt or its dead letter is acknowledged, so `kill -9` loses nothing. SIGTERM ends the service
after the running charges.
"""

import signal

from shop import ADDRESS, INSTANCE, Order, Receipt, charge

import bucketlog

ORDERS = bucketlog.Topic("orders", value=Order, key=str)
RECEIPTS = bucketlog.Topic("receipts", value=Receipt, key=str)
ASIDE = bucketlog.DeadLetter("orders-failed")


def main() -> None:
    with (
        bucketlog.connect(ADDRESS) as log,
        log.producer() as producer,
        log.consumer(
            ORDERS,
            group="order-service",
            instance_id=INSTANCE,
            start="earliest",
            auto_commit="ack",
            on_error=ASIDE,
        ) as consumer,
    ):
        signal.signal(signal.SIGTERM, consumer.stop)

        def handle(record: bucketlog.Record[str, Order]) -> None:
            producer.send(RECEIPTS, charge(record.value), key=record.key).result()

        consumer.process(handle, concurrency=8, attempts=4, on_failure=ASIDE)


if __name__ == "__main__":
    main()
