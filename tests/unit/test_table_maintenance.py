"""Maintenance of tables keeps their rows: beside ingests and deletes, and after kills."""

import json
import os
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import DataScan
from pyiceberg.table.snapshots import Operation
from pyiceberg.table.update import SetLocationUpdate

from bucketlog.log_format.errors import BucketError, ConfigurationError, CorruptObjectError
from bucketlog.log_reader.tables import reprocessing
from bucketlog.log_reader.tables.iceberg_files import TableFiles
from bucketlog.log_reader.tables.iceberg_table import PROPERTY
from bucketlog.log_reader.tables.maintenance import orphans, small_files, snapshots
from bucketlog.log_reader.tables.maintenance.small_files import RewriteRule
from bucketlog.log_reader.tables.maintenance.table_maintenance import (
    MaintenanceRules,
    TableMaintenance,
)
from bucketlog.log_reader.tables.table_target import TableName
from tests.rigs.batched_table import NAME
from tests.rigs.maintained_table import BATCHES, RULES, SNAPSHOTS, MaintainedTable


@pytest.fixture
def table(tmp_path: Path) -> MaintainedTable:
    return MaintainedTable(tmp_path)


def test_small_files_become_one_for_each_partition(table: MaintainedTable) -> None:
    rows, letters = table.rows(), table.letters()
    of_rows, of_letters = table.maintain()
    assert of_rows[:4] == ("lake.db.orders", BATCHES, 2, 0)
    assert of_letters[:4] == ("lake.db.orders_dead_letters", BATCHES, 1, 0)
    assert (table.rows(), table.letters()) == (rows, letters)
    assert table.data_files() == 2
    snapshots = table.load().metadata.snapshots
    counts = [table.load().scan(snapshot_id=each.snapshot_id).count() for each in snapshots]
    assert counts == [2 * BATCHES] * SNAPSHOTS, "files of snapshots that did not expire stay"


def test_replaced_files_are_deleted_with_their_last_snapshot(table: MaintainedTable) -> None:
    replaced = [task.file.file_path for task in table.load().scan().plan_files()]
    table.maintain()
    for _ in range(SNAPSHOTS):
        table.ingest(b'{"id":7}')
    table.maintain()
    assert not [path for path in replaced if Path(path.removeprefix("file://")).exists()]
    assert len(table.rows()) == 2 * BATCHES + SNAPSHOTS


def test_readers_that_follow_appends_skip_a_rewrite(table: MaintainedTable) -> None:
    table.rewrite()
    newest = table.load().current_snapshot()
    assert newest is not None
    assert newest.summary is not None
    assert newest.summary.operation is Operation.REPLACE


def test_an_ingest_continues_after_maintenance(table: MaintainedTable) -> None:
    table.maintain()
    table.ingest(b'{"id":7}', b"{")
    table.maintain()
    assert len(table.rows()) == 2 * BATCHES + 1
    assert len(table.letters()) == BATCHES + 1


def test_files_of_other_engines_are_rewritten_with_the_others(table: MaintainedTable) -> None:
    """Such a file has no schema of Arrow, so its texts are read with another type."""
    rows = table.load().scan(row_filter="_log_offset = 0").to_arrow()
    path = Path(table.load().location().removeprefix("file://")) / "data" / "foreign.parquet"
    number = rows.schema.get_field_index("_log_offset")
    moved = rows.set_column(number, "_log_offset", [[1_000]])
    pq.write_table(moved, path, store_schema=False)
    table.load().add_files([f"file://{path}"])
    expected = table.rows()
    assert table.rewrite() == (BATCHES + 1, 2, 0)
    assert table.rows() == expected


def test_a_second_run_finds_nothing(table: MaintainedTable) -> None:
    table.maintain()
    for report in table.maintain():
        assert (report.small_files, report.snapshots) == (0, 0)


