"""Spark writes and reads tables with the partitions of an ingest, and both make the same ones."""

from collections import Counter
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import count
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog
from pyspark.sql import SparkSession

from bucketlog.log_reader.tables.iceberg_files import TableFiles
from bucketlog.log_reader.tables.iceberg_schema import prepared_table
from bucketlog.spark_jobs.ingest.catalogs import session_catalog
from localstack.spark_jars import iceberg_settings

pytestmark = pytest.mark.long

NAME = "partitions"
ROWS = 120
COLUMNS = pa.schema(
    [
        ("id", pa.int64()),
        ("name", pa.string()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("born", pa.date32()),
        ("price", pa.decimal128(9, 2)),
        ("body", pa.binary()),
    ]
)
_numbers = count()


@pytest.fixture(scope="module")
def catalog(
    spark: SparkSession, spark_jars: list[Path], tmp_path_factory: pytest.TempPathFactory
) -> Catalog:
    folder = tmp_path_factory.mktemp("partitions")
    settings = iceberg_settings(NAME, folder / "catalog.db", f"file://{folder}/warehouse")
    for name, value in settings.items():
        spark.conf.set(name, value)
    return session_catalog(spark, NAME)


def some_rows() -> pa.RecordBatch:
    """Rows before and after 1970, with nulls and with characters of four bytes."""
    moments = [
        datetime(1969, 12, 29, 5, tzinfo=UTC) + timedelta(hours=7 * at) for at in range(ROWS)
    ]
    columns = {
        "id": [None if at % 13 == 4 else at * 37 - 900 for at in range(ROWS)],
        "name": [None if at % 17 == 2 else f"{'ä😀b'[at % 3]}{at % 4}{at}" for at in range(ROWS)],
        "at": moments,
        "born": [date(1968 + at % 4, 1 + at % 12, 1 + at % 28) for at in range(ROWS)],
        "price": [Decimal(at * 25 - 700) / 100 for at in range(ROWS)],
        "body": [bytes([at % 3, at, 0]) for at in range(ROWS)],
    }
    return pa.record_batch(columns, schema=COLUMNS)


@pytest.mark.parametrize(
    "text",
    [
        "none",
        "born",
        "bucket(7, id), truncate(2, name)",
        "bucket(5, at), bucket(3, born)",
        "bucket(8, price), bucket(3, body)",
        "truncate(100, id), truncate(1, body)",
        "bucket(4, price), bucket(3, name)",
        "year(at), month(born)",
        "month(at), year(born)",
        "day(at)",
        "hour(at)",
        "day(born)",
    ],
)
def test_spark_makes_the_same_partitions(spark: SparkSession, catalog: Catalog, text: str) -> None:
    table, rows = f"t{next(_numbers)}", some_rows()
    writer = TableFiles.of(
        prepared_table(catalog, f"db.{table}", COLUMNS, partition_by=text)
    ).writer()
    whole = f"{NAME}.db.{table}"
    spark.createDataFrame(pa.Table.from_batches([rows])).writeTo(whole).append()
    writer.add(rows)
    ours = writer.finish()
    loaded = catalog.load_table(f"db.{table}")
    with loaded.transaction() as change, change.update_snapshot().fast_append() as append:
        for file in ours:
            append.append_data_file(file)
    spark.catalog.refreshTable(whole)
    paths = {file.file_path for file in ours}
    counts: dict[bool, Counter[str]] = {True: Counter(), False: Counter()}
    columns = "file_path, record_count" + ("" if text == "none" else ", partition")
    for path, number, *partition in spark.sql(f"SELECT {columns} FROM {whole}.files").collect():
        counts[path in paths][str(partition)] += number
    assert counts[True] == counts[False]
    assert counts[True].total() == ROWS
    for at in (0, 5, 100):
        id_, name, moment, born, _, _ = (column[at].as_py() for column in rows.columns)
        for condition in (
            f"id = {id_}",
            f"name = '{name}'",
            f"at = TIMESTAMP '{moment.isoformat()}'",
            f"born = DATE '{born}'",
        ):
            found = spark.sql(f"SELECT * FROM {whole} WHERE {condition}").count()
            assert found % 2 == 0
            assert found > 0, "Spark reads the files of the right partitions"
