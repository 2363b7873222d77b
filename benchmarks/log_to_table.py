"""Ingests a topic into an Iceberg table without Spark, for `benchmarks.table_ingest`.

This program runs in a separate process. The program reads a `LogJob` as JSON on standard input, and
prints seconds and CPU seconds as JSON. CPU seconds are those of this process and of the processes
that run its tasks.
"""

import json
import sys
import time
from contextlib import closing
from dataclasses import dataclass
from uuid import uuid4

import psutil

from benchmarks.spark_queries import cpu_seconds
from bucketlog.ingesting.local_ingest import LocalIngest, ShapedTarget
from bucketlog.ingesting.task_processes import TaskProcesses
from bucketlog.log_reader.tables.catalog import open_catalog
from bucketlog.log_reader.tables.ingested_log import IngestedLog
from bucketlog.log_reader.tables.rows import RowShape
from bucketlog.log_reader.tables.schema_text import parse_schema
from bucketlog.log_reader.tables.table_target import TableName, TableTarget


@dataclass(frozen=True, slots=True)
class LogJob:
    """The arguments of the program. `warm` and `measured` are each a topic and its table, as
    catalog.database.table."""

    bucket_url: str
    properties: dict[str, str]
    schema: str
    processes: int
    warm: tuple[str, str]
    measured: tuple[str, str]


def ingest(job: LogJob, processes: TaskProcesses, topic: str, table: str) -> None:
    name = TableName.parse(table)
    target = TableTarget(
        name,
        lambda: open_catalog(name.catalog, job.properties),
        processes.run,
        new_id=lambda: uuid4().hex,
    )
    shape = RowShape(parse_schema(job.schema), bad_records="dead-letter")
    log = IngestedLog(job.bucket_url, [topic], {})
    LocalIngest(log, ShapedTarget(target, lambda: shape), job.processes).run()


def main() -> None:
    given = json.load(sys.stdin)
    job = LogJob(**given | {name: tuple(given[name]) for name in ("warm", "measured")})
    pids = [psutil.Process().pid]
    with closing(TaskProcesses(job.processes)) as processes:
        ingest(job, processes, *job.warm)
        before, began = cpu_seconds(pids), time.perf_counter()
        ingest(job, processes, *job.measured)
        seconds = time.perf_counter() - began
        after = cpu_seconds(pids)
    print(json.dumps({"seconds": seconds, "cpu_s": after - before, "start_cpu_s": before}))


if __name__ == "__main__":
    main()
