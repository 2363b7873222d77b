"""ETL: sales are loaded into DuckDB and PostgreSQL, and replayed into a Polars frame.

    pip install 'bucketlog[polars]' duckdb pg8000
    python examples/etl/with_bucketlog.py        # ends when all sales are loaded

A group per database commits the offsets of a batch after its rows. A batch that is loaded again
after `kill -9` changes nothing, because a row's primary key is the place of its record. The frame
comes from the bucket, without a broker.
"""

from warehouse import ADDRESS, BUCKET, Row, Sale, Warehouse, frame_totals

import bucketlog

SALES = bucketlog.Topic("sales", value=Sale)


def load(log: bucketlog.Log, warehouse: Warehouse) -> None:
    with log.consumer(
        SALES,
        group=warehouse.name,
        instance_id=warehouse.name,
        start="earliest",
        until="end",
        auto_commit=False,
    ) as consumer:
        for batch in consumer.batches(500):
            warehouse.upsert(
                Row(each.partition, each.offset, each.value.product, each.value.cents)
                for each in batch
            )
            consumer.commit()


def main() -> None:
    with bucketlog.connect(ADDRESS) as log:
        for name in ("duckdb", "postgresql"):
            with Warehouse(name) as warehouse:
                load(log, warehouse)
                print(name, warehouse.totals())
    frame = bucketlog.replay(BUCKET, SALES).to_polars()
    print("polars", frame_totals(frame))


if __name__ == "__main__":
    main()