def test_a_dry_run_changes_nothing(table: MaintainedTable) -> None:
    before = (table.files(), table.load().metadata)
    of_rows, of_letters = table.maintain(dry_run=True)
    assert (of_rows.small_files, of_letters.small_files) == (BATCHES, BATCHES)
    assert of_rows.snapshots == BATCHES - SNAPSHOTS
    assert (table.files(), table.load().metadata) == before


def while_writing(monkeypatch: pytest.MonkeyPatch, action: Callable[[], Any]) -> None:
    """Let `action` happen after the first group of files was written again."""
    write, actions = small_files._written, [action]

    def written(*arguments: Any) -> Any:
        found = write(*arguments)
        if actions:
            actions.pop()()
        return found

    monkeypatch.setattr(small_files, "_written", written)


def test_rows_that_others_delete_meanwhile_stay_deleted(
    table: MaintainedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = set(table.files())
    while_writing(monkeypatch, lambda: table.load().delete("id = 100"))
    counts = table.rewrite()
    assert counts == (3, 1, 3)
    assert 100 not in [row[2] for row in table.rows()]
    assert len(table.rows()) == 2 * BATCHES - 1
    written = [path for path in set(table.files()) - files if path.suffix == ".parquet"]
    assert len(written) == 2, "the file of the delete, and that of the other partition"


def test_a_commit_of_an_ingest_meanwhile_is_kept(
    table: MaintainedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    while_writing(monkeypatch, lambda: table.ingest(b'{"id":7}'))
    assert table.rewrite() == (BATCHES, 2, 0)
    assert len(table.rows()) == 2 * BATCHES + 1


def test_a_commit_whose_response_is_lost_keeps_its_files(
    table: MaintainedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = small_files._replace

    def replaced(*arguments: Any) -> None:
        commit(*arguments)
        raise CommitFailedException("the second try of a proxy came too late")

    monkeypatch.setattr(small_files, "_replace", replaced)
    rows = table.rows()
    assert table.rewrite() == (BATCHES, 2, 0)
    assert table.rows() == rows


def test_files_of_a_lost_response_stay_if_others_have_changed_some(
    table: MaintainedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One commit has two files; a delete replaces one of them. The other one is still live."""
    write, commit = small_files._written, small_files._replace
    monkeypatch.setattr(
        small_files, "_written", lambda of, group: write(of, group[:1]) + write(of, group[1:])
    )

    deleted: list[int] = []

    def replaced(of: Any, old: Any, new: Any) -> None:
        commit(of, old, new)
        deleted.append(pq.read_table(new[0].file_path)["id"][0].as_py())
        table.load().delete(f"id = {deleted[-1]}")
        raise CommitFailedException("the second try of a proxy came too late")

    monkeypatch.setattr(small_files, "_replace", replaced)
    rows = table.rows()
    assert table.rewrite() == (BATCHES, 4, 0)
    assert table.rows() == [row for row in rows if row[2] not in deleted]


def test_a_rewrite_is_left_out_if_the_partitions_change_meanwhile(
    table: MaintainedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    def repartition() -> None:
        with table.load().update_spec() as change:
            change.add_identity("id")

    rows = table.rows()
    while_writing(monkeypatch, repartition)
    assert table.rewrite().skipped == BATCHES // 2
    assert table.rows() == rows


def test_deletes_that_cannot_be_read_are_named(
    table: MaintainedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    def planned(scan: DataScan) -> None:
        raise ValueError("PyIceberg does not yet support equality deletes")

    monkeypatch.setattr(DataScan, "plan_files", planned)
    with pytest.raises(ConfigurationError, match=r"small files of db\.orders .* equality deletes"):
        table.maintain()


def expire_all(table: MaintainedTable) -> int:
    rule = snapshots.SnapshotRule(datetime.now(UTC), kept_min=1, kept_max=1_000)
    return snapshots.expire(table.load, rule, random=Random(1), sleep=lambda _: None)


def test_a_rollback_during_the_expiry_keeps_its_rows(
    table: MaintainedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    expire, first = snapshots._commit, table.load().metadata.snapshots[0].snapshot_id
    actions = [lambda: table.load().manage_snapshots().rollback_to_snapshot(first).commit()]

    def expired(*arguments: Any) -> None:
        if actions:
            actions.pop()()
        expire(*arguments)

    monkeypatch.setattr(snapshots, "_commit", expired)
    assert expire_all(table) == BATCHES - 1
    assert len(table.rows()) == 2


def test_two_expiries_at_once_end_well(
    table: MaintainedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    expire = snapshots._commit

    def expired(of: Any, ids: Any) -> None:
        monkeypatch.setattr(snapshots, "_commit", expire)
        expire(table.load(), ids[:2])
        expire(of, ids)

    monkeypatch.setattr(snapshots, "_commit", expired)
    assert expire_all(table) == BATCHES - 3
    assert len(table.load().metadata.snapshots) == 1


def old_file(table: MaintainedTable, name: str, *, days: int) -> Path:
    path = Path(table.load().location().removeprefix("file://")) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * 10)
    at = (datetime.now(UTC) - timedelta(days=days)).timestamp()
    os.utime(path, (at, at))
    return path


def test_only_old_files_of_no_snapshot_are_deleted(table: MaintainedTable) -> None:
    old = old_file(table, "data/day=1970-01-01/old #1%2F?.parquet", days=3)
    young = old_file(table, "data/day=1970-01-01/young.parquet", days=1)
    elsewhere = old_file(table, "other/old.parquet", days=3)
    rules = MaintenanceRules(RewriteRule(files_min=100), timedelta(days=9), timedelta(days=2))
    of_rows, _ = table.maintain(after=timedelta(0), rules=rules)
    assert of_rows == ("lake.db.orders", 0, 0, 0, 0, 1, 10)
    assert [path.exists() for path in (old, young, elsewhere)] == [False, True, True]
    assert len(table.rows()) == 2 * BATCHES


def test_files_that_a_property_names_stay(table: MaintainedTable) -> None:
    """Dead letters that are not in their table yet, and rows that are reprocessed."""
    letters = Path(table.load(NAME.letters).location().removeprefix("file://"))
    pending = letters / "data" / "pending.parquet"
    pending.write_bytes(b"x")
    moved = old_file(table, "data/moved.parquet", days=0)
    loaded = table.load()
    stored = json.loads(loaded.properties[PROPERTY])
    stored["dead_letters"]["files"].append(f"file://{pending}")
    done = reprocessing.ReprocessedRows(attempt="a", letters=NAME.letters, files=(str(moved),))
    with loaded.transaction() as change:
        change.set_properties(
            {PROPERTY: json.dumps(stored), reprocessing.PROPERTY: done.model_dump_json()}
        )
    table.maintain()
    assert pending.exists()
    assert moved.exists()


def test_a_property_that_cannot_be_read_ends_the_run(table: MaintainedTable) -> None:
    old = old_file(table, "data/old.parquet", days=3)
    with table.load().transaction() as change:
        change.set_properties({reprocessing.PROPERTY: '{"files": 7}'})
    with pytest.raises(CorruptObjectError, match="cannot be read"):
        table.maintain()
    assert old.exists()


def test_a_listing_without_the_tables_files_deletes_nothing(
    table: MaintainedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = old_file(table, "data/old.parquet", days=3)
    listed = orphans._listed
    monkeypatch.setattr(
        orphans,
        "_listed",
        lambda of: [each for each in listed(of) if not each.path.endswith("metadata.json")],
    )
    with pytest.raises(BucketError, match="lacks 1 files of the table"):
        table.maintain()
    assert old.exists()


def test_files_that_others_name_in_another_way_stay(table: MaintainedTable) -> None:
    """Java writes below a location without its last slash."""
    folder = table.load().location()
    with table.load().transaction() as change:
        change._apply((SetLocationUpdate(location=f"{folder}/"),))
    expected = table.rows()
    rules = MaintenanceRules(RewriteRule(files_min=100), timedelta(days=9), timedelta(days=2))
    assert table.maintain(rules=rules)[0].orphans == 0
    assert table.rows() == expected


def test_files_beside_the_folders_of_the_table_do_not_end_the_run(table: MaintainedTable) -> None:
    """Tables that an engine migrated have such files."""
    root = Path(table.load().location().removeprefix("file://"))
    path = root / "day=1970-01-01" / "migrated.parquet"
    path.parent.mkdir()
    pq.write_table(table.load().scan(row_filter="_log_offset = 0").to_arrow(), path)
    table.load().add_files([f"file://{path}"])
    table.maintain()
    assert path.exists()


def test_files_that_other_maintenance_has_deleted_are_no_error(table: MaintainedTable) -> None:
    gone = old_file(table, "data/gone.parquet", days=3)
    found = orphans.orphans(table.load, list, datetime.max.replace(tzinfo=UTC))
    gone.unlink()
    orphans.remove(table.load(), found)
    assert [file.name for file in found] == ["gone.parquet"]


def test_a_folder_of_a_renamed_table_is_refused(table: MaintainedTable) -> None:
    """The catalog gives its folder to a new table of the same name."""
    location = table.load().location()
    table.catalog.rename_table(NAME.table, "db.renamed")
    renamed = table.load("db.renamed")
    table.catalog.create_table(NAME.table, renamed.schema(), location=location)
    rules = replace(RULES, snapshot_age=timedelta.max)
    with pytest.raises(ConfigurationError, match=r"db\.renamed has files in the folder"):
        table.maintain(rules=rules)
    assert len(renamed.scan().to_arrow()) == 2 * BATCHES
    table.catalog.drop_table("db.renamed")
    assert table.maintain(rules=rules)[0].orphans


def test_tables_that_share_files_are_refused(table: MaintainedTable) -> None:
    with table.load().transaction() as change:
        change.set_properties({"gc.enabled": "false"})
    with pytest.raises(ConfigurationError, match=r"gc\.enabled"):
        table.maintain()


def test_a_table_of_dead_letters_alone_is_refused(table: MaintainedTable) -> None:
    """Only the table of the rows names dead letters that wait for their commit."""
    alone = TableMaintenance(
        TableName.parse(f"lake.{NAME.letters}"),
        lambda: table.catalog,
        Random(1),
        lambda: datetime.now(UTC),
    )
    with pytest.raises(ConfigurationError, match="is a table of dead letters"):
        alone.run(RULES)


def test_files_elsewhere_are_refused(table: MaintainedTable) -> None:
    with table.load().transaction() as change:
        change.set_properties({"write.data.path": "file:///elsewhere"})
    before = table.load().current_snapshot()
    with pytest.raises(ConfigurationError, match=r"write\.data\.path"):
        table.maintain()
    assert table.load().current_snapshot() == before


def test_large_files_and_few_files_are_left(table: MaintainedTable) -> None:
    tasks = list(table.load().scan().plan_files())
    assert small_files.small_groups(tasks, RewriteRule(small_bytes=1)) == []
    assert small_files.small_groups(tasks[:4], RewriteRule(files_min=5)) == []
    size = max(task.file.file_size_in_bytes for task in tasks)
    groups = small_files.small_groups(tasks, RewriteRule(group_bytes=size + 1, files_min=2))
    assert [len(group) for group in groups] == [2, 2]


def test_a_rewrite_that_would_not_help_is_left_out(
    table: MaintainedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows in memory are limited, so a group may become as many files as it had."""
    monkeypatch.setattr(small_files, "BUFFER_BYTES_MAX", 1)
    before = table.files()
    assert table.rewrite() == (0, 0, 0)
    assert table.files() == before
    assert TableFiles.of(table.load()).buffer_bytes_max > 1
