"""The ingest on Spark of values of a real schema registry."""

import argparse
import pickle
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pydantic import BaseModel
from pyiceberg.catalog import load_catalog
from pyspark.sql import SparkSession

from bucketlog import SchemaRegistry, Topic
from bucketlog.log_format.errors import ConfigurationError, InvalidDataError, SchemaRegistryError
from bucketlog.log_reader.tables.registry_formats.shape_options import ShapeOptions
from bucketlog.log_reader.tables.registry_formats.values import NewerSchemaError
from bucketlog.log_reader.tables.rows import BadRecords
from bucketlog.schema_registry.framing import header
from bucketlog.schema_registry.registry_access import RegistryAccess
from bucketlog.spark_jobs.ingest import __main__ as command
from bucketlog.spark_jobs.ingest.rows import IngestShape
from tests.models import order_messages
from tests.rigs import table_lake
from tests.servers.cluster import free_port
from tests.servers.schema_registry import Registry
from tests.spark.conftest import Stored
from tests.spark.ingests import Lake

pytestmark = pytest.mark.long

LINEAGE = ("_log_partition", "_log_offset")


class Line(BaseModel):
    id: str
    amount: float = 0


class LineWithNote(Line):
    note: str | None = None


class Wide(BaseModel):
    id: str
    due: date = date(2024, 5, 1)
    price: Decimal | None = None
    lines: list[Line] = []
    by_name: dict[str, int] = {}
    at: int | None = None


def encoded(format_: Any, topic: str, value: Any) -> bytes:
    """Encode a value, and register its schema under the subject `<topic>-value`."""
    data = Topic(topic, value=format_).value_format.encode(value)
    assert isinstance(data, bytes)
    return data


def shape_of(
    url: str,
    topic: str,
    bad_records: BadRecords = "dead-letter",
    schema: str | None = None,
) -> IngestShape:
    """Return the shape with the columns that the registry has now."""
    options = ShapeOptions(
        schema=schema,
        value_format="registry",
        registry=RegistryAccess(url),
        subjects=(),
        message=None,
        day_from=None,
        epoch_units=(),
        epoch_range="1971-01-01,2100-01-01",
    )
    return IngestShape.of(options.shapes([topic], bad_records)())


@pytest.fixture
def lake(spark: SparkSession, spark_jars: list[Path], stored: Stored, tmp_path: Path) -> Lake:
    stored.log.create_topic("orders", 2)
    return Lake.of(spark, stored, "iceberg", tmp_path)


def found(lake: Lake, *columns: str) -> list[dict[str, Any]]:
    rows = lake.table().orderBy(*LINEAGE).select(*columns).collect()
    return [row.asDict(recursive=True) for row in rows]


def avro_values(registry: SchemaRegistry, topic: str) -> list[bytes]:
    narrow = registry.avro(Line, name="Wide")
    wide = registry.avro(Wide)
    values: list[Wide] = [
        Wide(id="b", lines=[Line(id="x", amount=1.5)], by_name={"n": 1}, at=7),
        Wide(id="c", due=date(1969, 12, 31)),
    ]
    return [
        encoded(narrow, topic, Line(id="a", amount=0.25)),
        *(encoded(wide, topic, value) for value in values),
    ]


def protobuf_values(registry: SchemaRegistry, topic: str) -> list[bytes]:
    format_ = registry.protobuf(order_messages.Order)
    return [encoded(format_, topic, order_messages.order(each)) for each in ("a", "b")]


def json_values(registry: SchemaRegistry, topic: str) -> list[bytes]:
    format_ = registry.json(LineWithNote)
    return [encoded(format_, topic, LineWithNote(id="a", note=note)) for note in (None, "n")]


def table_of(name: str, folder: Path, table: str) -> pa.Table:
    """Return the rows of a table, in the order of the log."""
    properties = {
        "uri": f"sqlite:///{folder}/catalog.db",
        "warehouse": f"file://{folder}/warehouse",
    }
    rows = load_catalog(name, type="sql", **properties).load_table(table).scan().to_arrow()
    return rows.sort_by([(each, "ascending") for each in LINEAGE])


