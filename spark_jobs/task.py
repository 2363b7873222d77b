"""What travels from the driver to a Spark task, and how the task reads it."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from pyspark.sql.datasource import InputPartition

from bucketlog.log_reader.options import ReadOptions, open_log
from bucketlog.log_reader.packing import packed, unpacked
from bucketlog.log_reader.plan import TaskPiece
from bucketlog.log_reader.requests import report_reading
from bucketlog.spark_jobs.reused_worker import ease_next_task
from bucketlog.tiered_storage.counting import CountingSyncBucket

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Task(InputPartition):
    """What one Spark task reads, as bytes: Spark pickles it on its way to an executor."""

    packed: bytes

    @classmethod
    def of(cls, pieces: Sequence[TaskPiece]) -> Self:
        return cls(packed(pieces))

    def __repr__(self) -> str:
        return f"Task({len(self.packed)} bytes)"


def read_task(options: ReadOptions, names: Sequence[str], task: Task) -> Iterator["pa.RecordBatch"]:
    """In an executor: the columns `names` of a task's records."""
    pieces = unpacked(task.packed)
    if not pieces:
        return
    from bucketlog.log_reader.fetch import read_planned  # only tasks pay for importing the decoder

    with closing(CountingSyncBucket(open_log(options))) as bucket:
        batches = read_planned(bucket, options, pieces, names)
        yield from report_reading(bucket, options.url, batches)
    ease_next_task()
