"""Tables with many snapshots: commits do not copy them, and their number is limited."""

import copy
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pytest
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot

from bucketlog.log_reader.tables.iceberg_files import TableFiles
from bucketlog.log_reader.tables.iceberg_table import once_only
from bucketlog.log_reader.tables.maintenance import snapshots
from bucketlog.log_reader.tables.maintenance.snapshots import SnapshotRule, expired_snapshots
from bucketlog.log_reader.tables.maintenance.table_maintenance import MaintenanceRules
from tests.rigs.maintained_table import BATCHES, MaintainedTable

LATER = datetime(9000, 1, 1, tzinfo=UTC)


@pytest.fixture
def table(tmp_path: Path) -> MaintainedTable:
    return MaintainedTable(tmp_path)


def ids(metadata: TableMetadata) -> list[int]:
    return [each.snapshot_id for each in metadata.snapshots]


def test_a_commit_copies_only_the_newest_snapshot_until_the_catalog_has_it(
    table: MaintainedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied: list[int] = []
    deep_copy = Snapshot.__deepcopy__

    def counted(snapshot: Snapshot, memo: dict[int, object] | None = None) -> Snapshot:
        copied.append(snapshot.snapshot_id)
        return deep_copy(snapshot, memo)

    before = table.load().metadata
    monkeypatch.setattr(Snapshot, "__deepcopy__", counted)
    copy.deepcopy(before.snapshots[0])
    assert copied == ids(before)[:1], "the counter counts"
    copied.clear()
    table.ingest(b'{"id":7}')
    after = table.load().metadata
    assert ids(after)[:-1] == ids(before), "the history is kept"
    assert len(after.snapshot_log) == len(before.snapshot_log) + 1
    for old in ids(before)[:-1]:
        assert copied.count(old) <= 1, "by the catalog"
    assert len(table.rows()) == 2 * BATCHES + 1


def test_heads_of_branches_and_tags_are_known_to_a_commit(table: MaintainedTable) -> None:
    first, *_, last = ids(table.load().metadata)
    table.load().manage_snapshots().create_tag(first, "audit").commit()
    assert ids(once_only(table.load()).metadata) == [first, last]


def test_tasks_get_no_history(table: MaintainedTable) -> None:
    before = len(TableFiles.of(table.load()).metadata)
    for _ in range(5):
        table.ingest(b'{"id":7}')
    assert len(TableFiles.of(table.load()).metadata) - before < 10


def test_more_snapshots_than_the_limit_expire_however_young_they_are(
    table: MaintainedTable,
) -> None:
    rows = table.rows()
    rules = MaintenanceRules(snapshot_age=timedelta(days=999), snapshots_max=4, snapshots_min=2)
    newest = ids(table.load().metadata)[-4:]
    assert table.maintain(rules=rules, dry_run=True)[0].snapshots == BATCHES - 4
    assert table.maintain(rules=rules)[0].snapshots == BATCHES - 4
    assert ids(table.load().metadata) == newest
    assert table.rows() == rows


def test_the_least_number_and_tags_stay_below_the_limit(table: MaintainedTable) -> None:
    first = ids(table.load().metadata)[0]
    table.load().manage_snapshots().create_tag(first, "audit").commit()
    rule = SnapshotRule(LATER, kept_min=3, kept_max=1)
    expired = expired_snapshots(table.load().metadata, rule)
    assert expired == ids(table.load().metadata)[1 : BATCHES - 3]


def test_many_snapshots_expire_by_several_commits(
    table: MaintainedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "TOGETHER_MAX", 2)
    sizes: list[int] = []
    commit = snapshots._commit

    def counted(of: object, found: list[int]) -> None:
        sizes.append(len(found))
        commit(of, found)  # type: ignore[arg-type] # a table

    monkeypatch.setattr(snapshots, "_commit", counted)
    rule = SnapshotRule(LATER, kept_min=1, kept_max=1_000)
    rows = table.rows()
    assert snapshots.expire(table.load, rule, random=Random(1), sleep=lambda _: None) == 5
    assert sizes == [2, 2, 1]
    assert table.rows() == rows
