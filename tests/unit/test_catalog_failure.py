"""Failures of a catalog are told in a line, with a remedy."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import ServiceUnavailableError
from pyspark.errors import PySparkValueError

from bucketlog.log_format.errors import BucketError, BucketlogError, ConfigurationError
from bucketlog.log_reader.tables.catalog_failure import catalog_failures
from bucketlog.log_reader.tables.rows import RowShape
from bucketlog.spark_jobs.ingest import iceberg
from bucketlog.spark_jobs.ingest.iceberg import IcebergTarget

SHAPE: Any = SimpleNamespace(rows=RowShape(pa.schema([("id", pa.string())])))


@pytest.mark.filterwarnings("ignore:No preferred file implementation")
@pytest.mark.parametrize(
    ("uri", "warehouse", "kind", "told"),
    [
        ("sqlite:///{}/none/catalog.db", "file://{}", BucketError, "unable to open database file"),
        ("sqlite:///{}/catalog.db", "strange://{}", ConfigurationError, "strange"),
    ],
)
def test_a_target_whose_catalog_fails(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    uri: str,
    warehouse: str,
    kind: type[BucketlogError],
    told: str,
) -> None:
    properties = {"uri": uri.format(tmp_path), "warehouse": warehouse.format(tmp_path)}
    monkeypatch.setattr(
        iceberg, "session_catalog", lambda spark, name: SqlCatalog(name, **properties)
    )
    session: Any = None
    target = IcebergTarget(session, "lake.db.orders", new_id=lambda: "a")
    with pytest.raises(kind, match=r"the catalog of lake\.db\.orders") as raised:
        target.prepare(SHAPE)
    assert told in raised.value.message
    assert "[SQL" not in raised.value.message
    assert "\n" not in raised.value.message
    assert raised.value.remedy


def test_a_catalog_that_does_not_answer() -> None:
    with (
        pytest.raises(BucketError, match=r"^the catalog of a\.b\.c fails: 503 try later \(see"),
        catalog_failures("a.b.c"),
    ):
        raise ServiceUnavailableError("503\n try later")


@pytest.mark.parametrize(
    "text",
    [
        r"Invalid header value b'Bearer s3cr3t\n'",
        "return character(s) in header value: 'Bearer s3cr3t'",
    ],
)
def test_a_refused_token_is_not_shown(text: str) -> None:
    with (
        pytest.raises(ConfigurationError, match="header value: not shown") as caught,
        catalog_failures("a.b.c"),
    ):
        raise ValueError(text)
    assert "s3cr3t" not in str(caught.value)


def test_a_driver_that_is_not_installed() -> None:
    with (
        pytest.raises(ConfigurationError, match="refuses: No module named 'psycopg'"),
        catalog_failures("a.b.c"),
    ):
        raise ModuleNotFoundError("No module named 'psycopg'")


@pytest.mark.parametrize(
    "error", [PySparkValueError("of Spark"), OSError("of the disk"), BucketError("its own")]
)
def test_other_errors_pass(error: Exception) -> None:
    with pytest.raises(type(error)) as raised, catalog_failures("a.b.c"):
        raise error
    assert raised.value is error
