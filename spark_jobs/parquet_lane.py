"""The fast lane of a replay to Parquet: Spark schedules, the tasks read and write by themselves.

    write_parquet(spark, {"path": "s3://logs/prod", "subscribe": "orders"}, "s3a://lake/orders")

No record crosses into the JVM: a task turns byte ranges of the log into Arrow and Arrow into its
files, and gives Spark a row for each file. Only `range` and `mapInArrow` are used, which Spark
Connect has, too. Invariant: `_SUCCESS` is where the files hold what the plan promised, no
matter which tasks ran again or twice (`log_reader.parquet_target`).
"""

import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from bucketlog.log_reader.packing import packed, unpacked
from bucketlog.log_reader.parquet_target import (
    ReplayReport,
    ReplayTarget,
    parse_target,
    replacing,
    report_of,
)
from bucketlog.log_reader.parquet_writing import (
    FileRecords,
    ParquetSettings,
    TaskName,
    chosen_columns,
    write_task,
)
from bucketlog.log_reader.replay_plan import ReplayPlan, plan_replay, replay_options
from bucketlog.spark_jobs.reused_worker import ease_next_task
from bucketlog.tiered_storage.backends.location import S3Options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_WRITTEN_DDL = (
    "file string, file_bytes bigint, topic string, partition int, "
    "records bigint, first_offset bigint, last_offset bigint"
)
_WRITTEN_SCHEMA = pa.schema(
    [
        ("file", pa.string()),
        ("file_bytes", pa.int64()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("records", pa.int64()),
        ("first_offset", pa.int64()),
        ("last_offset", pa.int64()),
    ]
)


def write_parquet(
    spark: "SparkSession",
    options: Mapping[str, str],
    target: str,
    *,
    columns: Sequence[str] | None = None,
    settings: ParquetSettings | None = None,
    target_s3: S3Options | None = None,
    overwrite: bool = False,
    plan: ReplayPlan | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> ReplayReport:
    """Write what the source's `options` select as Parquet under `target`.

    `target` is a path that all workers share, file:///…, s3://… or s3a://…; `target_s3` says how
    its store is reached, by default as the log's, with credentials from the workers' environment
    (AWS_*). `columns` are some of the source's; all by default. `plan` is what `plan_replay` gave
    for these options. Raises `ConfigurationError` for what does not fit together and
    `CorruptObjectError` where the files are not what was promised.
    """
    started = clock()
    settings = settings or ParquetSettings()
    parsed = plan.options if plan else replay_options(options)
    names = chosen_columns(columns, settings, include_headers=parsed.include_headers)
    where = parse_target(target, source=parsed.url, s3=target_s3 or parsed.s3)
    plan = plan or plan_replay(parsed, cores=lambda: _cores(spark))
    job = uuid.uuid4().hex[:12]
    with replacing(where, job, overwrite=overwrite) as replacement:
        written = _run(spark, plan, where, job, names, settings)
        partitions = replacement.verify(written, plan.partitions, plan.records)
    took_s = clock() - started
    return report_of(target, written, partitions, took_s, withheld_records=plan.withheld_records)


def _cores(spark: "SparkSession") -> int:
    from pyspark.errors import PySparkAttributeError, PySparkNotImplementedError

    try:
        return int(spark.sparkContext.defaultParallelism)
    except (PySparkAttributeError, PySparkNotImplementedError):  # Spark Connect does not tell
        return 1


@dataclass(frozen=True)
class _WriteTasks:
    """What `mapInArrow` calls in a worker, with the numbers of its tasks.

    A task's pieces are packed one by one, so that a worker unpacks its own alone.
    """

    plan: ReplayPlan
    packed: tuple[bytes, ...]
    target: ReplayTarget
    job: str
    columns: tuple[str, ...]
    settings: ParquetSettings

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for task in batch.column(0).to_pylist():
                written = self._write(task)
                if written:
                    columns = [list(column) for column in zip(*written, strict=True)]
                    yield pa.RecordBatch.from_pydict(
                        dict(zip(_WRITTEN_SCHEMA.names, columns, strict=True)), _WRITTEN_SCHEMA
                    )

    def _write(self, task: int) -> list[FileRecords]:
        with closing(self.plan.open_source()) as source, closing(self.target.open()) as target:
            written = write_task(
                source,
                unpacked(self.packed[task]),
                target,
                TaskName(self.job, task),
                self.columns,
                self.settings,
                self.plan.options,
            )
        ease_next_task()
        return written


def _run(
    spark: "SparkSession",
    plan: ReplayPlan,
    target: ReplayTarget,
    job: str,
    columns: tuple[str, ...],
    settings: ParquetSettings,
) -> list[FileRecords]:
    count = len(plan.tasks)
    if not count:
        return []
    work = _WriteTasks(
        replace(plan, tasks=(), ranges=()),
        tuple(map(packed, plan.tasks)),
        target,
        job,
        columns,
        settings,
    )
    rows = spark.range(0, count, 1, count).mapInArrow(work, _WRITTEN_DDL).collect()
    return [FileRecords(*row) for row in rows]
