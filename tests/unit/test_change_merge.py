"""Changes are merged into a table: one row for each key, beside other writers and after kills."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.table import DataScan, FileScanTask
from pyiceberg.typedef import Record

from bucketlog.log_format.errors import ConfigurationError
from bucketlog.log_reader.tables.change_rule import ChangeRule
from bucketlog.log_reader.tables.changes import merge
from bucketlog.log_reader.tables.changes.file_rows import file_rows
from bucketlog.log_reader.tables.changes.merge import BatchKeysError
from bucketlog.log_reader.tables.maintenance.small_files import RewriteRule
from bucketlog.log_reader.tables.maintenance.table_maintenance import (
    MaintenanceRules,
    TableMaintenance,
)
from bucketlog.log_reader.tables.progress import IngestConflictError
from bucketlog.log_reader.tables.reprocessing import Reprocessor
from tests.rigs.changed_table import BY_ID, NAME, ChangedTable, row, shape_of, tombstone

BATCHES = 10
NAMES = "abcdefgh"


@pytest.fixture
def table(tmp_path: Path) -> ChangedTable:
    return ChangedTable(tmp_path)


def test_the_newest_record_of_a_key_is_its_row(table: ChangedTable) -> None:
    table.ingest(row("a", 1), row("b", 1), row("a", 2), tasks=3)
    assert table.state() == {"a": 2, "b": 1}
    table.ingest(row("a", 3), tombstone("b"), row("c", 1))
    assert table.state() == {"a": 3, "c": 1}
    table.ingest(tombstone("c"), row("c", 5), tombstone("missing"))
    assert table.state() == {"a": 3, "c": 5}
    table.ingest(tombstone("a"), tombstone("c"))
    assert table.state() == {}
    assert table.operations() == ["append", "overwrite", "overwrite", "overwrite"]


def test_a_tombstone_deletes_the_row_of_its_record_key(tmp_path: Path) -> None:
    """The key of the table is another one: a field of the value."""
    table = ChangedTable(tmp_path, BY_ID)
    table.ingest(row("a", 1, key=b"k1"), row("b", 1, key=b"k2"))
    table.ingest(row("a", 2, key=b"k3"))
    table.ingest(tombstone("k1"), tombstone("k2"))
    assert table.state() == {"a": 2}
    table.ingest(row("a", 3, key=b"k3"), tombstone("k3"), row("b", 4, key=b"k2"))
    assert table.state() == {"b": 4}


def test_rows_without_a_key_become_dead_letters(table: ChangedTable, tmp_path: Path) -> None:
    table.ingest(row("a"), row(None), tombstone("a")._replace(key=None))
    assert table.state() == {"a": 0}
    assert table.reasons() == ["the record has no key"] * 2
    (tmp_path / "by_id").mkdir()
    by_id = ChangedTable(tmp_path / "by_id", BY_ID)
    by_id.ingest(row("a"), row(None, key=b"k"), tombstone("a")._replace(key=None))
    assert by_id.state() == {"a": 0}
    assert by_id.reasons() == ["id: the key is null", "the record has neither a value nor a key"]


def test_only_files_with_a_key_are_written_again(
    table: ChangedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    for day, names in enumerate(["ab", "cd", "ef"]):
        table.ingest(*(row(name, day=day) for name in names))
    before = table.paths()
    opened: list[str] = []

    def noted(of: Any, task: FileScanTask, columns: Any = None) -> Iterator[pa.RecordBatch]:
        opened.append(task.file.file_path)
        yield from file_rows(of, task, columns)

    monkeypatch.setattr(merge, "file_rows", noted)
    table.ingest(row("c", 7, day=9))
    assert table.state() == {"a": 0, "b": 0, "c": 7, "d": 0, "e": 0, "f": 0}
    (replaced,) = before - table.paths()
    assert set(opened) & before == {replaced}, "the others were left out by their bounds"


def test_a_file_with_bounds_around_a_key_is_read_and_stays(table: ChangedTable) -> None:
    table.ingest(row("a"), row("c"))
    before = table.paths()
    table.ingest(row("b"))
    assert before < table.paths()
    assert table.operations() == ["append", "append"]


def test_a_staged_file_without_older_rows_becomes_part_of_the_table(table: ChangedTable) -> None:
    table.ingest(row("a"), row("b"))
    root = Path(table.load().location().removeprefix("file://"))
    assert len(list(root.rglob("*.parquet"))) == 1


def test_rows_that_others_delete_meanwhile_stay_deleted(table: ChangedTable) -> None:
    table.ingest(row("a"), row("b"), row("c"))
    table.ingest(row("x", day=1), row("y", day=1))
    actions: list[Callable[[], Any]] = [
        lambda: table.load().delete("id = 'x'"),
        lambda: table.load().delete("id = 'b'"),
    ]
    table.planned = lambda: actions.pop()() if actions else None
    table.ingest(row("a", 2))
    assert table.state() == {"a": 2, "c": 0, "y": 0}


def test_maintenance_meanwhile_changes_no_rows(table: ChangedTable) -> None:
    for number, name in enumerate(NAMES):
        table.ingest(row(name, number))
    expected = table.state()
    actions = [lambda: maintain(table)]
    table.planned = lambda: actions.pop()() if actions else None
    table.ingest(row("a", 50), tombstone("b"))
    assert actions == []
    assert "replace" in table.operations()
    del expected["b"]
    assert table.state() == {**expected, "a": 50}


def maintain(table: ChangedTable) -> None:
    TableMaintenance(
        NAME, lambda: table.catalog, Random(1), lambda: datetime.now(UTC), sleep=lambda _: None
    ).run(MaintenanceRules(RewriteRule(files_min=2), timedelta(0), timedelta(days=2), 2))


def test_a_maintained_table_takes_changes(table: ChangedTable) -> None:
    for number, name in enumerate(NAMES):
        table.ingest(row(name, number), row("a", number))
    maintain(table)
    table.ingest(row("a", 90), tombstone("c"))
    maintain(table)
    assert table.state() == {name: n for n, name in enumerate(NAMES) if n not in (0, 2)} | {"a": 90}


def test_of_two_ingests_one_commits_a_batch(table: ChangedTable) -> None:
    table.ingest(row("a", 1))
    other = ChangedTable.__new__(ChangedTable)
    other.__dict__.update(table.__dict__, attempts=100)
    other.planned = lambda: None
    actions = [lambda: other.ingest(row("a", 2))]
    table.planned = lambda: actions.pop()() if actions else None
    with pytest.raises(IngestConflictError):
        table.ingest(row("a", 3))
    assert table.state() == {"a": 2}


def test_a_lost_response_commits_the_batch_once(
    table: ChangedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.ingest(row("a", 1), row("b", 1))
    accept = table.catalog.commit_table

    def lost(*of: Any) -> None:
        monkeypatch.setattr(table.catalog, "commit_table", accept)
        accept(*of)
        raise OSError("the connection was closed")

    monkeypatch.setattr(table.catalog, "commit_table", lost)
    table.ingest(row("a", 2), tombstone("b"))
    assert table.state() == {"a": 2}
    assert table.operations() == ["append", "overwrite"]


class DiedError(BaseException):
    """In place of the death of the process: no code may handle it."""


@pytest.mark.parametrize("seed", range(2))
def test_the_state_is_right_after_any_faults(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """A run dies before or after its commit, or others delete a row during its merge. The next run
    reads the same records again, unless they were committed."""
    random, table = Random(seed), ChangedTable(tmp_path)
    accept, expected = table.catalog.commit_table, dict[str, int]()
    table.ingest(row("a", -1))
    expected["a"] = -1
    faults: list[str] = []

    def faulty(*of: Any) -> Any:
        fault = faults.pop() if faults else ""
        if fault == "before":
            raise DiedError
        answer = accept(*of)
        if fault == "after":
            raise DiedError
        return answer

    def deletes() -> None:
        if faults and faults[-1] == "delete":
            faults.clear()
            if expected:
                name = random.choice(sorted(expected))
                del expected[name]
                table.load().delete(f"id = '{name}'")

    table.planned = deletes
    monkeypatch.setattr(table.catalog, "commit_table", faulty)
    for number in range(BATCHES):
        names = random.choices(NAMES, k=3)
        changes = [
            row(each, number) if random.random() < 0.7 else tombstone(each) for each in names
        ]
        before = table.load().properties
        for fault in (random.choice(["", "before", "after", "delete"]), ""):
            faults[:] = [fault] if fault else []
            try:
                table.ingest(*changes, tasks=random.choice([1, 3]))
            except DiedError:
                if table.load().properties == before:
                    continue
            break
        for each in changes:
            assert each.key is not None
            if each.value is None:
                expected.pop(each.key.decode(), None)
            else:
                expected[each.key.decode()] = number
        assert table.state() == expected


@pytest.mark.parametrize("other", [None, BY_ID, ChangeRule(mode="debezium")])
def test_a_table_keeps_its_rule(table: ChangedTable, other: ChangeRule | None) -> None:
    table.ingest(row("a"))
    table.rule = other
    with pytest.raises(ConfigurationError, match="was written with --changes upsert, and this run"):
        table.ingest(row("b"))
    assert table.state() == {"a": 0}


def test_a_table_of_appended_rows_takes_no_changes(tmp_path: Path) -> None:
    table = ChangedTable(tmp_path, None)
    table.ingest(row("a"))
    table.rule = BY_ID
    with pytest.raises(ConfigurationError, match=r"--changes append, .* --changes upsert"):
        table.ingest(row("b"))


@pytest.mark.parametrize("column", ["id", "_log_key", "_log_offset"])
@pytest.mark.parametrize("change", ["dropped", "renamed", "replaced"])
def test_a_column_that_finds_rows_must_stay(tmp_path: Path, column: str, change: str) -> None:
    table = ChangedTable(tmp_path, BY_ID)
    table.ingest(row("a", 1))
    kind = table.load().schema().find_field(column).field_type
    with table.load().update_schema(allow_incompatible_changes=True) as update:
        if change == "renamed":
            update.rename_column(column, "other")
        else:
            update.delete_column(column)
    if change == "replaced":
        with table.load().update_schema() as update:
            update.add_column(column, kind)
    with pytest.raises(ConfigurationError, match=f"no longer the column '{column}'"):
        table.ingest(row("a", 2))
    assert table.load().scan().to_arrow().num_rows == 1


def test_a_key_beyond_the_bounds_of_parquet_is_found(table: ChangedTable) -> None:
    """The second group of rows in the file has no bounds, and the first group has others."""
    table.ingest(row("first"))
    with table.load().transaction() as change:
        change.set_properties({"write.parquet.row-group-limit": "2"})
    long = "z" * 5_000
    table.ingest(row("m", 1), row("n", 1), row(long, 1), row("y" * 5_000, 1))
    table.ingest(row(long, 2))
    assert table.state() == {"first": 0, "m": 1, "n": 1, "y" * 5_000: 1, long: 2}


def test_the_order_of_key_fields_does_not_matter(tmp_path: Path) -> None:
    table = ChangedTable(tmp_path, ChangeRule(mode="upsert", key=("id", "n")))
    table.ingest(row("a", 1), row("b", 2))
    table.rule = ChangeRule(mode="upsert", key=("n", "id"))
    table.ingest(row("b", 2), row("c", 2))
    assert table.state() == {"a": 1, "b": 2, "c": 2}


def test_dead_letters_of_a_table_of_changes_are_not_reprocessed(table: ChangedTable) -> None:
    table.ingest(row("a"), row("b")._replace(value=b"{"))
    reprocessor = Reprocessor(NAME, lambda: table.catalog, lambda: "id", Random(1))
    with pytest.raises(ConfigurationError, match="may be older than the row of its key"):
        reprocessor.run(shape_of(None))
    assert table.state() == {"a": 0}


def test_rows_that_positional_deletes_delete_do_not_come_back(
    table: ChangedTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.ingest(row("a"), row("b"), row("c"))
    (path,) = table.paths()
    deletes = tmp_path / "deletes.parquet"
    pq.write_table(pa.table({"file_path": [path], "pos": pa.array([1], pa.int64())}), deletes)
    delete = DataFile.from_args(
        content=DataFileContent.POSITION_DELETES,
        file_path=f"file://{deletes}",
        file_format=FileFormat.PARQUET,
        partition=Record(),
        record_count=1,
        file_size_in_bytes=deletes.stat().st_size,
    )
    plan = DataScan.plan_files

    def planned(scan: DataScan) -> list[FileScanTask]:
        return [
            FileScanTask(task.file, {delete} if task.file.file_path == path else set())
            for task in plan(scan)
        ]

    monkeypatch.setattr(DataScan, "plan_files", planned)
    assert table.state() == {"a": 0, "c": 0}
    table.ingest(row("c", 2))
    assert path not in table.paths()
    assert table.state() == {"a": 0, "c": 2}


def test_equality_deletes_are_named(table: ChangedTable, monkeypatch: pytest.MonkeyPatch) -> None:
    table.ingest(row("a"))

    def planned(scan: DataScan) -> None:
        raise ValueError("PyIceberg does not yet support equality deletes")

    with monkeypatch.context() as patch:
        patch.setattr(DataScan, "plan_files", planned)
        with pytest.raises(ConfigurationError, match=r"files of db\.state .* equality deletes"):
            table.ingest(row("a", 2))
    assert table.state() == {"a": 0}


def test_keys_beyond_the_limit_end_the_run(table: ChangedTable) -> None:
    table.ingest(row("a"))
    table.key_bytes_max = 1_000
    with pytest.raises(BatchKeysError, match="more than 1,000 bytes"):
        table.ingest(row("b", key=b"k" * 1_000))
    assert table.state() == {"a": 0}


def test_columns_and_partitions_that_change_during_a_merge(table: ChangedTable) -> None:
    """Files that were written for the old partitions are not committed."""
    table.ingest(row("a", 1), row("b", 1))

    def repartition() -> None:
        with table.load().update_spec() as change:
            change.add_identity("id")

    actions = [lambda: table.load().delete("id = 'b'"), repartition]
    table.planned = lambda: [actions.pop()() for _ in actions[:]] and None
    table.ingest(row("a", 2), row("c", 2))
    assert table.state() == {"a": 2, "c": 2}
    specs = {task.file.spec_id for task in table.load().scan().plan_files()}
    assert specs == {table.load().metadata.default_spec_id}


def test_no_rule_has_null_for_bad_values() -> None:
    with pytest.raises(ConfigurationError, match="--bad-records null would replace"):
        type(shape_of(BY_ID))(shape_of(BY_ID).fields, bad_records="null", changes=BY_ID)


@pytest.mark.parametrize(
    ("key", "told"),
    [(("missing",), "not a field of the schema"), (("id", "id"), "a field twice")],
)
def test_keys_that_are_refused(key: tuple[str, ...], told: str) -> None:
    with pytest.raises(ConfigurationError, match=told):
        shape_of(ChangeRule(mode="upsert", key=key))


@pytest.mark.parametrize("kind", [pa.float64(), pa.list_(pa.string())])
def test_types_that_are_no_keys(kind: pa.DataType) -> None:
    rule = ChangeRule(mode="upsert", key=("x",))
    with pytest.raises(ConfigurationError, match="cannot be a key"):
        rule.check(pa.schema([("x", kind)]))