@pytest.mark.parametrize("make", [avro_values, protobuf_values, json_values])
def test_rows_are_those_of_table_run(
    spark: SparkSession,
    spark_jars: list[Path],
    tmp_path: Path,
    schema_registry: Registry,
    registry: SchemaRegistry,
    make: Callable[[SchemaRegistry, str], list[bytes]],
) -> None:
    """Also the dead letters: a value without a frame, and one with an unknown schema."""
    subject = f"spark-{make.__name__}"
    flags = ("--value-format", "registry", "--registry-url", schema_registry.url)
    local = table_lake.Lake(tmp_path, (*flags, "--subject", f"{subject}-value"))
    for value in (*make(registry, subject), b"no frame", header(99_999_999)):
        local.put(value)
    expected = local.run()
    folder = tmp_path / "spark"
    folder.mkdir()
    stored = Stored(tmp_path / "log", local.log, {})
    lake = Lake.of(spark, stored, "iceberg", folder)
    report = lake.ingest(shape=shape_of(schema_registry.url, subject))
    assert (report.records, report.dead_letters) == (
        expected["records"],
        expected["dead_letters"],
    )
    assert report.dead_letters == 2
    catalog, _, table = lake.name.partition(".")
    for name in (table, f"{table}_dead_letters"):
        rows = table_of(catalog, folder, name)
        assert rows.num_rows
        assert rows.equals(table_of("lake", tmp_path, name))


def test_a_newer_schema_ends_the_run_and_the_next_run_adds_the_column(
    lake: Lake, schema_registry: Registry, registry: SchemaRegistry
) -> None:
    topic = "spark-newer"
    lake.put("orders", 0, encoded(registry.avro(Line), topic, Line(id="a", amount=1.5)))
    lake.ingest(shape=shape_of(schema_registry.url, topic))
    before = shape_of(schema_registry.url, topic)
    note = LineWithNote(id="b", note="n")
    lake.put("orders", 0, encoded(registry.avro(LineWithNote, name="Line"), topic, note))
    with pytest.raises(NewerSchemaError, match="was registered after the run began") as ended:
        lake.ingest(shape=before)
    assert ended.value.code == "NEWER_SCHEMA"
    assert "run the ingest again" in str(ended.value)
    assert lake.ingest(shape=shape_of(schema_registry.url, topic)).records == 1
    assert found(lake, "id", "amount", "note") == [
        {"id": "a", "amount": 1.5, "note": None},
        {"id": "b", "amount": 0.0, "note": "n"},
    ]


def test_a_registry_out_of_reach_ends_the_run(lake: Lake) -> None:
    """The values do not become dead letters."""
    lake.put("orders", 0, header(1) + b"x")
    shape = shape_of(f"http://127.0.0.1:{free_port()}", "orders", schema="id string")
    with pytest.raises(SchemaRegistryError, match="no schema registry answers"):
        lake.ingest(shape=shape)


def test_a_parquet_folder_keeps_its_columns(
    spark: SparkSession,
    stored: Stored,
    tmp_path: Path,
    schema_registry: Registry,
    registry: SchemaRegistry,
) -> None:
    topic = "spark-parquet"
    stored.log.create_topic("orders", 1)
    lake = Lake.of(spark, stored, "parquet", tmp_path)
    first = Wide(id="a", lines=[Line(id="x", amount=2)], by_name={"n": 1})
    lake.put("orders", 0, encoded(registry.avro(Wide), topic, first))
    begun = shape_of(schema_registry.url, topic, "fail")
    assert lake.ingest(shape=begun).records == 1
    assert found(lake, "id", "lines", "by_name") == [
        {"id": "a", "lines": [{"id": "x", "amount": 2.0}], "by_name": {"n": 1}}
    ]
    lake.put("orders", 0, b"no frame")
    with pytest.raises(InvalidDataError, match="offset 1"):
        lake.ingest(shape=begun)
    encoded(registry.avro(LineWithNote, name="Wide"), topic, LineWithNote(id="b"))
    with pytest.raises(ConfigurationError, match="has the columns"):
        lake.ingest(shape=shape_of(schema_registry.url, topic, "fail"))


def test_workers_get_the_login_of_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not through their environment, and no text shows the login."""
    monkeypatch.setenv("BUCKETLOG_SCHEMA_REGISTRY_AUTH", "ann:hidden:1")
    monkeypatch.setenv("BUCKETLOG_SCHEMA_REGISTRY_CA_FILE", "/ca.pem")
    given = command.argument_parser("ingest").parse_args(
        [
            *("--bucket", "file:///x", "--topics", "t", "--iceberg", "a.b.c"),
            *("--value-format", "registry", "--schema", "id string"),
            *("--registry-url", "http://ann:hidden@127.0.0.1"),
        ]
    )
    assert isinstance(given, argparse.Namespace)
    shape = command.shape_of(given, ["t"])()
    monkeypatch.delenv("BUCKETLOG_SCHEMA_REGISTRY_AUTH")
    monkeypatch.delenv("BUCKETLOG_SCHEMA_REGISTRY_CA_FILE")
    values: Any = pickle.loads(pickle.dumps(shape.rows)).values
    assert values.access.auth == ("ann", "hidden:1")
    assert values.access.ca_file == Path("/ca.pem")
    assert "hidden" not in repr(shape)
