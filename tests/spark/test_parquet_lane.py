"""The fast lane: tasks write Parquet by themselves, and the files hold what the log holds."""

import importlib.metadata
from contextlib import closing
from pathlib import Path

import boto3
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from bucketlog.log_format.batch import Codec
from bucketlog.log_format.errors import ConfigurationError
from bucketlog.log_reader.parquet_target import ReplayedPartition, parse_target
from bucketlog.log_reader.parquet_writing import ParquetSettings
from bucketlog.spark_jobs.parquet_lane import write_parquet
from bucketlog.tiered_storage.backends.location import S3Options
from tests.rigs.written_log import START_MS, some_records
from tests.servers.components import Components
from tests.servers.s3_stores import moto_server
from tests.spark.conftest import Stored
from tests.spark.test_source import as_records

pytestmark = pytest.mark.long


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


def test_a_lake_on_s3(
    spark: SparkSession, orders: Stored, components: Components, tmp_path: Path
) -> None:
    with moto_server() as endpoint:
        components.took_part("moto server", importlib.metadata.version("moto"))
        s3 = S3Options(endpoint_url=endpoint, region="us-east-1")
        client = boto3.session.Session().client(
            "s3", endpoint_url=endpoint, region_name="us-east-1"
        )
        client.create_bucket(Bucket="lake")
        client.close()
        report = write_parquet(
            spark,
            {"path": orders.url, "subscribe": "orders", "minPartitions": "3"},
            "s3a://lake/orders",
            target_s3=s3,
        )
        assert report.records == 120
        target = parse_target("s3://lake/orders", source=orders.url, s3=s3)
        with closing(target.open()) as bucket:
            keys = sorted(info.key for info in bucket.list(""))
            tables = [
                pq.ParquetFile(pa.BufferReader(bucket.get(key).data)).read() for key in keys[1:]
            ]
        assert keys[0] == "_SUCCESS"
        assert len(keys) == report.files + 1
        assert sum(table.num_rows for table in tables) == 120
        with pytest.raises(ConfigurationError, match="holds files already"):
            write_parquet(
                spark,
                {"path": orders.url, "subscribe": "orders"},
                "s3://lake/orders",
                target_s3=s3,
            )


def test_damage_in_the_log_fails_the_job_and_leaves_no_file(
    spark: SparkSession, orders: Stored, tmp_path: Path
) -> None:
    path = sorted((orders.folder / "0" / "log").rglob("*"))[-1]
    data = bytearray(path.read_bytes())
    data[100] ^= 1
    path.chmod(0o644)
    path.write_bytes(data)
    target = tmp_path / "lake"
    options = {"path": orders.url, "subscribe": "orders", "minPartitions": "3"}
    with pytest.raises(PySparkException, match="topic 'orders' partition 0 offsets 75 to 99"):
        write_parquet(spark, options, str(target))
    assert [found for found in target.rglob("*") if found.is_file()] == []


def test_columns_and_points_in_time(spark: SparkSession, orders: Stored, tmp_path: Path) -> None:
    target = str(tmp_path / "lake")
    options = {
        "path": orders.url,
        "subscribe": "orders",
        "startingTimestamp": str(START_MS + 20_000),
    }
    options["startingOffsetsByTimestampStrategy"] = "latest"
    report = write_parquet(spark, options, target, columns=["offset", "timestamp"])
    frame = spark.read.parquet(target)
    assert frame.columns == ["offset", "timestamp", "topic", "partition"]
    assert report.partitions == (
        ReplayedPartition("orders", 0, 80, 20, 99),
        ReplayedPartition("orders", 1, 0, None, None),  # no record is as late
    )
    assert frame.count() == 80
