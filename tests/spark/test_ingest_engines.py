"""One table, two engines: processes of this machine and Spark continue each other's commits."""

from pathlib import Path
from uuid import uuid4

import pytest
from pyspark.sql import SparkSession

from bucketlog.ingesting.local_ingest import LocalIngest, ShapedTarget
from bucketlog.ingesting.task_processes import TaskProcesses
from bucketlog.log_format.errors import ConfigurationError
from bucketlog.log_reader.tables.ingest_loop import IngestReport
from bucketlog.log_reader.tables.ingested_log import IngestedLog
from bucketlog.log_reader.tables.rows import RowShape
from bucketlog.log_reader.tables.schema_text import parse_schema
from bucketlog.log_reader.tables.table_target import TableName, TableTarget
from bucketlog.spark_jobs.ingest.catalogs import session_catalog
from bucketlog.spark_jobs.ingest.rows import parse_shape
from tests.spark.conftest import Stored
from tests.spark.ingests import SCHEMA, Lake


@pytest.fixture
def lake(spark: SparkSession, spark_jars: str, stored: Stored, tmp_path: Path) -> Lake:
    stored.log.create_topic("orders", 2)
    return Lake.of(spark, stored, "iceberg", tmp_path)


def run_locally(lake: Lake, max_batch_offsets: int = 1000) -> IngestReport:
    running = TaskProcesses(1)
    name = TableName.parse(lake.name)
    table = TableTarget(
        name,
        lambda: session_catalog(lake.spark, name.catalog),
        running.run,
        new_id=lambda: uuid4().hex,
    )
    try:
        log = IngestedLog(lake.stored.url, ["orders"], {})
        shape = RowShape(parse_schema(SCHEMA))
        target = ShapedTarget(table, lambda: shape)
        return LocalIngest(log, target, 1, max_batch_offsets).run()
    finally:
        running.close()


def test_engines_continue_each_others_commits(lake: Lake) -> None:
    lake.produce("orders", 0, 30)
    assert run_locally(lake, 20).batches == 2
    lake.produce("orders", 1, 7)
    second = lake.ingest()
    assert (second.records, second.last_batch, second.went_on_from) == (7, 3, "commit")
    lake.produce("orders", 1, 5)
    third = run_locally(lake)
    assert (third.records, third.last_batch, third.went_on_from) == (5, 4, "commit")
    assert lake.rows() == lake.produced
    assert lake.ingest().batches == run_locally(lake).batches == 0


SCHEMAS = (
    "id string, amount double",
    "ID: STRING ,amount  double ",
    "a tinyint, b smallint, c int, d bigint, e byte, f short, g integer, h long",
    "a float, b real, c boolean, d binary, e date, f timestamp, g timestamp_ntz",
    "a decimal, b decimal(7), c decimal(38,38), d dec(3,1), e numeric(9, 2)",
    "a array<int>, b map<string,double>, c struct<x:int,y:string>",
    "a array<array<struct<x int, `y z`: map<string, array<date>>>>>",
    "`a b,``c` boolean",
    "a string not null",
    "a",
    "a int,",
    "a strin",
    "a int b int",
    "a decimal(39,1)",
    "a decimal(3,4)",
    "a array<int",
    "a map<int>",
    "",
    "a;b int",
)


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("text", SCHEMAS)
def test_schemas_are_those_of_spark(text: str) -> None:
    """Both refuse a schema, or both read the same fields from it."""
    try:
        theirs = parse_shape(text, None).rows.fields
    except ConfigurationError:
        with pytest.raises(ConfigurationError):
            parse_schema(text)
        return
    assert parse_schema(text) == theirs
