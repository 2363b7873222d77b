"""The source over S3: tasks open the bucket themselves, with the options they were given."""

import importlib.metadata
from collections.abc import Iterator

import boto3
import pytest
from pyspark.sql import SparkSession

from bucketlog.tiered_storage.backends.location import S3Options, open_sync_bucket
from tests.rigs.written_log import WrittenLog, some_records
from tests.servers.components import Components
from tests.servers.s3_stores import moto_server

pytestmark = pytest.mark.long

URL = "s3://spark-source/prod"


@pytest.fixture(scope="module")
def endpoint(components: Components) -> Iterator[str]:
    with moto_server() as address:
        components.took_part("moto server", importlib.metadata.version("moto"))
        client = boto3.session.Session().client(
            "s3",
            endpoint_url=address,
            region_name="us-east-1",
            aws_access_key_id="testing",
            aws_secret_access_key="testing",
        )
        client.create_bucket(Bucket="spark-source")
        client.close()
        yield address


def test_reading_from_s3(spark: SparkSession, endpoint: str) -> None:
    bucket = open_sync_bucket(URL, s3=S3Options(endpoint_url=endpoint, region="us-east-1"))
    log = WrittenLog(bucket)
    log.create_topic("orders", 2)
    for _ in range(3):
        for partition in (0, 1):
            log.append("orders", partition, some_records(50))
        log.flush()
    bucket.close()
    frame = (
        spark.read.format("bucketlog")
        .option("subscribe", "orders")
        .option("s3.endpoint_url", endpoint)
        .option("s3.region", "us-east-1")
        .option("minPartitions", 3)
        .load(URL)
    )
    rows = frame.select("partition", "offset").collect()
    assert sorted((row["partition"], row["offset"]) for row in rows) == [
        (partition, offset) for partition in (0, 1) for offset in range(150)
    ]
