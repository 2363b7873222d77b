"""From the log to a lake on the same store: the log by our own reader, Parquet by s3a."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.functions import col

from bucketlog.tiered_storage.backends.location import S3Options, open_sync_bucket
from localstack.servers import REGION, RunningStore, StoreName
from localstack.spark_jars import s3a_settings
from tests.rigs.written_log import WrittenLog, some_records

pytestmark = pytest.mark.long

RECORDS = 2 * 6 * 40


@pytest.mark.usefixtures("credentials")
@pytest.mark.parametrize("name", [StoreName.MINIO, StoreName.LOCALSTACK])
def test_the_log_as_parquet_beside_it(
    spark: SparkSession,
    spark_jars: list[Path],
    s3_store: Callable[[StoreName], RunningStore],
    name: StoreName,
) -> None:
    store = s3_store(name)
    place = f"lake-{name}"
    store.make_bucket(place)
    for key, value in s3a_settings(store).items():
        spark.conf.set(key.removeprefix("spark.hadoop."), value)
    options = S3Options(endpoint_url=store.endpoint_url, region=REGION)
    bucket = open_sync_bucket(f"s3://{place}/log", s3=options)
    log = WrittenLog(bucket)
    log.create_topic("orders", 2)
    for number in range(6):
        for partition in (0, 1):
            log.append("orders", partition, some_records(40, tag=str(number), headers=True))
        log.flush()
    bucket.close()
    frame = (
        spark.read.format("bucketlog")
        .option("subscribe", "orders")
        .option("includeHeaders", "true")
        .option("minPartitions", 3)
        .option("s3.endpoint_url", store.endpoint_url)
        .option("s3.region", REGION)
        .load(f"s3://{place}/log")
    )
    target = f"s3a://{place}/parquet"
    frame.write.partitionBy("topic", "partition").parquet(target)
    written = spark.read.parquet(target).select([col(name) for name in frame.columns])
    assert written.count() == RECORDS
    assert frame.exceptAll(written).count() == 0
    one = spark.read.parquet(f"{target}/topic=orders/partition=1")
    assert one.selectExpr("max(offset)").collect()[0][0] == RECORDS // 2 - 1
