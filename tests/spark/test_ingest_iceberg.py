"""An Iceberg table that others maintain while it is ingested into."""

import os
from collections import Counter
from pathlib import Path
from typing import Any, NoReturn

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyspark.sql import SparkSession

from bucketlog.log_format.errors import BucketError, ConfigurationError
from bucketlog.log_reader.tables.iceberg_table import PROPERTY
from tests.models.json_cases import DOCUMENTS, Refused
from tests.spark.conftest import Stored
from tests.spark.ingests import Lake

pytestmark = pytest.mark.long


@pytest.fixture
def lake(spark: SparkSession, spark_jars: list[Path], stored: Stored, tmp_path: Path) -> Lake:
    stored.log.create_topic("orders", 2)
    lake = Lake.of(spark, stored, "iceberg", tmp_path)
    lake.produce("orders", 0, 10)
    lake.produce("orders", 1, 10)
    assert lake.ingest(max_batch_offsets=5).batches == 4
    return lake


def call(lake: Lake, procedure: str, *arguments: str) -> None:
    catalog, _, table = lake.name.partition(".")
    given = ", ".join([f"table => '{table}'", *arguments])
    lake.spark.sql(f"CALL {catalog}.system.{procedure}({given})").collect()


def snapshots(lake: Lake) -> list[int]:
    lake.spark.catalog.refreshTable(lake.name)
    rows = lake.spark.sql(f"SELECT snapshot_id FROM {lake.name}.snapshots ORDER BY committed_at")
    return [row[0] for row in rows.collect()]


def test_maintenance_between_runs(lake: Lake) -> None:
    call(lake, "rewrite_data_files", "options => map('rewrite-all', 'true')")
    lake.produce("orders", 1, 3)
    report = lake.ingest()
    assert (report.went_on_from, report.records) == ("commit", 3)
    assert lake.rows() == lake.produced


def test_maintenance_while_a_batch_is_written(lake: Lake) -> None:
    target = lake.target()
    write = target.write

    def after_maintenance(*arguments: object) -> object:
        call(lake, "rewrite_data_files", "options => map('rewrite-all', 'true')")
        return write(*arguments)  # type: ignore[arg-type] # as it was called

    target.write = after_maintenance  # type: ignore[method-assign,assignment] # at this moment
    lake.produce("orders", 1, 3)
    assert lake.ingest(target).records == 3
    assert lake.rows() == lake.produced


def test_files_of_killed_tasks_are_removed_by_maintenance(lake: Lake, tmp_path: Path) -> None:
    """And no others: the paths in the table's metadata are those that a listing gives."""
    put_bad(lake, 1)
    lake.ingest(bad_records="dead-letter")
    rows, dead = lake.rows(), letters(lake)
    files = [path for path in (tmp_path / "warehouse").rglob("*") if path.is_file()]
    for path in files:
        os.utime(path, (0, 0))  # the procedure spares new files
    left = [path.with_name(f"left-{path.name}") for path in files if path.suffix == ".parquet"]
    for path in left:
        path.write_bytes(b"a task was killed")
        os.utime(path, (0, 0))
    catalog, _, table = lake.name.partition(".")
    for name in (table, f"{table}_dead_letters"):
        lake.spark.sql(f"CALL {catalog}.system.remove_orphan_files(table => '{name}')").collect()
    assert left
    assert not [path for path in left if path.exists()]
    assert [path for path in files if path.suffix == ".parquet" and not path.exists()] == []
    assert (lake.rows(), letters(lake)) == (rows, dead)


def test_a_rollback_takes_offsets_back_with_rows(lake: Lake) -> None:
    call(lake, "rollback_to_snapshot", f"snapshot_id => {snapshots(lake)[1]}")
    assert lake.rows().total() == 10
    report = lake.ingest()
    assert (report.last_batch, report.records) == (3, 10)
    assert lake.rows() == lake.produced


def expire(lake: Lake) -> None:
    call(lake, "expire_snapshots", "older_than => TIMESTAMP '2999-01-01'", "retain_last => 1")
    lake.spark.catalog.refreshTable(lake.name)
    assert len(snapshots(lake)) == 1


