"""The cost of ingests into Iceberg tables: from the bucket without Spark, and from Kafka by Spark.

    python -m benchmarks.table_ingest --records 3000000

Prints one JSON line on standard output. Both systems get the same records. `bucketlog` is the
ingest of `bucketlog table run`. Spark reads with its Kafka source, with the options that made the
source faster here (`TUNED`), and appends with `writeTo`. Each ingest is a process with two cores,
which ingests a small topic first. CPU seconds are those of the process and its children, without
brokers. `start_cpu_s` has the CPU seconds until the small topic is ingested. The rows of both
tables are compared. The exit code is 1 if they differ, or if `--min-less-cpu` is not reached.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from confluent_kafka import Producer

from benchmarks.kafka_to_table import CORES, TableJob
from benchmarks.log_to_table import LogJob
from benchmarks.under_test import GB, create_topic, report
from bucketlog.embedded.cluster import EmbeddedCluster
from bucketlog.log_reader.tables.catalog import open_catalog
from localstack.apache_kafka import running_kafka
from localstack.spark_jars import iceberg_settings, installed_jars, jar_settings

ROOT = Path(__file__).parents[1]
TOPIC, WARM = "orders", "warm"
PARTITIONS = 4
CATALOG, OURS, THEIRS = "lake", "db.ours", "db.theirs"
SCHEMA = "id bigint, at timestamp, amount double, customer string, text string"
TEXT = "The parcel was left with a neighbour, who is at home on most days before noon. "
TUNED = {"kafka.max.poll.records": "10000", "kafka.fetch.max.wait.ms": "50"}
NO_COMPACTION = {"compaction_check_interval_ms": "0"}
FLUSH_S = 300.0


class Cost(NamedTuple):
    """The cost of one ingest."""

    seconds: float
    cpu_s: float
    start_cpu_s: float


def value(number: int) -> bytes:
    """Return about 250 bytes of JSON."""
    return json.dumps(
        {
            "id": number,
            "at": f"2026-02-{1 + number % 28:02}T12:30:{number % 60:02}.250Z",
            "amount": number % 100_000 / 4,
            "customer": f"customer-{number % 5_000:05}",
            "text": f"{TEXT}{number * 7_919 % 1_000_003:07}{TEXT[: number % 40]}",
        }
    ).encode()


def send(bootstrap: str, topic: str, records: int) -> int:
    """Send the records. Returns the size of their values in bytes."""
    failures: list[str] = []
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "compression.codec": "lz4",
            "linger.ms": 50,
            "batch.size": 1_000_000,
            "queue.buffering.max.messages": 1_000_000,
        }
    )
    sent = 0
    for number in range(records):
        text = value(number)
        sent += len(text)
        while True:
            try:
                producer.produce(
                    topic,
                    text,
                    partition=number // 1_000 % PARTITIONS,
                    on_delivery=lambda error, _: failures.append(str(error)) if error else None,
                )
                break
            except BufferError:
                producer.poll(0.1)
        if not number % 1_000:
            producer.poll(0)
    if producer.flush(FLUSH_S) or failures:
        raise RuntimeError(f"records were not acknowledged: {failures[:3]}")
    return sent


def fill(bootstrap: str, records: int, warm_records: int) -> int:
    """Create and fill the topics. Returns the size of the values of `TOPIC` in bytes."""
    for name in (WARM, TOPIC):
        create_topic(bootstrap, name, PARTITIONS)
    send(bootstrap, WARM, warm_records)
    return send(bootstrap, TOPIC, records)


def by_ours(folder: Path, bucket_url: str) -> Cost:
    job = LogJob(
        bucket_url=bucket_url,
        properties=catalog_properties(folder),
        schema=SCHEMA,
        processes=CORES,
        warm=(WARM, f"{CATALOG}.db.our_warm"),
        measured=(TOPIC, f"{CATALOG}.{OURS}"),
    )
    return measured("benchmarks.log_to_table", asdict(job), folder / "ours.log")


def by_spark(folder: Path, bootstrap: str) -> Cost:
    job = TableJob(
        bootstrap=bootstrap,
        options=TUNED,
        spark={
            **jar_settings(installed_jars()),
            **iceberg_settings(CATALOG, folder / "catalog.db", warehouse(folder)),
            "spark.log.level": "ERROR",
        },
        schema=SCHEMA,
        warm=(WARM, f"{CATALOG}.db.warm"),
        measured=(TOPIC, f"{CATALOG}.{THEIRS}"),
    )
    return measured("benchmarks.kafka_to_table", asdict(job), folder / "spark.log")


def measured(program: str, job: dict[str, Any], log_path: Path) -> Cost:
    """Run a program in a new process, with its job as JSON. Returns its cost."""
    with log_path.open("wb") as log:
        done = subprocess.run(
            [sys.executable, "-P", "-m", program],
            input=json.dumps(job).encode(),
            stdout=subprocess.PIPE,
            stderr=log,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            cwd=ROOT,
            check=False,
        )
    if done.returncode:
        raise RuntimeError(f"{program}: {done.returncode}\n{log_path.read_text()[-3000:]}")
    return Cost(**json.loads(done.stdout.splitlines()[-1]))


def warehouse(folder: Path) -> str:
    return f"file://{folder}/warehouse"


def catalog_properties(folder: Path) -> dict[str, str]:
    return {
        "type": "sql",
        "uri": f"sqlite:///{folder}/catalog.db",
        "warehouse": warehouse(folder),
    }


def rows_of(folder: Path, table: str) -> dict[str, Any]:
    """Return figures that depend on all values of a table."""
    found = open_catalog(CATALOG, catalog_properties(folder)).load_table(table).scan().to_arrow()
    place = [("_log_partition", "ascending"), ("_log_offset", "ascending")]
    rows = found.sort_by(place)
    return {
        "rows": rows.num_rows,
        "id": pc.sum(rows.column("id")).as_py(),
        "amount": pc.sum(rows.column("amount")).as_py(),
        "at": pc.sum(rows.column("at").cast(pa.int64())).as_py(),
        "customer": pc.count_distinct(rows.column("customer")).as_py(),
        "text": pc.sum(pc.binary_length(rows.column("text"))).as_py(),
        "offsets": pc.sum(rows.column("_log_offset")).as_py(),
        "tombstones": pc.sum(rows.column("_log_tombstone")).as_py(),
    }


def run(folder: Path, records: int, warm_records: int) -> tuple[dict[str, Any], list[str]]:
    """Run both ingests. Returns figures, and differences between the tables."""
    with EmbeddedCluster(folder / "cluster", settings=NO_COMPACTION) as cluster:
        value_bytes = fill(cluster.bootstrap, records, warm_records)
    ours = by_ours(folder, cluster.bucket_url)
    with running_kafka(folder / "kafka") as kafka:
        fill(kafka.bootstrap, records, warm_records)
        theirs = by_spark(folder, kafka.bootstrap)
    tables = {"bucketlog": rows_of(folder, OURS), "spark": rows_of(folder, THEIRS)}
    figures = {
        "records": records,
        "value_gb": round(value_bytes / GB, 3),
        "times_less_cpu": round(theirs.cpu_s / ours.cpu_s, 2),
        **{
            name: {
                "seconds": round(cost.seconds, 2),
                "rows_per_s": round(records / cost.seconds),
                "cpu_s_per_gb": round(cost.cpu_s / (value_bytes / GB), 2),
                "start_cpu_s": round(cost.start_cpu_s, 1),
            }
            for name, cost in (("bucketlog", ours), ("spark", theirs))
        },
        "tuned": TUNED,
    }
    differences = [] if tables["bucketlog"] == tables["spark"] else [f"the tables differ: {tables}"]
    if tables["bucketlog"]["rows"] != records:
        differences.append(f"{tables['bucketlog']['rows']} rows, {records} records were sent")
    return figures, differences


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--records", type=int, default=3_000_000, help="Number of records.")
    parser.add_argument("--warm-records", type=int, default=200_000, help="Records of the warm-up.")
    parser.add_argument("--min-less-cpu", type=float, help="Minimum CPU time of Spark, as a ratio.")
    return parser.parse_args(arguments)


def main() -> int:
    args = parse(sys.argv[1:])
    with TemporaryDirectory(prefix="bucketlog-bench-") as folder:
        figures, found = run(Path(folder), args.records, args.warm_records)
    if args.min_less_cpu and figures["times_less_cpu"] < args.min_less_cpu:
        found.append(
            f"Spark took {figures['times_less_cpu']} times the CPU, not {args.min_less_cpu} times"
        )
    return report("table_ingest", figures, found)


if __name__ == "__main__":
    sys.exit(main())
