"""The ETL on confluent-kafka.

    pip install confluent-kafka pydantic duckdb pg8000 polars
    python examples/etl/with_confluent_kafka.py

The frame is made of records that are consumed from the brokers.
"""

from collections.abc import Iterator

import polars
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition
from warehouse import ADDRESS, Row, Sale, Warehouse, frame_totals


def open_consumer(group: str) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": ADDRESS,
            "group.id": group,
            "group.instance.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )


def read(consumer: Consumer) -> Iterator[list[Row]]:
    """Batches up to the end of each partition."""
    ended: set[int] = set()
    while not ended or len(ended) < len(consumer.assignment()):
        rows = []
        for message in consumer.consume(500, 1.0):
            error = message.error()
            if error is None:
                sale = Sale.model_validate_json(message.value() or b"")
                rows.append(Row(message.partition(), message.offset(), sale.product, sale.cents))
            elif error.code() == KafkaError._PARTITION_EOF:
                ended.add(message.partition())
            else:
                raise KafkaException(error)
        if rows:
            yield rows


def load(warehouse: Warehouse) -> None:
    consumer = open_consumer(warehouse.name)
    consumer.subscribe(["sales"])
    try:
        for rows in read(consumer):
            warehouse.upsert(rows)
            consumer.commit(asynchronous=False)
    finally:
        consumer.close()


def frame() -> polars.DataFrame:
    consumer = open_consumer("polars")
    partitions = consumer.list_topics("sales").topics["sales"].partitions
    consumer.assign([TopicPartition("sales", number, OFFSET_BEGINNING) for number in partitions])
    try:
        return polars.DataFrame([row for rows in read(consumer) for row in rows])
    finally:
        consumer.close()


def main() -> None:
    for name in ("duckdb", "postgresql"):
        with Warehouse(name) as warehouse:
            load(warehouse)
            print(name, warehouse.totals())
    print("polars", frame_totals(frame()))


if __name__ == "__main__":
    main()
