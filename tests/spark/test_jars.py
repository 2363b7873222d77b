"""The jars that `scripts/install.sh spark-jars` gives Spark: s3a, Iceberg, the Kafka source."""

from pathlib import Path

import pyspark
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from localstack.servers import RunningStore
from localstack.spark_jars import iceberg_settings, s3a_settings

pytestmark = pytest.mark.long

LAKE = "spark-jars"


@pytest.fixture
def lake(spark: SparkSession, spark_jars: list[Path], minio: RunningStore) -> str:
    minio.make_bucket(LAKE)
    for name, value in s3a_settings(minio).items():
        spark.conf.set(name.removeprefix("spark.hadoop."), value)
    return f"s3a://{LAKE}"


def test_parquet_is_written_and_committed_over_s3a(
    spark: SparkSession, lake: str, minio: RunningStore
) -> None:
    rows = spark.range(1000, numPartitions=4).selectExpr("id", "id % 3 as part")
    for _ in range(2):  # the second replaces the first
        rows.write.mode("overwrite").partitionBy("part").parquet(f"{lake}/parquet")
    assert spark.read.parquet(f"{lake}/parquet").where("part = 1").count() == 333
    with minio.client() as client:
        found = client.list_objects_v2(Bucket=LAKE, Prefix="parquet/")["Contents"]
    names = [item["Key"].removeprefix("parquet/") for item in found]
    assert "_SUCCESS" in names
    assert not [name for name in names if "_temporary" in name]


def test_an_iceberg_table_over_s3a(spark: SparkSession, lake: str, tmp_path: Path) -> None:
    settings = iceberg_settings("jars", tmp_path / "catalog.db", f"{lake}/warehouse")
    for name, value in settings.items():
        spark.conf.set(name, value)
    spark.sql("create table jars.db.t (id bigint) using iceberg")
    for _ in range(2):
        spark.range(100).writeTo("jars.db.t").append()
    assert spark.table("jars.db.t").count() == 200
    operations = spark.table("jars.db.t.snapshots").select("operation").collect()
    assert [row[0] for row in operations] == ["append", "append"]


def test_the_kafka_source_is_there(spark: SparkSession, spark_jars: list[Path]) -> None:
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", "127.0.0.1:1")
    with pytest.raises(PySparkException, match="subscribe"):  # its own check of options
        reader.load()


def test_nothing_stands_in_sparks_own_jars_already(spark_jars: list[Path]) -> None:
    own = {_artifact(jar) for jar in (Path(pyspark.__file__).parent / "jars").glob("*.jar")}
    assert "hadoop-client-api" in own
    assert not {_artifact(jar) for jar in spark_jars} & own
    assert sum(jar.stat().st_size for jar in spark_jars) < 100 * 1024 * 1024


def _artifact(jar: Path) -> str:
    return jar.stem.rpartition("-")[0]