def deleted(lake: Lake, condition: str) -> None:
    lake.spark.sql(f"DELETE FROM {lake.name} WHERE {condition}")
    for row in [row for row in lake.produced if condition == "true" or row[2] >= 7]:
        del lake.produced[row]


@pytest.mark.parametrize("condition", ["_log_offset >= 7", "true"])
def test_deleted_rows_stay_deleted(lake: Lake, condition: str) -> None:
    """The highest offsets are deleted, or all rows, and every older snapshot is removed."""
    deleted(lake, condition)
    expire(lake)
    assert lake.ingest().batches == 0
    assert lake.rows() == lake.produced
    lake.produce("orders", 1, 3)
    call(lake, "rewrite_data_files", "options => map('rewrite-all', 'true')")
    expire(lake)
    report = lake.ingest()
    assert (report.went_on_from, report.records, report.last_batch) == ("commit", 3, 5)
    assert lake.rows() == lake.produced


def test_readers_follow_the_table(lake: Lake, tmp_path: Path) -> None:
    """A streaming read and an incremental read give each record once."""
    first = snapshots(lake)[0]
    lake.produce("orders", 0, 7)
    lake.ingest(max_batch_offsets=3)
    stream = (
        lake.spark.readStream.format("iceberg")
        .load(lake.name)
        .writeStream.format("parquet")
        .option("checkpointLocation", f"{tmp_path}/checkpoint")
        .trigger(availableNow=True)
        .start(f"{tmp_path}/copy")
    )
    stream.awaitTermination()
    columns = ["_log_topic", "_log_partition", "_log_offset", "id"]
    copied = lake.spark.read.parquet(f"{tmp_path}/copy").select(*columns).collect()
    assert Counter(tuple(row) for row in copied) == lake.produced
    later = (
        lake.spark.read.format("iceberg").option("start-snapshot-id", first).load(lake.name).count()
    )
    assert later == lake.produced.total() - 5
    kinds = lake.spark.sql(f"SELECT DISTINCT operation FROM {lake.name}.snapshots").collect()
    assert [row[0] for row in kinds] == ["append"]


def test_a_table_that_tells_no_offsets_is_refused(lake: Lake) -> None:
    lake.spark.sql(f"DELETE FROM {lake.name} WHERE _log_offset = 0")
    expire(lake)
    lake.spark.sql(f"ALTER TABLE {lake.name} UNSET TBLPROPERTIES ('{PROPERTY}')")
    with pytest.raises(ConfigurationError, match="tells the offsets"):
        lake.ingest()


@pytest.mark.parametrize("changed", [False, True])
def test_a_rollback_whose_offsets_have_expired_is_refused(lake: Lake, changed: bool) -> None:
    """The current snapshot is older than the last batch, and no ancestor has offsets."""
    lake.spark.sql(f"DELETE FROM {lake.name} WHERE _log_offset = 0")
    lake.produce("orders", 1, 3)
    lake.ingest()
    call(lake, "rollback_to_snapshot", f"snapshot_id => {snapshots(lake)[-2]}")
    kept = snapshots(lake)[-2]
    if changed:  # this snapshot's parent stays
        lake.spark.sql(f"DELETE FROM {lake.name} WHERE _log_offset = 1")
    removed = [each for each in snapshots(lake) if each not in (kept, current(lake))]
    call(lake, "expire_snapshots", f"snapshot_ids => array({', '.join(map(str, removed))})")
    with pytest.raises(ConfigurationError, match="rolled back to before batch 5"):
        lake.ingest()


def current(lake: Lake) -> int:
    rows = lake.spark.sql(f"SELECT snapshot_id FROM {lake.name}.refs WHERE name = 'main'")
    found: int = rows.collect()[0][0]
    return found


