"""Dead letters: an unreadable record is set aside, with its position and the reason.

    pip install bucketlog
    python examples/dead_letters.py

The record is copied to another topic, byte for byte, before any later record is delivered or
committed. From there it can be repaired and sent again.
"""

import os

from pydantic import BaseModel

import bucketlog

ADDRESS = os.environ.get("BUCKETLOG_BOOTSTRAP", "localhost:9092")


class Payment(BaseModel):
    id: int
    amount: float


PAYMENTS = bucketlog.Topic("payments", value=Payment)
UNREADABLE = bucketlog.Topic("payments-unreadable")
RAW = bucketlog.Topic("payments")


def main() -> None:
    with bucketlog.connect(ADDRESS) as log:
        log.topics.ensure(PAYMENTS, partitions=1)
        log.topics.ensure(UNREADABLE, partitions=1, retention="forever")
        with log.producer() as producer:
            producer.send(PAYMENTS, Payment(id=1, amount=5))
            producer.send(RAW, b'{"id": 2, "amount": "much"}')
            producer.send(PAYMENTS, Payment(id=3, amount=7))
        with log.consumer(
            PAYMENTS,
            group="ledger",
            start="earliest",
            until="end",
            on_error=bucketlog.DeadLetter(UNREADABLE.name),
        ) as consumer:
            for record in consumer:
                print(f"payment {record.value.id}: {record.value.amount}")
        with log.consumer(UNREADABLE, start="earliest", until="end") as aside:
            for letter in aside:
                headers = dict(letter.headers)
                place = headers["__connect.errors.offset"] or b"?"
                print(f"set aside, offset {place.decode()}: {letter.value.decode()}")


if __name__ == "__main__":
    main()
