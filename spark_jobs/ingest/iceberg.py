"""An Iceberg table as the target: tasks write its data files, the driver commits them.

Spark runs the tasks. No record goes through the JVM, and the commit is that of
`log_reader.tables.iceberg_table`: an `append` snapshot with the end offsets. Dead letters are in a
second table, which follows the first one's commits.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyiceberg.table import Table

from bucketlog.log_format.errors import ConfigurationError
from bucketlog.log_reader.packing import packed, unpacked
from bucketlog.log_reader.tables.catalog_failure import catalog_failures
from bucketlog.log_reader.tables.dead_letters import (
    SUFFIX,
    check_not_ahead,
    pending_files,
    publish_dead_letters,
)
from bucketlog.log_reader.tables.iceberg_files import TableFiles, packed_file, unpacked_file
from bucketlog.log_reader.tables.iceberg_schema import prepared_table
from bucketlog.log_reader.tables.iceberg_table import IcebergTable
from bucketlog.log_reader.tables.progress import Commit, TargetState, TopicEnds
from bucketlog.log_reader.tables.rows import BATCH, DAY, DEAD_LETTERS
from bucketlog.log_reader.tables.task import TaskWork
from bucketlog.spark_jobs.ingest.catalogs import session_catalog
from bucketlog.spark_jobs.ingest.rows import BatchRecords, IngestShape
from bucketlog.spark_jobs.ingest.target import WrittenBatch
from bucketlog.spark_jobs.reused_worker import ease_next_task

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
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
        self._name = table
        self._new_id = new_id
        self._catalog_name, _, self._table_name = table.partition(".")
        if "." not in self._table_name:
            raise ConfigurationError(
                f"the table {table!r} has no catalog and no database",
                remedy="name the table as catalog.database.table",
            )
        self._letters_name = dead_letters or f"{self._table_name}{SUFFIX}"
        self._catalog: Catalog | None = None
        self._table = self._of(self._table_name)

    @property
    def name(self) -> str:
        return self._name

    def prepare(self, shape: IngestShape) -> TargetState:
        with catalog_failures(self._name):
            return self._prepared(shape)

    def _prepared(self, shape: IngestShape) -> TargetState:
        catalog = self._opened()
        columns = pa.schema([*shape.rows.columns, (BATCH, pa.int64())])
        prepared_table(catalog, self._table_name, columns, partition_by=DAY)
        if shape.rows.bad_records == "dead-letter":
            letters = pa.schema([*DEAD_LETTERS, (BATCH, pa.int64())])
            prepared_table(catalog, self._letters_name, letters, partition_by=None)
            before = self._of(self._letters_name).base().standing
            standing = self._table.base().standing
            check_not_ahead(f"{self._catalog_name}.{self._letters_name}", before, standing)
        else:
            standing = self._table.base().standing
        self._publish(standing)
        return standing

    def write(
        self, records: BatchRecords, standing: TargetState, topics: Mapping[str, TopicEnds]
    ) -> WrittenBatch:
        has_letters = records.shape.rows.bad_records == "dead-letter"
        self._publish(standing)  # the next commit no longer names these dead letters
        letters = self._of(self._letters_name).base() if has_letters else None
        work = TaskWork(
            records.options,
            records.shape.rows,
            standing.next_batch,
            TableFiles.of(self._table.base().table),
            TableFiles.of(letters.table) if letters else None,
        )
        tasks = tuple(map(packed, records.tasks))
        ingest = _IngestTasks(work, tasks)
        many = len(tasks)
        written = self._spark.range(0, many, 1, many).mapInArrow(ingest, _WRITTEN_DDL).collect()
        files = [(row["is_dead"], unpacked_file(bytes(row["file"]))) for row in written]
        rows = [file for is_dead, file in files if not is_dead]
        dead = [file for is_dead, file in files if is_dead]
        dead_count = sum(file.record_count for file in dead)
        commit = Commit(
            batch=standing.next_batch,
            attempt=self._new_id(),
            topics=dict(topics),
            dead_letters=letters
            and pending_files(
                self._letters_name, [file.file_path for file in dead], dead_count, letters.standing
            ),
        )
        after = self._table.append(rows, commit, standing)
        self._publish(after)
        self._spark.catalog.refreshTable(self._name)  # the session caches its tables
        return WrittenBatch(after, sum(file.record_count for file in rows), dead_count)

    def _publish(self, standing: TargetState) -> None:
        """The dead letters of the last commit, by this run or an earlier one."""
        pending = standing.commit and standing.commit.dead_letters
        if not pending:
            return
        with catalog_failures(f"{self._catalog_name}.{pending.table}"):
            published = publish_dead_letters(self._of(pending.table), standing.commit)
        if published:
            self._spark.catalog.refreshTable(f"{self._catalog_name}.{pending.table}")

    def _of(self, table: str) -> IcebergTable:
        def load() -> Table:
            with catalog_failures(f"{self._catalog_name}.{table}"):
                return self._opened().load_table(table)

        return IcebergTable(f"{self._catalog_name}.{table}", load)

    def _opened(self) -> "Catalog":
        if self._catalog is None:
            self._catalog = session_catalog(self._spark, self._catalog_name)
        return self._catalog


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
