"""Columns of an Iceberg table are made and evolved, and old rows stay readable."""

from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import CreateTableTransaction, Table
from pyiceberg.types import StringType

from bucketlog.log_format.errors import ConfigurationError
from bucketlog.log_reader.tables.iceberg_files import TableFiles
from bucketlog.log_reader.tables.iceberg_schema import prepared_table

Column: TypeAlias = tuple[str, pa.DataType]
FIRST: list[Column] = [
    ("id", pa.int32()),
    ("nested", pa.struct([("a", pa.int8())])),
    ("day", pa.date32()),
]


@pytest.fixture
def catalog(tmp_path: Path) -> SqlCatalog:
    uri, warehouse = f"sqlite:///{tmp_path}/catalog.db", f"file://{tmp_path}/warehouse"
    return SqlCatalog("lake", uri=uri, warehouse=warehouse)


def prepared(catalog: SqlCatalog, fields: list[tuple[str, pa.DataType]]) -> Table:
    return prepared_table(catalog, "db.orders", pa.schema(fields), partition_by="day")


def append(table: Table, fields: list[tuple[str, pa.DataType]], **values: Any) -> None:
    writer = TableFiles.of(table).writer()
    columns = [pa.array([values.get(name)], kind) for name, kind in fields]
    writer.add(pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields)))
    with table.transaction() as transaction, transaction.update_snapshot().fast_append() as update:
        for file in writer.finish():
            update.append_data_file(file)


def rows(catalog: SqlCatalog) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = catalog.load_table("db.orders").scan().to_arrow().to_pylist()
    return sorted(found, key=lambda row: int(row["id"]))


def test_columns_are_added_and_widened(catalog: SqlCatalog) -> None:
    append(prepared(catalog, FIRST), FIRST, id=1, nested={"a": 1})
    later = [
        ("added", pa.string()),
        ("nested", pa.struct([("b", pa.string()), ("a", pa.int32())])),
        ("id", pa.int64()),
        ("day", pa.date32()),
    ]
    append(prepared(catalog, later), later, id=2**40, nested={"b": "x", "a": 2}, added="y")
    assert rows(catalog) == [
        {"id": 1, "nested": {"a": 1, "b": None}, "day": None, "added": None},
        {"id": 2**40, "nested": {"a": 2, "b": "x"}, "day": None, "added": "y"},
    ]


@pytest.mark.parametrize("properties", [{}, {"write.metadata.metrics.column.text": "truncate(4)"}])
def test_text_whose_next_letter_is_half_of_a_pair(
    catalog: SqlCatalog, properties: dict[str, str]
) -> None:
    """PyIceberg cannot make an upper bound of such text."""
    fields: list[Column] = [("id", pa.int32()), ("text", pa.string()), ("day", pa.date32())]
    table = prepared(catalog, fields)
    if properties:
        with table.transaction() as transaction:
            transaction.set_properties(properties)
    append(table, fields, id=1, text="\ud7ff" * 20)
    append(table, fields, id=2, text="b" * 20)
    assert [row["text"] for row in rows(catalog)] == ["\ud7ff" * 20, "b" * 20]
    kept = catalog.load_table("db.orders").scan(row_filter="text = 'bbbbbbbbbbbbbbbbbbbb'")
    assert kept.to_arrow().num_rows == 1


def test_a_job_that_knows_less_goes_on(catalog: SqlCatalog) -> None:
    """Columns that the job lacks are null; a narrower type fits."""
    table = prepared(catalog, [*FIRST, ("wide", pa.int64())])
    with table.update_schema() as update:
        update.add_column("theirs", StringType())
        update.add_column(("nested", "theirs"), StringType())
    fields = [*FIRST, ("wide", pa.int32())]
    append(prepared(catalog, fields), fields, id=1, nested={"a": 1}, wide=5)
    assert rows(catalog) == [
        {"id": 1, "nested": {"a": 1, "theirs": None}, "day": None, "wide": 5, "theirs": None}
    ]


def test_the_same_columns_change_nothing(catalog: SqlCatalog) -> None:
    first = prepared(catalog, FIRST)
    assert prepared(catalog, FIRST).metadata_location == first.metadata_location
    assert [field.name for field in first.spec().fields] == ["day"]


