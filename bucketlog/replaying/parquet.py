"""The local engine of a replay to Parquet: the tasks of the Spark job, run by threads."""

import threading
import time
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bucketlog.log_reader.options import ReadOptions
    from bucketlog.log_reader.parquet_target import ReplayReport
    from bucketlog.log_reader.parquet_writing import FileRecords, ParquetSettings
    from bucketlog.log_reader.replay_plan import ReplayPlan
    from bucketlog.tiered_storage.backends.location import S3Options


class _StoppedError(Exception):
    """Another task failed, or somebody pressed Ctrl-C: this one need not continue."""


def write_locally(
    plan_of: "Callable[[], ReplayPlan]",
    options: "ReadOptions",
    target: str,
    columns: Sequence[str] | None,
    partition_by: tuple[str, ...],
    settings: "ParquetSettings | None",
    *,
    threads: int,
    overwrite: bool,
    target_s3: "S3Options | None",
    on_rows: Callable[[int, int], None] | None,
) -> "ReplayReport":
    """As `spark_jobs.parquet_lane.write_parquet`, which see; the same files."""
    from bucketlog.log_reader.parquet_target import parse_target, replacing, report_of
    from bucketlog.log_reader.parquet_writing import (
        ParquetSettings,
        TaskName,
        chosen_columns,
        write_task,
    )

    started = time.monotonic()
    settings = replace(settings or ParquetSettings(), partition_by=partition_by)
    names = chosen_columns(columns, settings, include_headers=options.include_headers)
    where = parse_target(target, source=options.url, s3=target_s3 or options.s3)
    plan = plan_of()
    job = uuid.uuid4().hex[:12]
    stopped = threading.Event()

    def passed(rows: int, size_bytes: int) -> None:
        if stopped.is_set():
            raise _StoppedError
        if on_rows is not None:
            on_rows(rows, size_bytes)

    with (
        replacing(where, job, overwrite=overwrite) as replacement,
        closing(plan.open_source()) as source,
    ):

        def write(task: int) -> "list[FileRecords]":
            pieces = plan.tasks[task]
            bucket = replacement.bucket
            return write_task(
                source,
                pieces,
                bucket,
                TaskName(job, task),
                names,
                settings,
                plan.options,
                on_rows=passed,
            )

        with ThreadPoolExecutor(threads, thread_name_prefix="bucketlog-replay") as pool:
            futures = [pool.submit(write, task) for task in range(len(plan.tasks))]
            try:
                written = [row for future in futures for row in future.result()]
            except BaseException:
                stopped.set()
                pool.shutdown(wait=True, cancel_futures=True)
                raise
        partitions = replacement.verify(written, plan.partitions, plan.records)
    took_s = time.monotonic() - started
    return report_of(target, written, partitions, took_s, withheld_records=plan.withheld_records)
