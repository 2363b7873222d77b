"""An Iceberg table as the target of an ingest on Spark, which runs the tasks.

No record goes through the JVM. The commit is that of `log_reader.tables.table_target`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from bucketlog.log_reader.packing import packed, unpacked
from bucketlog.log_reader.plan import TaskPiece
from bucketlog.log_reader.tables.iceberg_files import packed_file, unpacked_file
from bucketlog.log_reader.tables.ingest_loop import WrittenBatch
from bucketlog.log_reader.tables.progress import TargetState, TopicEnds
from bucketlog.log_reader.tables.table_target import TableName, TableTarget
from bucketlog.log_reader.tables.task import TaskFiles, TaskWork
from bucketlog.spark_jobs.ingest.catalogs import session_catalog
from bucketlog.spark_jobs.ingest.rows import BatchRecords, IngestShape
from bucketlog.spark_jobs.reused_worker import ease_next_task

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_WRITTEN = pa.schema([("is_dead", pa.bool_()), ("file", pa.binary())])
_WRITTEN_DDL = "is_dead boolean, file binary"


class IcebergTarget:
    """`table` as Spark names it: catalog.database.table. Dead letters are in `dead_letters`, a
    table of the same catalog: database.table."""

    def __init__(
        self,
        spark: "SparkSession",
        table: str,
        *,
        new_id: Callable[[], str],
        dead_letters: str | None = None,
    ) -> None:
        self._spark = spark
        name = TableName.parse(table, dead_letters)
        self._target = TableTarget(
            name,
            lambda: session_catalog(spark, name.catalog),
            self._run,
            new_id=new_id,
            changed=self._refresh,
        )

    @property
    def name(self) -> str:
        return self._target.name

    def prepare(self, shape: IngestShape) -> TargetState:
        return self._target.prepare(shape.rows)

    def write(
        self, records: BatchRecords, standing: TargetState, topics: Mapping[str, TopicEnds]
    ) -> WrittenBatch:
        shape = records.shape.rows
        return self._target.write(records.options, records.tasks, shape, standing, topics)

    def _refresh(self, table: str) -> None:
        """The session caches its tables."""
        self._spark.catalog.refreshTable(table)

    def _run(self, work: TaskWork, tasks: Sequence[Sequence[TaskPiece]]) -> Iterator[TaskFiles]:
        many = len(tasks)
        ingest = _IngestTasks(work, tuple(map(packed, tasks)))
        written = self._spark.range(0, many, 1, many).mapInArrow(ingest, _WRITTEN_DDL).collect()
        for row in written:
            file = unpacked_file(bytes(row["file"]))
            yield TaskFiles([], [file]) if row["is_dead"] else TaskFiles([file], [])


@dataclass(frozen=True)
class _IngestTasks:
    """What `mapInArrow` calls in a worker, with the numbers of its tasks. Pieces are packed task by
    task, so that a worker unpacks its own alone."""

    work: TaskWork
    packed: tuple[bytes, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for task in batch.column(0).to_pylist():
                rows, dead = self.work.run(unpacked(self.packed[task]))
                ease_next_task()
                for is_dead, files in ((False, rows), (True, dead)):
                    for file in files:
                        yield pa.RecordBatch.from_pylist(
                            [{"is_dead": is_dead, "file": packed_file(file)}], _WRITTEN
                        )
