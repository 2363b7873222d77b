"""Settings of a Spark session's Iceberg catalog, as PyIceberg needs them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog.sql import SqlCatalog, SqlCatalogBaseTable
from sqlalchemy import Engine
from sqlalchemy.exc import DatabaseError

from bucketlog.log_format.errors import ConfigurationError
from bucketlog.log_reader.tables.catalog import open_catalog
from bucketlog.spark_jobs.ingest.catalogs import catalog_properties

SPARK = "org.apache.iceberg.spark.SparkCatalog"
NOTHING: Mapping[str, str] = {}


def properties(own: Mapping[str, str], hadoop: Mapping[str, str] = NOTHING) -> dict[str, str]:
    named = {f"spark.sql.catalog.lake.{key}": own[key] for key in own}
    conf = {"spark.sql.catalog.lake": SPARK, "spark.sql.catalog.lakeside.uri": "other", **named}

    def of_hadoop(name: str) -> str | None:
        return hadoop.get(name)

    return catalog_properties("lake", conf, of_hadoop)


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        (
            {"type": "jdbc", "uri": "jdbc:sqlite:/tmp/c.db", "warehouse": "s3a://lake/w"},
            {"type": "sql", "uri": "sqlite:////tmp/c.db", "warehouse": "s3a://lake/w"},
        ),
        (
            {"type": "rest", "uri": "http://c/api", "credential": "id:secret"},
            {"type": "rest", "uri": "http://c/api", "credential": "id:secret"},
        ),
        (
            {"catalog-impl": "org.apache.iceberg.aws.glue.GlueCatalog"},
            {"type": "glue", "catalog-impl": "org.apache.iceberg.aws.glue.GlueCatalog"},
        ),
    ],
)
def test_kinds_of_catalogs(own: dict[str, str], expected: dict[str, str]) -> None:
    assert properties(own) == expected


def test_the_login_of_a_database() -> None:
    login = {"jdbc.user": "u", "jdbc.password": "p@ss"}
    made = properties({"type": "jdbc", "uri": "jdbc:postgresql://db:5432/c", **login})
    assert made["uri"] == "postgresql+psycopg://u:p%40ss@db:5432/c"


def test_files_are_reached_as_hadoop_reaches_them() -> None:
    hadoop = {"fs.s3a.endpoint": "http://s3", "fs.s3a.access.key": "a", "fs.s3a.secret.key": ""}
    made = properties({"type": "glue"}, hadoop)
    assert made == {"type": "glue", "s3.endpoint": "http://s3", "s3.access-key-id": "a"}


@pytest.mark.parametrize(
    ("own", "message"),
    [
        ({"type": "hadoop"}, "kind 'hadoop', which an ingest cannot commit to"),
        ({}, "kind 'hive'"),
        ({"type": "jdbc", "uri": "jdbc:oracle:thin:@db"}, "uri is not a JDBC URL of sqlite"),
        ({"type": "jdbc"}, "uri is not a JDBC URL"),
    ],
)
def test_what_cannot_be_opened_is_refused(own: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        properties(own)


def test_a_catalog_that_is_not_configured() -> None:
    with pytest.raises(ConfigurationError, match=r"no catalog 'lake'.*--conf spark\.sql\.catalog"):
        catalog_properties("lake", {}, lambda _: None)


def sqlite(folder: Path) -> dict[str, str]:
    return {"type": "sql", "uri": f"sqlite:///{folder}/c.db", "warehouse": f"file://{folder}"}


def test_another_ingest_makes_the_tables_of_the_catalog_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    metadata = SqlCatalogBaseTable.metadata
    make = metadata.create_all

    def slower(engine: Engine, *given: Any, **options: Any) -> None:
        monkeypatch.undo()
        make(engine)
        make(engine, checkfirst=False)

    monkeypatch.setattr(metadata, "create_all", slower)
    catalog = open_catalog("lake", sqlite(tmp_path))
    assert isinstance(catalog, SqlCatalog)
    assert catalog.list_namespaces() == []


def test_a_catalog_that_cannot_be_opened_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DatabaseError, match="unable to open"):
        open_catalog("lake", sqlite(tmp_path / "missing"))
