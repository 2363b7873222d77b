"""Partitions of tables: the grammar, the values of Iceberg's specification, and whole files."""

from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.table import Table
from pyiceberg.transforms import parse_transform
from pyiceberg.types import (
    BinaryType,
    DateType,
    DecimalType,
    DoubleType,
    IcebergType,
    IntegerType,
    LongType,
    StringType,
    TimestampType,
    TimestamptzType,
)

from bucketlog.log_format.errors import ConfigurationError
from bucketlog.log_reader.tables.catalog import open_catalog
from bucketlog.log_reader.tables.iceberg_files import TableFiles
from bucketlog.log_reader.tables.iceberg_schema import prepared_table
from bucketlog.log_reader.tables.partitioning import PartitionTerms, partition_values, split_rows

COLUMNS = pa.schema(
    [
        ("id", pa.int64()),
        ("name", pa.string()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("born", pa.date32()),
        ("price", pa.decimal128(9, 2)),
        ("ratio", pa.float64()),
        ("none", pa.int32()),
        ("tags", pa.list_(pa.string())),
        ("born_year", pa.int32()),
        ("day", pa.date32()),
    ]
)
MOMENT = datetime(2017, 11, 16, 22, 31, 8, tzinfo=UTC)
LAST_1969 = datetime(1969, 12, 31, 23, 59, tzinfo=UTC).replace(tzinfo=None)


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


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("none", []),
        (" day ", [("identity", "day")]),
        ("day(at)", [("day", "at")]),
        (
            "bucket(16, id),truncate( 4 ,name) , country",
            [("bucket[16]", "id"), ("truncate[4]", "name"), ("identity", "country")],
        ),
        ("hour(_log_timestamp), month(born)", [("hour", "_log_timestamp"), ("month", "born")]),
        ("identity(none)", [("identity", "none")]),
    ],
)
def test_the_text_of_a_partitioning(text: str, terms: list[tuple[str, str]]) -> None:
    made = PartitionTerms.parse(text)
    assert [(each.transform, each.column) for each in made.terms] == terms
    assert PartitionTerms.parse(str(made)) == made


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "is not clear at character 1"),
        ("day,", "is not clear at character 5"),
        ("day at", "is not clear at character 1"),
        ("day(at) hour(at)", "is not clear at character 1"),
        ("bucket(16 id)", "is not clear"),
        ("days(at)", "no transform 'days'"),
        ("bucket(id)", "bucket needs a number"),
        ("day(3, at)", "day has no number"),
        ("bucket(0, id)", "number of bucket is 0"),
        ("bucket(1000001, id)", "number of bucket is 1000001"),
        ("day(at), hour(at)", "'at' twice"),
        (",".join(f"c{each}" for each in range(21)), "has 21 columns"),
    ],
)
def test_a_wrong_partitioning_is_refused(text: str, told: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        PartitionTerms.parse(text)
    assert told in caught.value.message
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("missing", "no column 'missing'"),
        ("day(id)", "'id' is a long"),
        ("hour(born)", "'born' is a date"),
        ("truncate(4, at)", "'at' is a timestamptz"),
        ("truncate(100, price)", "the lowest value of decimal(9, 2), rounded down"),
        ("ratio", "'ratio' is a double"),
        ("bucket(4, ratio)", "'ratio' is a double"),
        ("tags", "'tags' is a list"),
        ("year(born)", "whose name 'born_year' is also a column"),
    ],
)
def test_a_table_that_cannot_be_written_is_not_created(
    catalog: Catalog, text: str, told: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        prepared_table(catalog, "db.rows", COLUMNS, partition_by=text)
    assert told in caught.value.message
    assert not catalog.table_exists("db.rows")


def test_an_old_table_keeps_its_partitions(catalog: Catalog) -> None:
    prepared_table(catalog, "db.rows", COLUMNS, partition_by="bucket(4, id), born")
    wider = COLUMNS.append(pa.field("more", pa.string()))
    with pytest.raises(ConfigurationError) as caught:
        prepared_table(catalog, "db.rows", wider, partition_by="day", has_these=True)
    assert caught.value.message == ("db.rows is partitioned by bucket(4, id), born, and not by day")
    assert "more" not in catalog.load_table("db.rows").schema().column_names
    for text, has_these in (("day", False), ("bucket(4,id),born", True)):
        table = prepared_table(catalog, "db.rows", COLUMNS, partition_by=text, has_these=has_these)
        assert str(PartitionTerms.of(table)) == "bucket(4, id), born"


SPECIFIED: list[tuple[str, IcebergType, pa.DataType, Any, Any]] = [
    # hashes of the appendix of Iceberg's specification, modulo a large number of buckets
    ("bucket[1000000]", IntegerType(), pa.int32(), 34, 2017239379 % 1_000_000),
    ("bucket[1000000]", LongType(), pa.int64(), 34, 2017239379 % 1_000_000),
    (
        "bucket[1000000]",
        DecimalType(4, 2),
        pa.decimal128(4, 2),
        Decimal("14.20"),
        (-500754589 & 0x7FFFFFFF) % 1_000_000,
    ),
    (
        "bucket[1000000]",
        DateType(),
        pa.date32(),
        date(2017, 11, 16),
        (-653330422 & 0x7FFFFFFF) % 1_000_000,
    ),
    (
        "bucket[1000000]",
        TimestamptzType(),
        pa.timestamp("us", tz="UTC"),
        MOMENT,
        (-2047944441 & 0x7FFFFFFF) % 1_000_000,
    ),
    (
        "bucket[1000000]",
        TimestampType(),
        pa.timestamp("us"),
        MOMENT.replace(tzinfo=None),
        (-2047944441 & 0x7FFFFFFF) % 1_000_000,
    ),
    ("bucket[1000000]", StringType(), pa.large_string(), "iceberg", 1210000089 % 1_000_000),
    (
        "bucket[1000000]",
        BinaryType(),
        pa.large_binary(),
        b"\x00\x01\x02\x03",
        (-188683207 & 0x7FFFFFFF) % 1_000_000,
    ),
    ("truncate[10]", IntegerType(), pa.int32(), 1, 0),
    ("truncate[10]", IntegerType(), pa.int32(), -1, -10),
    ("truncate[10]", LongType(), pa.int64(), -1, -10),
    ("truncate[50]", DecimalType(4, 2), pa.decimal128(4, 2), Decimal("10.65"), Decimal("10.50")),
    ("truncate[3]", StringType(), pa.large_string(), "iceberg", "ice"),
    ("truncate[2]", StringType(), pa.large_string(), "ü😀x", "ü😀"),
    ("truncate[3]", BinaryType(), pa.large_binary(), b"\x01\x02\x03\x04", b"\x01\x02\x03"),
    ("year", DateType(), pa.date32(), date(2017, 11, 16), 47),
    ("month", DateType(), pa.date32(), date(2017, 11, 16), 574),
    ("day", DateType(), pa.date32(), date(2017, 11, 16), 17486),
    ("year", TimestamptzType(), pa.timestamp("us", tz="UTC"), MOMENT, 47),
    ("month", TimestamptzType(), pa.timestamp("us", tz="UTC"), MOMENT, 574),
    ("day", TimestamptzType(), pa.timestamp("us", tz="UTC"), MOMENT, 17486),
    ("hour", TimestamptzType(), pa.timestamp("us", tz="UTC"), MOMENT, 419686),
    ("hour", TimestampType(), pa.timestamp("us"), LAST_1969, -1),
    ("day", TimestampType(), pa.timestamp("us"), LAST_1969, -1),
    ("month", TimestampType(), pa.timestamp("us"), LAST_1969, -1),
    ("year", TimestampType(), pa.timestamp("us"), LAST_1969, -1),
    ("year", DateType(), pa.date32(), date(1, 1, 1), -1969),
    ("identity", DoubleType(), pa.float64(), 0.5, 0.5),
    ("void", LongType(), pa.int64(), 5, None),
]


@pytest.mark.parametrize(("transform", "kind", "arrow", "value", "expected"), SPECIFIED)
def test_values_are_those_of_the_specification(
    transform: str, kind: IcebergType, arrow: pa.DataType, value: Any, expected: Any
) -> None:
    values = pa.chunked_array([pa.array([value, None], arrow), pa.array([value], arrow)])
    found = partition_values(parse_transform(transform), kind, values)
    assert found.to_pylist() == [expected, None, expected]
    if transform != "identity":
        row_by_row = parse_transform(transform).transform(kind)
        assert found.to_pylist() == [row_by_row(each) for each in values.to_pylist()]


def rows_of(count: int) -> pa.RecordBatch:
    """Values of few partitions, with nulls, NaN and unordered days."""
    columns = {
        "id": [None if each % 7 == 3 else each % 5 for each in range(count)],
        "name": [None if each % 11 == 0 else f"ab{each % 3}-{each}" for each in range(count)],
        "at": [datetime(2026, 1, 1 + each * 5 % 9, each % 4, tzinfo=UTC) for each in range(count)],
        "born": [date(1950 + each % 3, 1 + each % 2, 1) for each in range(count)],
        "price": [Decimal(each % 4) / 2 for each in range(count)],
        "ratio": [float("nan") if each % 2 else 1.0 for each in range(count)],
        "none": [each % 2 for each in range(count)],
        "tags": [[str(each)] for each in range(count)],
        "born_year": list(range(count)),
        "day": [date(2026, 1, 1)] * count,
    }
    return pa.record_batch(columns, schema=COLUMNS)


def ingested(catalog: Catalog, text: str, rows: pa.RecordBatch) -> Table:
    table = prepared_table(catalog, "db.rows", COLUMNS, partition_by=text)
    writer = TableFiles.of(table).writer()
    writer.add(rows.slice(0, 10))
    writer.add(rows.slice(10))
    with table.transaction() as change, change.update_snapshot().fast_append() as append:
        for file in writer.finish():
            append.append_data_file(file)
    return catalog.load_table("db.rows")


@pytest.mark.parametrize(
    ("text", "files", "at_one_id"),
    [
        ("none", 1, 1),
        ("day", 1, 1),
        ("id", 6, 1),
        ("bucket(3, id)", 4, 1),
        ("truncate(2, id)", 4, 1),
        ("truncate(3, name)", 4, None),
        ("year(at)", 1, 1),
        ("month(born)", 6, None),
        ("day(at)", 9, None),
        ("hour(at), bucket(2, id)", 96, None),
        ("price", 4, None),
        ("bucket(4, at), identity(none), year(day)", 8, None),
    ],
)
def test_each_row_is_in_its_partition_once(
    catalog: Catalog, text: str, files: int, at_one_id: int | None
) -> None:
    rows = rows_of(200)
    table = ingested(catalog, text, rows)
    tasks = list(table.scan().plan_files())
    assert len(tasks) == files == len({repr(task.file.partition) for task in tasks})
    key = [("born_year", "ascending")]
    found = table.scan().to_arrow().select(COLUMNS.names).sort_by(key).cast(COLUMNS)
    expected = pa.Table.from_batches([rows])
    assert found.drop(["ratio"]).equals(expected.drop(["ratio"]))
    assert str(found["ratio"].to_pylist()) == str(expected["ratio"].to_pylist())
    for each in range(5):
        scan = table.scan(row_filter=f"id == {each}")
        wanted = sum(value == each for value in rows.column("id").to_pylist())
        assert scan.to_arrow().num_rows == wanted, "files of other partitions may be skipped"
        if at_one_id is not None:
            assert len(list(scan.plan_files())) == at_one_id
    spec = table.spec()
    for task in tasks:
        for at, field in enumerate(spec.fields):
            name = table.schema().find_column_name(field.source_id)
            kind = table.schema().find_field(field.source_id).field_type
            made = field.transform.transform(kind)
            stored = pa.parquet.read_table(task.file.file_path)
            values = {made(_number(each)) for each in stored.column(name).to_pylist()}
            assert values == {_number(task.file.partition[at])}


def _number(value: Any) -> Any:
    return (value - date(1970, 1, 1)).days if type(value) is date else value


@pytest.mark.parametrize(
    ("kind", "lowest", "wrapped"),
    [
        (pa.int32(), -(2**31), -2147484000 + 2**32),
        (pa.int64(), -(2**63), -9223372036854776000 + 2**64),
    ],
)
def test_the_lowest_integers_wrap_as_in_java(
    catalog: Catalog, kind: pa.DataType, lowest: int, wrapped: int
) -> None:
    columns = pa.schema([("id", kind)])
    table = prepared_table(catalog, "db.rows", columns, partition_by="truncate(1000, id)")
    writer = TableFiles.of(table).writer()
    writer.add(pa.record_batch({"id": pa.array([lowest, -1], kind)}))
    assert [file.partition[0] for file in writer.finish()] == [wrapped, -1000]


@pytest.mark.parametrize("text", ["name", "truncate(1000, name)", "name, bucket(4, id), born"])
def test_long_values_have_partitions(catalog: Catalog, text: str) -> None:
    """Producers decide how long values are. A file system takes names up to 255 bytes."""
    names = ["x" * 5_000, "x" * 5_000 + "y", "ä" * 300, "../..", "short", None]
    columns = [column.slice(0, len(names)) for column in rows_of(200).columns]
    columns[COLUMNS.get_field_index("name")] = pa.array(names)
    table = ingested(catalog, text, pa.RecordBatch.from_arrays(columns, schema=COLUMNS))
    assert sorted(table.scan().to_arrow()["name"].to_pylist(), key=str) == sorted(names, key=str)
    data = Path(table.location().removeprefix("file://")) / "data"
    folders = {file.parent.relative_to(data) for file in data.rglob("*.parquet")}
    assert len(folders) == (5 if "truncate" in text else 6)
    assert all(len(str(folder)) <= 700 for folder in folders)
    assert not any(part in ("..", ".") for folder in folders for part in folder.parts)


def test_not_a_number_has_a_partition(catalog: Catalog) -> None:
    """Another engine may have made a table with partitions by a float."""
    table = prepared_table(catalog, "db.rows", COLUMNS, partition_by="none")
    with table.update_spec() as spec:
        spec.add_identity("ratio")
    rows = pa.Table.from_batches([rows_of(10)])
    parts = [part for _, part in split_rows(table.metadata, rows)]
    assert [part.num_rows for part in parts] == [5, 5]
