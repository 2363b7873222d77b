"""A Spark session with an Iceberg catalog in SQLite, for the proofs of the ingest.

The tables are in a folder, or on MinIO over s3a. Invariant: the session is stopped when the block
is left.
"""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from unittest import mock
from uuid import uuid4

from pyiceberg.catalog import Catalog
from pyspark.sql import SparkSession

from bucketlog.log_reader.tables.conversions import TimeRules
from bucketlog.log_reader.tables.ingest_loop import IngestReport
from bucketlog.log_reader.tables.ingested_log import IngestedLog
from bucketlog.log_reader.tables.rows import BadRecords
from bucketlog.spark_jobs.ingest.catalogs import session_catalog
from bucketlog.spark_jobs.ingest.iceberg import IcebergTarget
from bucketlog.spark_jobs.ingest.job import ingest
from bucketlog.spark_jobs.ingest.rows import parse_shape
from bucketlog.spark_jobs.session import local_session
from bucketlog.tiered_storage.backends.location import open_sync_bucket
from localstack.servers import RunningStore, StoreName, running
from localstack.spark_jars import iceberg_settings, installed_jars, jar_settings, s3a_settings
from tests.rigs.written_log import WrittenLog

CATALOG = "lake"
BUCKET = "lake"
TABLE = "db.records"
QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=256m"


@dataclass(frozen=True, slots=True)
class LakeSession:
    """A session and its catalog. `table` is Spark's name of the ingest's table. `folder` is for
    local files."""

    spark: SparkSession
    catalog: Catalog
    folder: Path
    table: str = f"{CATALOG}.{TABLE}"

    def ingest(
        self,
        url: str,
        topic: str,
        schema: str,
        *,
        times: TimeRules | None = None,
        bad_records: BadRecords = "dead-letter",
        max_batch_offsets: int = 10_000_000,
    ) -> IngestReport:
        """Run the ingest once, from the log at `url`."""
        target = IcebergTarget(self.spark, self.table, new_id=lambda: uuid4().hex)
        return ingest(
            self.spark,
            IngestedLog(url, [topic], {}),
            target,
            parse_shape(schema, None, times=times, bad_records=bad_records),
            max_batch_offsets=max_batch_offsets,
        )

    def sql(self, statement: str) -> None:
        """Run a statement of SQL, in which `{table}` is the name of the table."""
        self.spark.sql(statement.format(table=self.table)).collect()
        self.spark.catalog.refreshTable(self.table)


@contextmanager
def lake_session(folder: Path, store: RunningStore | None = None) -> Iterator[LakeSession]:
    """Start a session. `store` has the bucket `BUCKET`; without it, tables are in `folder`."""
    warehouse = f"s3a://{BUCKET}/warehouse" if store else f"file://{folder}/warehouse"
    config = {
        **jar_settings(installed_jars()),
        **(s3a_settings(store) if store else {}),
        **iceberg_settings(CATALOG, folder / "catalog.db", warehouse),
        "spark.driver.extraJavaOptions": QUICK_START,
        "spark.log.level": "ERROR",
    }
    spark = local_session(config=config)
    try:
        yield LakeSession(spark, session_catalog(spark, CATALOG), folder)
    finally:
        spark.stop()


@dataclass(frozen=True, slots=True)
class WrittenLake:
    """A lake, and a log made by hand beside it."""

    lake: LakeSession
    log: WrittenLog
    url: str


@contextmanager
def written_lake(folder: Path, *, minio: bool) -> Iterator[WrittenLake]:
    """Make a lake and a log, both on MinIO, or both in `folder`."""
    with ExitStack() as closing:
        store = None
        if minio:
            store = closing.enter_context(running(StoreName.MINIO, folder / "minio"))
            store.make_bucket(BUCKET)
            closing.enter_context(mock.patch.dict(os.environ, store.environment()))
        url = f"s3://{BUCKET}/log" if store else f"file://{folder}/log"
        bucket = open_sync_bucket(url)
        closing.callback(bucket.close)
        lake = closing.enter_context(lake_session(folder, store))
        yield WrittenLake(lake, WrittenLog(bucket), url)
