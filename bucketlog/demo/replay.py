"""The demo's last step: Spark reads the flights from the bucket, never through the broker."""

from pathlib import Path

from bucketlog.demo.tally import CHECKSUM_DIGITS
from bucketlog.log_format.extras import check_installed

QUIET = Path(__file__).with_name("log4j2.properties")
"""Spark's logging is set up by it."""


def replay_flights(bucket_url: str, topic: str, target: Path) -> dict[str, tuple[int, int]]:
    """Replay `topic` into Parquet under `target`; count and checksum by key, read from there.

    Raises `ConfigurationError` where pyspark or Java is missing.
    """
    check_installed("spark", extra="demo")
    from pyspark.sql import functions

    from bucketlog.spark_jobs.replay import replay_to_parquet
    from bucketlog.spark_jobs.session import local_session

    quiet = f"-Dlog4j2.configurationFile={QUIET.as_uri()}"
    spark = local_session(name="bucketlog demo", config={"spark.driver.extraJavaOptions": quiet})
    try:
        replay_to_parquet(spark, bucket_url, [topic], str(target))
        digest = functions.substring(functions.md5("value"), 1, CHECKSUM_DIGITS)
        rows = (
            spark.read.parquet(str(target))
            .groupBy(functions.col("key").cast("string").alias("carrier"))
            .agg(
                functions.count("*").alias("records"),
                functions.sum(functions.conv(digest, 16, 10).cast("decimal(20,0)")).alias("sum"),
            )
            .collect()
        )
    finally:
        spark.stop()
    return {row["carrier"]: (row["records"], int(row["sum"])) for row in rows}
