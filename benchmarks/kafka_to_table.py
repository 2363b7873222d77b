"""Ingests a topic into an Iceberg table with Spark's Kafka source, for `benchmarks.table_ingest`.

This program runs in a separate process. The program reads a `TableJob` as JSON on standard input,
and prints seconds and CPU seconds as JSON. CPU seconds are those of this process, its JVM and its
workers.
"""

import json
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import psutil

from benchmarks.spark_queries import cpu_seconds
from bucketlog.spark_jobs.session import local_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CORES = 2
_LINEAGE = "topic string, partition int, offset bigint, timestamp timestamp, key binary"


@dataclass(frozen=True, slots=True)
class TableJob:
    """The arguments of the program. `warm` and `measured` are each a topic and its table. `options`
    are those of the Kafka source."""

    bootstrap: str
    options: dict[str, str]
    spark: dict[str, str]
    schema: str
    warm: tuple[str, str]
    measured: tuple[str, str]


def ingest(spark: "SparkSession", job: TableJob, topic: str, table: str) -> None:
    from pyspark.sql import functions as sql

    columns = ", ".join(f"_log_{each}" for each in _LINEAGE.split(", "))
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {table.rpartition('.')[0]}")
    spark.sql(
        f"CREATE TABLE {table} ({job.schema}, {columns}, _log_tombstone boolean, day date) "
        "USING iceberg PARTITIONED BY (day) TBLPROPERTIES "
        "('write.distribution-mode' = 'none', 'write.spark.fanout.enabled' = 'true')"
    )
    reader = spark.read.format("kafka").options(**job.options, subscribe=topic)
    found = reader.option("kafka.bootstrap.servers", job.bootstrap).load()
    names = [each.split(" ")[0] for each in _LINEAGE.split(", ")]
    rows = found.select(
        sql.from_json(sql.col("value").cast("string"), job.schema).alias("read"),
        *(sql.col(name).alias(f"_log_{name}") for name in names),
        sql.col("value").isNull().alias("_log_tombstone"),
        sql.to_date("timestamp").alias("day"),
    )
    rows.select("read.*", *(name for name in rows.columns if name != "read")).writeTo(
        table
    ).append()


def main() -> None:
    given = json.load(sys.stdin)
    job = TableJob(**given | {name: tuple(given[name]) for name in ("warm", "measured")})
    spark = local_session(cores=CORES, name="bucketlog benchmark", config=job.spark)
    try:
        ingest(spark, job, *job.warm)
        pids = [psutil.Process().pid]
        before, began = cpu_seconds(pids), time.perf_counter()
        ingest(spark, job, *job.measured)
        seconds = time.perf_counter() - began
        spent = cpu_seconds(pids) - before
        print(json.dumps({"seconds": seconds, "cpu_s": spent, "start_cpu_s": before}))
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
