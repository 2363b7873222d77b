"""Dead letters of a batch are appended once, whoever dies in between."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table

from bucketlog.log_format.errors import ConfigurationError
from bucketlog.log_reader.options import parse_options
from bucketlog.log_reader.tables.dead_letters import pending_files, publish_dead_letters
from bucketlog.log_reader.tables.iceberg_files import TableFiles
from bucketlog.log_reader.tables.iceberg_schema import prepared_table
from bucketlog.log_reader.tables.iceberg_table import IcebergTable
from bucketlog.log_reader.tables.progress import (
    Commit,
    CommitContentionError,
    IngestConflictError,
    TargetState,
    TopicEnds,
)
from bucketlog.log_reader.tables.rows import BadRecords, RowShape
from bucketlog.spark_jobs.ingest import iceberg
from bucketlog.spark_jobs.ingest.iceberg import IcebergTarget

SCHEMA = pa.schema([("offset", pa.int64())])
FIELDS = pa.schema([("id", pa.string())])


class NoTasks:
    """A session as a batch without tasks uses it."""

    @property
    def catalog(self) -> "NoTasks":
        return self

    def range(self, *bounds: int) -> "NoTasks":
        return self

    def mapInArrow(self, *of: object) -> "NoTasks":  # noqa: N802 - Spark's name
        return self

    def collect(self) -> list[object]:
        return []

    def refreshTable(self, name: str) -> None:  # noqa: N802 - Spark's name
        pass


class Letters:
    """A table of dead letters, and the commits of the table that it belongs to."""

    def __init__(self, catalog: SqlCatalog) -> None:
        self.catalog = catalog
        prepared_table(catalog, "db.letters", SCHEMA, partition_by=None)
        self.table = IcebergTable("lake.db.letters", self.load)

    def load(self) -> Table:
        return self.catalog.load_table("db.letters")

    def standing(self) -> TargetState:
        return self.table.base().standing

    def commit(self, batch: int, attempt: str, *offsets: int) -> Commit:
        writer = TableFiles.of(self.load()).writer()
        writer.add(pa.record_batch({"offset": pa.array(offsets, pa.int64())}))
        files = [file.file_path for file in writer.finish()]
        return Commit(
            batch=batch,
            attempt=attempt,
            topics={"orders": TopicEnds(topic_id="id", ends={0: 9})},
            dead_letters=pending_files("db.letters", files, len(offsets), self.standing()),
        )

    def orders(self) -> Table:
        return self.catalog.load_table("db.orders")

    def behind(self) -> Table:
        """As it was before a commit of somebody else."""
        table = self.load()
        self.load().append(pa.table({"offset": []}, SCHEMA))
        return table

    def offsets(self) -> list[int]:
        found: list[int] = self.load().scan().to_arrow()["offset"].to_pylist()
        return sorted(found)


@pytest.fixture
def letters(tmp_path: Path) -> Letters:
    uri, warehouse = f"sqlite:///{tmp_path}/catalog.db", f"file://{tmp_path}/warehouse"
    return Letters(SqlCatalog("lake", uri=uri, warehouse=warehouse))


def test_they_are_appended_once(letters: Letters) -> None:
    commit = letters.commit(1, "a", 1, 2)
    assert letters.offsets() == []
    assert publish_dead_letters(letters.table, commit) == 2
    assert publish_dead_letters(letters.table, commit) == 0
    assert letters.offsets() == [1, 2]


def test_one_who_comes_late_appends_nothing(letters: Letters) -> None:
    first = letters.commit(1, "a", 1)
    publish_dead_letters(letters.table, first)
    second = letters.commit(2, "b", 2)
    publish_dead_letters(letters.table, second)
    assert publish_dead_letters(letters.table, first) == 0
    assert publish_dead_letters(letters.table, second) == 0
    assert letters.offsets() == [1, 2]


def test_batches_without_dead_letters_change_nothing(letters: Letters) -> None:
    publish_dead_letters(letters.table, letters.commit(1, "a", 1))
    none = letters.commit(2, "b")
    assert none.dead_letters is None
    assert publish_dead_letters(letters.table, none) == 0
    assert publish_dead_letters(letters.table, None) == 0
    third = letters.commit(3, "c", 3)
    assert publish_dead_letters(letters.table, third) == 1
    assert letters.offsets() == [1, 3]


def test_a_commit_that_is_never_accepted_is_an_error(letters: Letters) -> None:
    publish_dead_letters(letters.table, letters.commit(1, "a", 1))
    second = letters.commit(2, "b", 2)
    contended = IcebergTable("lake.db.letters", letters.behind, sleep=lambda pause_s: None)
    with pytest.raises(CommitContentionError, match=r"lake\.db\.letters"):
        publish_dead_letters(contended, second)
    assert publish_dead_letters(letters.table, second) == 1
    assert letters.offsets() == [1, 2]


def test_a_conflict_without_the_dead_letters_is_an_error(
    letters: Letters, monkeypatch: pytest.MonkeyPatch
) -> None:
    def conflict(*of: object) -> TargetState:
        raise IngestConflictError("lake.db.letters", 1)

    commit = letters.commit(1, "a", 1)
    with monkeypatch.context() as patch:
        patch.setattr(letters.table, "append", conflict)
        with pytest.raises(IngestConflictError):
            publish_dead_letters(letters.table, commit)
    assert publish_dead_letters(letters.table, commit) == 1


def test_another_run_that_appends_them_meanwhile(letters: Letters) -> None:
    commit = letters.commit(1, "a", 1)
    loads = 0

    def load() -> Table:
        nonlocal loads
        loads += 1
        if loads == 2:  # the first is the base, the second that of the commit
            publish_dead_letters(letters.table, commit)
            publish_dead_letters(letters.table, letters.commit(2, "b", 2))
        return letters.load()

    late = IcebergTable("lake.db.letters", load)
    assert publish_dead_letters(late, commit) == 0
    assert letters.offsets() == [1, 2]


def target_of(letters: Letters, monkeypatch: pytest.MonkeyPatch) -> IcebergTarget:
    """The table `lake.db.orders`."""
    monkeypatch.setattr(iceberg, "session_catalog", lambda spark, name: letters.catalog)
    spark: Any = NoTasks()
    return IcebergTarget(spark, "lake.db.orders", new_id=lambda: "b", dead_letters="db.letters")


@pytest.mark.parametrize("bad_records", ["null", "dead-letter"])
def test_a_batch_is_not_written_before_the_last_ones_dead_letters(
    letters: Letters, monkeypatch: pytest.MonkeyPatch, bad_records: BadRecords
) -> None:
    """A commit names its own dead letters alone, so those of the one before must be there."""
    target = target_of(letters, monkeypatch)
    prepared_table(letters.catalog, "db.orders", SCHEMA, partition_by=None)
    orders = IcebergTable("lake.db.orders", letters.orders)
    first = letters.commit(1, "a", 1, 2)
    standing = orders.append([], first, orders.base().standing)
    shape = SimpleNamespace(rows=RowShape(FIELDS, bad_records=bad_records))
    options = parse_options({"path": "file:///log", "subscribe": "orders"})
    records: Any = SimpleNamespace(shape=shape, options=options, tasks=[])
    assert target.write(records, standing, {}).standing.next_batch == 3
    assert letters.offsets() == [1, 2]


def test_a_rollback_of_the_table_needs_one_of_its_dead_letters(
    letters: Letters, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Batch 2 is committed again by another attempt, with the same dead letters."""
    target = target_of(letters, monkeypatch)
    shape: Any = SimpleNamespace(rows=RowShape(FIELDS, bad_records="dead-letter"))
    standing = target.prepare(shape)
    orders = IcebergTable("lake.db.orders", letters.orders)
    for batch, attempt in ((1, "a"), (2, "b")):
        standing = orders.append([], letters.commit(batch, attempt, batch), standing)
        publish_dead_letters(letters.table, standing.commit)
    roll_back(letters.orders())
    refused = r"at batch 1, .* lake\.db\.letters has dead letters of batch 2"
    with pytest.raises(ConfigurationError, match=refused):
        target.prepare(shape)
    roll_back(letters.load())
    standing = target.prepare(shape)
    standing = orders.append([], letters.commit(2, "c", 2), standing)
    assert publish_dead_letters(letters.table, standing.commit) == 1
    assert letters.offsets() == [1, 2]


def roll_back(table: Table) -> None:
    """To the snapshot before the current one."""
    last = table.current_snapshot()
    assert last is not None
    assert last.parent_snapshot_id is not None
    table.manage_snapshots().rollback_to_snapshot(last.parent_snapshot_id).commit()
