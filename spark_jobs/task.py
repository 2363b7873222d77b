"""What travels from the driver to a Spark task, and how the task reads it."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition

from spark_jobs.options import ReadOptions, open_log
from spark_jobs.packing import packed, unpacked
from spark_jobs.plan import TaskPiece
from spark_jobs.requests import told_reading
from tiered_storage.counting import CountingSyncBucket

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass
class Task(InputPartition):
    """What one Spark task reads; travels to an executor by pickle, packed."""

    pieces: tuple[TaskPiece, ...]

    def __reduce__(self) -> tuple[Callable[[bytes], "Task"], tuple[bytes]]:
        return _unpacked_task, (packed(self.pieces),)


def _unpacked_task(data: bytes) -> Task:
    return Task(unpacked(data))


def read_task(options: ReadOptions, names: Sequence[str], task: Task) -> Iterator["pa.RecordBatch"]:
    """In an executor: the columns `names` of a task's records."""
    if not task.pieces:
        return
    from spark_jobs.fetch import read_pieces  # only tasks pay for importing the decoder

    with closing(CountingSyncBucket(open_log(options))) as bucket:
        batches = read_pieces(
            bucket,
            task.pieces,
            names,
            max_decompressed_bytes=options.max_decompressed_bytes,
            isolation=options.isolation,
        )
        yield from told_reading(bucket, options.url, batches)
