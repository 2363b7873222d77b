"""Every event once and in order, across retries, restarts and crashes of the sending program.

    pip install bucketlog
    python examples/resumed_transfer.py 100    # again with a larger number: only the rest is sent

Within a run, the producer is idempotent (the default). For up to `delivery_timeout_s` it resends a
record after a lost answer or while a broker restarts, and the record is stored only once. Between
runs, the topic says where to resume: its only partition ends with the last event that was stored.
This is sound because only one program sends, and it sends an event when the last one is stored.
"""

import os
import sys

from pydantic import BaseModel

import bucketlog

ADDRESS = os.environ.get("BUCKETLOG_BOOTSTRAP", "localhost:9092")


class Event(BaseModel):
    number: int
    text: str


EVENTS = bucketlog.Topic("events", value=Event)


def source(first: int, count: int) -> list[Event]:
    """Stands in for a database table with a sequence number."""
    return [Event(number=number, text=f"event {number}") for number in range(first, count)]


def next_number(log: bucketlog.Log) -> int:
    """The number after the last one in the topic."""
    (partition,) = log.topics.describe(EVENTS).partitions
    if partition.latest == partition.earliest:
        return 0
    last = 0
    start = {0: max(partition.earliest, partition.latest - 100)}  # the last offsets may be gaps
    with log.consumer(EVENTS, start=start, until="end") as consumer:
        for record in consumer:
            last = record.value.number + 1
    return last


def transfer(log: bucketlog.Log, count: int) -> int:
    """Send the missing events up to `count`. Returns how many were sent."""
    missing = source(next_number(log), count)
    with log.producer(linger_ms=0, delivery_timeout_s=300) as producer:
        for event in missing:
            producer.send(EVENTS, event).result()
    return len(missing)


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    with bucketlog.connect(ADDRESS) as log:
        log.topics.ensure(EVENTS, partitions=1)
        print(f"sent {transfer(log, count)} events")
        with log.consumer(EVENTS, start="earliest", until="end") as consumer:
            numbers = [record.value.number for record in consumer]
        print(
            f"stored {len(numbers)} events, each once and in order: {numbers == list(range(count))}"
        )


if __name__ == "__main__":
    main()
