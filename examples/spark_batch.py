"""A topic as a Spark table, read from the bucket. Neither a broker nor Redis has to run.

    pip install 'bucketlog[spark]'
    python examples/typed_records.py                                  # writes the topic
    python examples/spark_batch.py bucketlog-data/bucket

The columns are those of Spark's Kafka source. `readStream` gives the same columns as a stream.
"""

import sys
from pathlib import Path

from pyspark.sql import functions

from bucketlog.spark_jobs.session import local_session


def main() -> None:
    bucket = sys.argv[1]
    url = bucket if "://" in bucket else Path(bucket).absolute().as_uri()
    spark = local_session()
    records = (
        spark.read.format("bucketlog").option("path", url).option("subscribe", "orders").load()
    )
    amount = functions.get_json_object(functions.col("value").cast("string"), "$.amount")
    by_region = records.groupBy(functions.col("key").cast("string").alias("region")).agg(
        functions.count("*").alias("orders"), functions.sum(amount.cast("double")).alias("amount")
    )
    for row in by_region.orderBy("region").collect():
        print(f"{row.region}: {row.orders} orders, {row.amount}")
    spark.stop()


if __name__ == "__main__":
    main()
