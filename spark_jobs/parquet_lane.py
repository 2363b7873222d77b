"""The fast lane of a replay to Parquet: Spark schedules, the tasks read and write by themselves.

    write_parquet(spark, {"path": "s3://logs/prod", "subscribe": "orders"}, "s3a://lake/orders")

No record crosses into the JVM: a task turns byte ranges of the log into Arrow and Arrow into files
of its own, and gives Spark a row for each. Only `range` and `mapInArrow` are used, which Spark
Connect has, too. Invariant: `_SUCCESS` stands where the files hold what the plan promised, no
matter which tasks ran again or twice (`spark_jobs.parquet_target`).
"""

import pickle
import time
import uuid
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from bucketlog.errors import ConfigurationError
from spark_jobs.options import ReadOptions, parse_options
from spark_jobs.parquet_target import ReplayReport, Target, parse_target, replacing
from spark_jobs.parquet_writing import ParquetSettings, TaskName, Written, write_task
from spark_jobs.replay_plan import ReplayPlan, plan_replay
from tiered_storage.location import S3Options, open_sync_bucket

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")
HEADERS = "headers"

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
    parsed = parse_options(options)
    settings = settings or ParquetSettings()
    names = chosen_columns(parsed, columns, settings)
    started = clock()
    plan = plan or plan_replay(parsed)
    where = parse_target(target, source=parsed.url, s3=target_s3 or parsed.s3)
    with replacing(where, overwrite=overwrite) as replacement:
        written = _run(spark, plan, where, names, settings)
        partitions = replacement.verify(written, plan.partitions, plan.records)
    return ReplayReport(
        target=target,
        records=sum(partition.records for partition in partitions),
        files=len({row.file for row in written}),
        file_bytes=sum({row.file: row.file_bytes for row in written}.values()),
        seconds=round(clock() - started, 3),
        partitions=partitions,
    )


def chosen_columns(
    options: ReadOptions, columns: Sequence[str] | None, settings: ParquetSettings
) -> tuple[str, ...]:
    """Raises `ConfigurationError`."""
    there = (*COLUMNS, HEADERS) if options.include_headers else COLUMNS
    chosen = tuple(there if columns is None else columns)
    for name in chosen:
        if name not in there:
            raise ConfigurationError(
                f"no column {name!r}",
                remedy=f"choose among {', '.join(there)}; headers come with includeHeaders=true",
            )
    if not set(chosen) - set(settings.partition_by):
        raise ConfigurationError("no column is left for the files", remedy="choose value, too")
    return chosen


@dataclass(frozen=True)
class _WriteTasks:
    """What `mapInArrow` calls in a worker, with the numbers of its tasks.

    A task's pieces are packed one by one, so that a worker unpacks its own alone.
    """

    options: ReadOptions
    packed: tuple[bytes, ...]
    target: Target
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

    def _write(self, task: int) -> list[Written]:
        pieces = pickle.loads(zlib.decompress(self.packed[task]))
        options = self.options
        with (
            closing(open_sync_bucket(options.url, s3=options.s3)) as source,
            closing(self.target.open()) as target,
        ):
            return write_task(
                source,
                pieces,
                target,
                TaskName(self.job, task),
                self.columns,
                self.settings,
                max_decompressed_bytes=options.max_decompressed_bytes,
            )


def _run(
    spark: "SparkSession",
    plan: ReplayPlan,
    target: Target,
    columns: tuple[str, ...],
    settings: ParquetSettings,
) -> list[Written]:
    if not plan.tasks:
        return []
    count = len(plan.tasks)
    packed = tuple(zlib.compress(pickle.dumps(task), 1) for task in plan.tasks)
    work = _WriteTasks(plan.options, packed, target, uuid.uuid4().hex[:12], columns, settings)
    rows = spark.range(0, count, 1, count).mapInArrow(work, _WRITTEN_DDL).collect()
    return [Written(*row) for row in rows]