@pytest.mark.parametrize(
    "changed", [("id", pa.string()), ("nested", pa.int32()), ("nested", pa.list_(pa.int8()))]
)
def test_another_type_is_refused(catalog: SqlCatalog, changed: tuple[str, pa.DataType]) -> None:
    before = prepared(catalog, FIRST).schema()
    fields = [changed if name == changed[0] else (name, kind) for name, kind in FIRST]
    with pytest.raises(ConfigurationError, match=r"does not fit the columns of db\.orders"):
        prepared(catalog, fields)
    assert catalog.load_table("db.orders").schema() == before


NESTED = pa.struct([("a", pa.int8())])
SPELLED = pa.struct([("A", pa.int8())])


@pytest.mark.parametrize(
    ("first", "later", "listed"),
    [
        (("id", pa.int32()), ("ID", pa.int32()), "'ID' and 'id'"),
        (("n", NESTED), ("n", SPELLED), r"'n\.A' and 'n\.a'"),
        (("n", pa.list_(NESTED)), ("n", pa.list_(SPELLED)), r"'n\.A' and 'n\.a'"),
        (
            ("n", pa.map_(pa.string(), pa.struct([("m", NESTED)]))),
            ("n", pa.map_(pa.string(), pa.struct([("m", SPELLED)]))),
            r"'n\.m\.A' and 'n\.m\.a'",
        ),
    ],
)
def test_names_that_differ_only_by_case_are_refused(
    catalog: SqlCatalog, first: Column, later: Column, listed: str
) -> None:
    day = ("day", pa.date32())
    before = prepared(catalog, [first, day]).schema()
    with pytest.raises(ConfigurationError, match=rf"upper and lower case: {listed}"):
        prepared(catalog, [later, day])
    assert catalog.load_table("db.orders").schema() == before


def test_a_new_table_with_names_that_differ_only_by_case_is_refused(catalog: SqlCatalog) -> None:
    both = pa.struct([("a", pa.int8()), ("A", pa.int8())])
    with pytest.raises(ConfigurationError, match=r"'n\.A' and 'n\.a'"):
        prepared(catalog, [("n", both), ("day", pa.date32())])
    assert not catalog.table_exists("db.orders")


def test_another_ingest_that_makes_the_table_first(
    catalog: SqlCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not there as this one looks, and there as this one commits."""
    faster = SqlCatalog("lake", **catalog.properties)
    create_transaction = catalog.create_table_transaction

    def late(*arguments: Any, **named: Any) -> CreateTableTransaction:
        transaction = create_transaction(*arguments, **named)
        prepared(faster, FIRST)
        return transaction

    monkeypatch.setattr(catalog, "create_table_transaction", late)
    later = [*FIRST, ("added", pa.string())]
    names = [field.name for field in prepared(catalog, later).schema().fields]
    assert names == [name for name, _ in later]


def test_a_required_column_that_the_job_lacks_is_refused(catalog: SqlCatalog) -> None:
    schema = pa.schema([pa.field("theirs", pa.string(), nullable=False)])
    catalog.create_namespace("db")
    catalog.create_table("db.orders", schema)
    with pytest.raises(ConfigurationError, match="required columns that the schema lacks: theirs"):
        prepared(catalog, FIRST)


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ([("a.b", pa.int8()), ("a", pa.struct([("b", pa.int8())]))], r"a\.b"),
        ([("n", pa.struct([("b", pa.int8()), ("b", pa.string())]))], r"n\.b"),
        ([("n", pa.list_(pa.int8())), ("n.element", pa.int8())], r"n\.element"),
        ([("n", pa.map_(pa.string(), pa.int8())), ("n.key", pa.int8())], r"n\.key"),
    ],
)
def test_two_columns_of_one_path_are_refused(
    catalog: SqlCatalog, fields: list[Column], path: str
) -> None:
    with pytest.raises(ConfigurationError, match=f"two columns or fields with the path '{path}'"):
        prepared(catalog, [*fields, ("day", pa.date32())])


def test_a_name_may_have_dots(catalog: SqlCatalog) -> None:
    table = prepared(catalog, [("a.b", pa.int8()), ("a", pa.int8()), ("day", pa.date32())])
    assert table.schema().column_names == ["a.b", "a", "day"]