def test_a_commit_whose_answer_is_lost_counts(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    commit = SqlCatalog.commit_table

    def unanswered(*arguments: Any) -> NoReturn:
        commit(*arguments)
        raise TimeoutError("no answer")

    lake.produce("orders", 1, 3)
    monkeypatch.setattr(SqlCatalog, "commit_table", unanswered)
    report = lake.ingest()
    assert (report.records, report.last_batch) == (3, 5)
    assert lake.rows() == lake.produced


def test_a_commit_that_fails_leaves_the_table(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any) -> NoReturn:
        raise TimeoutError("not reached")

    lake.produce("orders", 1, 3)
    with monkeypatch.context() as patch:
        patch.setattr(SqlCatalog, "commit_table", refused)
        with pytest.raises(BucketError, match=r"batch 5 of .* was not committed: not reached"):
            lake.ingest()
    assert lake.rows().total() == 20
    assert lake.ingest().records == 3
    assert lake.rows() == lake.produced


def letters(lake: Lake) -> Counter[tuple[int, int, bytes]]:
    table = f"{lake.name}_dead_letters"
    lake.spark.catalog.refreshTable(table)
    rows = lake.spark.sql(f"SELECT _log_partition, _log_offset, value, reason FROM {table}")
    found = rows.collect()
    assert all(row["reason"] for row in found)
    return Counter((row[0], row[1], bytes(row[2])) for row in found)


def put_bad(lake: Lake, partition: int) -> Counter[tuple[int, int, bytes]]:
    """Values of many kinds that do not fit, between others that fit."""
    bad = [value for value, expected in DOCUMENTS if isinstance(expected, Refused)]
    first = lake.stored.log.next_offset[lake.stored.log.partition("orders", partition)]
    lake.put("orders", partition, *bad)
    lake.produce("orders", partition, 2)
    return Counter((partition, first + at, value) for at, value in enumerate(bad))


def test_dead_letters_are_in_their_own_table(lake: Lake) -> None:
    planted = put_bad(lake, 1)
    report = lake.ingest(bad_records="dead-letter")
    assert (report.records, report.dead_letters) == (2, planted.total())
    assert lake.rows() == lake.produced
    assert letters(lake) == planted
    assert lake.ingest(bad_records="dead-letter").batches == 0
    planted += put_bad(lake, 0)
    assert lake.ingest(bad_records="dead-letter", max_batch_offsets=10).batches > 1
    assert letters(lake) == planted
    assert lake.rows() == lake.produced


def test_a_kill_before_dead_letters_are_appended(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dying(*_: Any) -> NoReturn:
        raise InterruptedError

    planted = put_bad(lake, 1)
    target = lake.target()
    with monkeypatch.context() as patch:
        prepare = target.prepare

        def then_die(*arguments: Any) -> Any:
            found = prepare(*arguments)
            patch.setattr("bucketlog.log_reader.tables.table_target.publish_dead_letters", dying)
            return found

        target.prepare = then_die  # type: ignore[method-assign,assignment] # from here on
        with pytest.raises(InterruptedError):
            lake.ingest(target, bad_records="dead-letter")
    assert lake.rows() == lake.produced
    assert not letters(lake)
    assert lake.ingest().batches == 0  # whatever the rule is now
    assert letters(lake) == planted


def test_columns_evolve(lake: Lake) -> None:
    """By the schema of the ingest, and by others, whose columns stay as they are."""
    lake.spark.sql(f"ALTER TABLE {lake.name} ADD COLUMN theirs string")
    lake.put("orders", 0, b'{"id": "new", "more": {"small": 5}, "amount": 1}')
    lake.ingest(schema="more struct<small: tinyint>, id string, amount double")
    lake.put("orders", 0, b'{"id": "newer", "more": {"small": 3000000000, "name": "x"}}')
    lake.ingest(schema="more struct<name: string, small: bigint>, id string")
    found = lake.table().where("_log_offset >= 10").orderBy("_log_offset").collect()
    assert [(row["id"], row["amount"], row["theirs"]) for row in found] == [
        ("new", 1.0, None),
        ("newer", None, None),
    ]
    assert [row["more"].asDict() for row in found] == [
        {"small": 5, "name": None},
        {"small": 3_000_000_000, "name": "x"},
    ]
    assert lake.table().where("id IS NOT NULL").count() == lake.produced.total() + 2


def test_a_log_that_lost_its_end_is_refused(lake: Lake) -> None:
    """As a bucket that was restored from an older copy."""
    sorted((lake.stored.folder / "0" / "log").rglob("*"))[-1].unlink()
    with pytest.raises(ConfigurationError, match=r"orders-1 up to offset 10, the log ends at 0"):
        lake.ingest()
