"""The fast lane: tasks write Parquet by themselves, and the files hold what the log holds."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bucketlog.errors import ConfigurationError
from bucketlog.wire.batch import Codec
from spark_jobs.parquet_lane import write_parquet
from spark_jobs.parquet_target import ReplayedPartition
from spark_jobs.parquet_writing import ParquetSettings
from tests.spark.conftest import Stored
from tests.spark.test_source import as_records
from tests.written_log import some_records


@pytest.fixture
def orders(stored: Stored) -> Stored:
    stored.log.create_topic("orders", 2)
    stored.log.create_topic("refunds", 1)
    for number in range(4):
        for topic, partition, count in (("orders", 0, 25), ("orders", 1, 5), ("refunds", 0, 3)):
            written = stored.log.append(
                topic,
                partition,
                some_records(count, tag=f"{topic}{number}", headers=True),
                codec=Codec.ZSTD if number % 2 else Codec.NONE,
            )
            stored.records.setdefault((topic, partition), []).extend(written)
        stored.log.flush()
    return stored


@pytest.mark.parametrize("partition_by", [("topic", "partition"), ("day",), ()])
def test_spark_reads_back_every_record(
    spark: SparkSession, orders: Stored, tmp_path: Path, partition_by: tuple[str, ...]
) -> None:
    target = tmp_path / "lake"
    options = {"path": orders.url, "subscribe": "orders,refunds", "includeHeaders": "true"}
    report = write_parquet(
        spark,
        {**options, "minPartitions": "3"},
        str(target),
        settings=ParquetSettings(partition_by=partition_by),
    )
    assert report.records == 4 * (25 + 5 + 3)
    assert report.partitions == (
        ReplayedPartition("orders", 0, 100, 0, 99),
        ReplayedPartition("orders", 1, 20, 0, 19),
        ReplayedPartition("refunds", 0, 12, 0, 11),
    )
    assert as_records(spark.read.parquet(str(target)).collect()) == orders.records
    assert (target / "_SUCCESS").is_file()
    assert report.files == len(list(target.rglob("*.parquet"))) >= 3
    assert {path.name for path in target.iterdir() if path.name.startswith(".")} == set()


def test_a_target_that_holds_files_is_replaced_only_when_asked(
    spark: SparkSession, orders: Stored, tmp_path: Path
) -> None:
    target = tmp_path / "lake"
    options = {"path": orders.url, "subscribe": "orders"}
    write_parquet(spark, options, str(target))
    with pytest.raises(ConfigurationError, match="holds files already"):
        write_parquet(spark, options, str(target))
    orders.log.append("orders", 1, some_records(7))
    orders.log.flush()
    assert write_parquet(spark, options, str(target), overwrite=True).records == 127
    assert spark.read.parquet(str(target)).count() == 127
