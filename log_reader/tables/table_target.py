"""An Iceberg table as the target of an ingest: tasks write its data files, the driver commits them.

The commit is that of `iceberg_table`: an `append` snapshot with the end offsets. Dead letters are
in a second table, which follows the first one's commits. What runs the tasks is passed in, and
what merges changes into a table with the current state of keys.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import pyarrow as pa
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table

from bucketlog.log_format.errors import ConfigurationError
from bucketlog.log_reader.options import ReadOptions
from bucketlog.log_reader.plan import TaskPiece
from bucketlog.log_reader.tables.catalog_failure import catalog_failures
from bucketlog.log_reader.tables.change_rule import ChangeRule, check_same_rule
from bucketlog.log_reader.tables.dead_letters import (
    SUFFIX,
    check_not_ahead,
    pending_files,
    publish_dead_letters,
)
from bucketlog.log_reader.tables.iceberg_files import TableFiles, newest_timestamp_ms
from bucketlog.log_reader.tables.iceberg_schema import prepared_table
from bucketlog.log_reader.tables.iceberg_table import (
    IcebergTable,
    PlanChange,
    ingested_columns,
    standing_of,
)
from bucketlog.log_reader.tables.ingest_loop import WrittenBatch
from bucketlog.log_reader.tables.partitioning import PartitionTerms
from bucketlog.log_reader.tables.progress import Commit, TargetState, TopicEnds
from bucketlog.log_reader.tables.rows import BATCH, DAY, DEAD_LETTERS, RowShape
from bucketlog.log_reader.tables.task import TaskFiles, TaskWork

RunTasks = Callable[[TaskWork, Sequence[Sequence[TaskPiece]]], Iterable[TaskFiles]]
MergeChanges = Callable[[ChangeRule, Sequence[DataFile]], PlanChange]
"""Returns the plan that merges the changes in these files, which know their partition spec."""


@dataclass(frozen=True)
class TableName:
    """`catalog.database.table`, and the table for dead letters in the same catalog."""

    catalog: str
    table: str
    letters: str

    @classmethod
    def parse(cls, text: str, dead_letters: str | None = None) -> "TableName":
        """`dead_letters` is database.table. Raises `ConfigurationError`."""
        catalog, _, table = text.partition(".")
        if not catalog or "." not in table.strip("."):
            raise ConfigurationError(
                f"the table {text!r} has no catalog and no database",
                remedy="name the table as catalog.database.table",
            )
        return cls(catalog, table, dead_letters or f"{table}{SUFFIX}")

    def __str__(self) -> str:
        return f"{self.catalog}.{self.table}"


class TableTarget:
    """`open_catalog` is called once, when the catalog is needed. `merge` is for shapes with
    changes. `changed` gets the name of each table that has a new snapshot. `partition_by`: the
    partitions that the table has, or gets when it is created. None: those of the table, or the day
    of the rows."""

    def __init__(
        self,
        name: TableName,
        open_catalog: Callable[[], Catalog],
        run: RunTasks,
        *,
        new_id: Callable[[], str],
        merge: MergeChanges | None = None,
        changed: Callable[[str], None] = lambda table: None,
        partition_by: PartitionTerms | None = None,
    ) -> None:
        self._name = name
        self._open_catalog = open_catalog
        self._run = run
        self._new_id = new_id
        self._merge = merge
        self._changed = changed
        self._partition_by = partition_by
        self._catalog: Catalog | None = None
        self._table = self._of(name.table)

    @property
    def name(self) -> str:
        return str(self._name)

    def prepare(self, shape: RowShape) -> TargetState:
        """As `IngestTarget.prepare`."""
        with catalog_failures(self.name):
            return self._prepared(shape)

    def _prepared(self, shape: RowShape) -> TargetState:
        catalog, name = self._opened(), self._name
        with suppress(NoSuchTableError):
            self._check_present(catalog.load_table(name.table), shape)
        wanted_columns = pa.schema([*shape.columns, (BATCH, pa.int64())])
        wanted = self._partition_by
        prepared_table(
            catalog,
            name.table,
            wanted_columns,
            partition_by=DAY if wanted is None else str(wanted),
            has_these=wanted is not None,
        )
        if shape.bad_records == "dead-letter":
            letters = pa.schema([*DEAD_LETTERS, (BATCH, pa.int64())])
            prepared_table(catalog, name.letters, letters, partition_by=None)
            before = self._of(name.letters).base().standing
            standing = self._table.base().standing
            check_not_ahead(f"{name.catalog}.{name.letters}", before, standing)
        else:
            standing = self._table.base().standing
        self._check_rule(standing, shape)
        self._publish(standing)
        return standing

    def _check_present(self, table: Table, shape: RowShape) -> None:
        """Raises `ConfigurationError` before the columns of the table are changed."""
        standing = standing_of(self.name, table.metadata)
        self._check_rule(standing, shape)
        if standing.commit is not None and shape.changes is not None:
            columns = {each.name: each.field_id for each in table.schema().fields}
            shape.changes.check_present(self.name, columns, ingested_columns(table.metadata))

    def _check_rule(self, standing: TargetState, shape: RowShape) -> None:
        if standing.commit is not None:
            check_same_rule(self.name, standing.changes, shape.changes)

    def write(
        self,
        options: ReadOptions,
        tasks: Sequence[Sequence[TaskPiece]],
        shape: RowShape,
        standing: TargetState,
        topics: Mapping[str, TopicEnds],
    ) -> WrittenBatch:
        """As `IngestTarget.write`, with what tasks read by which options."""
        has_letters = shape.bad_records == "dead-letter"
        self._publish(standing)  # the next commit no longer names these dead letters
        letters = self._of(self._name.letters).base() if has_letters else None
        table = self._table.base().table
        work = TaskWork(
            options,
            shape,
            standing.next_batch,
            TableFiles.of(table),
            TableFiles.of(letters.table) if letters else None,
        )
        rows: list[DataFile] = []
        dead: list[DataFile] = []
        for files in self._run(work, tasks):
            rows += files.rows
            dead += files.dead_letters
        dead_count = sum(file.record_count for file in dead)
        commit = Commit(
            format=1 if shape.changes is None else 2,
            batch=standing.next_batch,
            attempt=self._new_id(),
            topics=dict(topics),
            dead_letters=letters
            and pending_files(
                self._name.letters, [file.file_path for file in dead], dead_count, letters.standing
            ),
            changes=shape.changes,
        )
        if shape.changes is None:
            after = self._table.append(rows, commit, standing)
        else:
            assert self._merge is not None  # who makes a shape with changes passes it in
            for file in rows:
                file.spec_id = table.metadata.default_spec_id
            after = self._table.change(self._merge(shape.changes, rows), commit, standing)
        self._publish(after)
        self._changed(self.name)
        return WrittenBatch(
            after,
            sum(file.record_count for file in rows),
            dead_count,
            sum(file.file_size_in_bytes for file in (*rows, *dead)),
            newest_timestamp_ms(table, rows),
        )

    def _publish(self, standing: TargetState) -> None:
        """The dead letters of the last commit, by this run or an earlier one."""
        pending = standing.commit and standing.commit.dead_letters
        if not pending:
            return
        letters = f"{self._name.catalog}.{pending.table}"
        with catalog_failures(letters):
            published = publish_dead_letters(self._of(pending.table), standing.commit)
        if published:
            self._changed(letters)

    def _of(self, table: str) -> IcebergTable:
        def load() -> Table:
            with catalog_failures(f"{self._name.catalog}.{table}"):
                return self._opened().load_table(table)

        return IcebergTable(f"{self._name.catalog}.{table}", load)

    def _opened(self) -> Catalog:
        if self._catalog is None:
            self._catalog = self._open_catalog()
        return self._catalog
