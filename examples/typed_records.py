"""Typed records: a pydantic model as the value, sent and read back.

    pip install bucketlog
    python examples/typed_records.py

Records of one key go to one partition, and keep their order there. `result()` returns when the
record is in the bucket.
"""

import os

from pydantic import BaseModel

import bucketlog

ADDRESS = os.environ.get("BUCKETLOG_BOOTSTRAP", "localhost:9092")


class Order(BaseModel):
    id: str
    amount: float


ORDERS = bucketlog.Topic("orders", value=Order, key=str)
PLACED = [
    ("eu", Order(id="1", amount=9.5)),
    ("us", Order(id="2", amount=20)),
    ("eu", Order(id="3", amount=0.5)),
]


def main() -> None:
    with bucketlog.connect(ADDRESS) as log:
        log.topics.ensure(ORDERS, partitions=3)
        with log.producer() as producer:
            for region, order in PLACED:
                placed = producer.send(ORDERS, order, key=region).result()
                print(f"order {order.id} is in partition {placed.partition}")
        totals: dict[str | None, float] = {}
        with log.consumer(ORDERS, start="earliest", until="end") as consumer:
            for record in consumer:
                totals[record.key] = totals.get(record.key, 0) + record.value.amount
    for key in sorted(totals, key=str):
        print(f"{key}: {totals[key]}")


if __name__ == "__main__":
    main()
