"""Rows become files by partition, also where all rows have one partition."""

from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.io.pyarrow import _dataframe_to_data_files
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table, TableProperties

from bucketlog.log_reader.tables.catalog import open_catalog
from bucketlog.log_reader.tables.iceberg_files import TableFiles
from bucketlog.log_reader.tables.iceberg_schema import prepared_table

COLUMNS = pa.schema([("id", pa.int64()), ("text", pa.string()), ("day", pa.date32())])
FIRST, SECOND = date(2026, 2, 1), date(2026, 2, 2)


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    properties = {
        "type": "sql",
        "uri": f"sqlite:///{tmp_path}/catalog.db",
        "warehouse": f"file://{tmp_path}/warehouse",
    }
    found = open_catalog("lake", properties)
    yield found
    found.close()


def table_of(catalog: Catalog, partition_by: str | None = "day") -> Table:
    prepared_table(catalog, "db.rows", COLUMNS, partition_by=partition_by)
    return catalog.load_table("db.rows")


def rows_of(*days: date | None) -> pa.RecordBatch:
    count = len(days)
    return pa.record_batch(
        {"id": range(count), "text": [f"text {each}" for each in days], "day": days},
        schema=COLUMNS,
    )


def described(files: list[DataFile]) -> list[dict[str, Any]]:
    """Return the metadata of the files, without names and sizes of files."""
    names = ["partition", "record_count", "value_counts", "null_value_counts"]
    names += ["lower_bounds", "upper_bounds", "column_sizes", "file_format"]
    return sorted(
        ({name: repr(getattr(each, name)) for name in names} for each in files),
        key=lambda each: each["partition"],
    )


@pytest.mark.parametrize(
    ("days", "partitions"),
    [
        ((FIRST, FIRST, FIRST), 1),
        ((None, None), 1),
        ((FIRST, SECOND, FIRST), 2),
        ((FIRST, None), 2),
    ],
)
def test_the_files_are_those_of_pyiceberg(
    catalog: Catalog, days: tuple[date | None, ...], partitions: int
) -> None:
    table = table_of(catalog)
    writer = TableFiles.of(table).writer()
    writer.add(rows_of(*days))
    found = writer.finish()
    rows = pa.Table.from_batches([rows_of(*days)])
    expected = list(_dataframe_to_data_files(table.metadata, rows, table.io))
    assert len(found) == partitions
    assert described(found) == described(expected)
    assert [Path(each.file_path).parent for each in found] == [
        Path(each.file_path).parent for each in expected
    ]


def test_a_table_without_partitions_has_one_file(catalog: Catalog) -> None:
    writer = TableFiles.of(table_of(catalog, partition_by=None)).writer()
    writer.add(rows_of(FIRST, SECOND))
    (file,) = writer.finish()
    assert file.record_count == 2


def test_files_have_the_size_that_the_table_wants(catalog: Catalog) -> None:
    table = table_of(catalog)
    with table.transaction() as change:
        change.set_properties({TableProperties.WRITE_TARGET_FILE_SIZE_BYTES: "4000"})
    writer = TableFiles.of(table).writer()
    writer.add(rows_of(*[FIRST] * 1_000))
    files = writer.finish()
    assert len(files) > 1
    assert len({each.file_path for each in files}) == len(files)
    assert sum(each.record_count for each in files) == 1_000
