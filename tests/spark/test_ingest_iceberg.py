"""An Iceberg table that others maintain while it is ingested into."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bucketlog.log_format.errors import ConfigurationError
from tests.spark.conftest import Stored
from tests.spark.ingests import Lake


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


def test_a_rollback_takes_offsets_back_with_rows(lake: Lake) -> None:
    call(lake, "rollback_to_snapshot", f"snapshot_id => {snapshots(lake)[1]}")
    assert lake.rows().total() == 10
    report = lake.ingest()
    assert (report.last_batch, report.records) == (3, 10)
    assert lake.rows() == lake.produced


def test_where_snapshots_have_expired_the_rows_tell(
    lake: Lake, caplog: pytest.LogCaptureFixture
) -> None:
    call(lake, "rewrite_data_files", "options => map('rewrite-all', 'true')")
    call(lake, "expire_snapshots", "older_than => TIMESTAMP '2999-01-01'", "retain_last => 1")
    assert len(snapshots(lake)) == 1
    lake.produce("orders", 1, 3)
    report = lake.ingest()
    assert (report.went_on_from, report.records, report.last_batch) == ("rows", 3, 5)
    assert "no snapshot is left" in caplog.text
    assert lake.rows() == lake.produced
    assert lake.ingest().went_on_from == "commit"


def test_a_table_that_tells_nothing_is_refused(lake: Lake) -> None:
    lake.spark.sql(f"DELETE FROM {lake.name}")
    call(lake, "expire_snapshots", "older_than => TIMESTAMP '2999-01-01'", "retain_last => 1")
    with pytest.raises(ConfigurationError, match="neither a row nor"):
        lake.ingest()


def test_a_log_that_lost_its_end_is_refused(lake: Lake) -> None:
    """As a bucket that was restored from an older copy."""
    sorted((lake.stored.folder / "0" / "log").rglob("*"))[-1].unlink()
    with pytest.raises(ConfigurationError, match=r"orders-1 up to offset 10, the log ends at 0"):
        lake.ingest()
