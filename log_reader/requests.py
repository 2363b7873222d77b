"""What a query asks of the bucket: a line by its planning on the driver, and one by each task.

Spark 4.1 takes no metrics from Python sources, but it collects their logs: in a session with
`spark.sql.pyspark.worker.logging.enabled` the lines are rows of `python_worker_logs()`, their
numbers as `context`. Else planning's goes to the driver's standard error, where Python's
logging is not set up, and those of tasks nowhere.
"""

import logging
import sys
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from bucketlog.log_reader.plan import Piece, TaskPiece
from bucketlog.tiered_storage.bucket import SyncBucket
from bucketlog.tiered_storage.counting import CountingSyncBucket

if TYPE_CHECKING:
    import pyarrow as pa

logger = logging.getLogger("bucketlog.spark")
logger.setLevel(logging.INFO)


class PlanningReport:
    """Set `tasks` when they are known."""

    def __init__(self, bucket: CountingSyncBucket) -> None:
        self.bucket = bucket
        self.tasks: list[tuple[TaskPiece, ...]] = []


@contextmanager
def report_planning(bucket: SyncBucket, url: str) -> Iterator[PlanningReport]:
    """Tells what was asked of the planning's `bucket`, which is closed."""
    planning = PlanningReport(CountingSyncBucket(bucket))
    began = time.perf_counter()
    try:
        yield planning
        text = _log_requests(
            f"planned {url}",
            planning.bucket,
            tasks=len(planning.tasks),
            task_bytes=sum(map(_bytes, planning.tasks)),
            milliseconds=round((time.perf_counter() - began) * 1000),
        )
        if not logger.hasHandlers():
            sys.stderr.write(f"bucketlog: {text}\n")
    finally:
        planning.bucket.close()


def report_reading(
    bucket: CountingSyncBucket, url: str, batches: "Generator[pa.RecordBatch, None, None]"
) -> "Generator[pa.RecordBatch, None, None]":
    """Hands `batches` on; tells what was asked of `bucket` when they end, or are let go."""
    records = 0
    try:
        for batch in batches:
            records += batch.num_rows
            yield batch
    finally:
        batches.close()
        _log_requests(f"read {url}", bucket, records=records)


def _bytes(task: tuple[TaskPiece, ...]) -> int:
    return sum(each.length if isinstance(each, Piece) else each.span.length for each in task)


def _log_requests(what: str, bucket: CountingSyncBucket, **more: int) -> str:
    counts = bucket.snapshot()
    numbers = {
        "gets": counts.gets,
        "lists": counts.lists,
        "bytes": counts.bytes_out,
        **more,
    }
    text = f"{what}: {', '.join(f'{name} {number}' for name, number in numbers.items())}"
    logger.info(text, extra={"context": {name: str(value) for name, value in numbers.items()}})
    return text
