"""An Iceberg catalog of a Spark session, as PyIceberg opens it. `catalog_properties` is pure.

Spark's settings say what kind of catalog it is, where it is, and how the files are reached. The
driver commits through PyIceberg, so that one commit protocol serves every engine.
"""

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pyiceberg.catalog import Catalog

from bucketlog.log_format.errors import ConfigurationError
from bucketlog.log_reader.tables.catalog import open_catalog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_KINDS = {
    "jdbc": "sql",
    "rest": "rest",
    "glue": "glue",
    "org.apache.iceberg.jdbc.JdbcCatalog": "sql",
    "org.apache.iceberg.rest.RESTCatalog": "rest",
    "org.apache.iceberg.aws.glue.GlueCatalog": "glue",
}
"""By `type` or `catalog-impl` of Spark's settings."""
_DRIVERS = {"sqlite": "sqlite", "postgresql": "postgresql+psycopg", "mysql": "mysql+pymysql"}
_JDBC = re.compile(r"jdbc:(?P<kind>\w+):(?P<at>.+)")
_S3A = {
    "fs.s3a.endpoint": "s3.endpoint",
    "fs.s3a.endpoint.region": "s3.region",
    "fs.s3a.access.key": "s3.access-key-id",
    "fs.s3a.secret.key": "s3.secret-access-key",
    "fs.s3a.session.token": "s3.session-token",
}
"""Settings of Hadoop's S3 client, and the properties of PyIceberg that mean the same."""
_PREFIX = "spark.sql.catalog."


def session_catalog(spark: "SparkSession", name: str) -> Catalog:
    """The catalog `name` of the session. Raises `ConfigurationError`."""
    gateway: Any = spark
    hadoop = gateway._jsparkSession.sessionState().newHadoopConf()
    properties = catalog_properties(name, spark.conf.getAll, hadoop.get)
    return open_catalog(name, properties)


def catalog_properties(
    name: str, conf: Mapping[str, str], hadoop: Callable[[str], str | None]
) -> dict[str, str]:
    """PyIceberg's properties of the catalog `name`. `conf` are a session's settings, `hadoop` gets
    a setting of Hadoop. Raises `ConfigurationError` for a kind of catalog that PyIceberg lacks."""
    at = f"{_PREFIX}{name}"
    if at not in conf:
        raise ConfigurationError(
            f"the session has no catalog {name!r}",
            remedy="name the table as catalog.database.table, and configure its catalog: "
            f"--conf {at}=org.apache.iceberg.spark.SparkCatalog and what it needs",
        )
    own = {
        key.removeprefix(f"{at}."): value for key, value in conf.items() if key.startswith(f"{at}.")
    }
    said = own.get("type") or own.get("catalog-impl") or "hive"
    kind = _KINDS.get(said)
    if kind is None:
        raise ConfigurationError(
            f"catalog {name!r} is of the kind {said!r}, which an ingest cannot commit to",
            remedy=f"use a catalog of the type {', '.join(sorted(set(_KINDS.values()) - {'sql'}))} "
            "or jdbc",
        )
    files = {theirs: value for ours, theirs in _S3A.items() if (value := hadoop(ours))}
    made = {**files, **own, "type": kind}
    if kind == "sql":
        made["uri"] = _database_url(name, own)
    return made


def _database_url(name: str, own: Mapping[str, str]) -> str:
    found = _JDBC.fullmatch(own.get("uri", ""))
    driver = found and _DRIVERS.get(found["kind"])
    if not found or not driver:
        raise ConfigurationError(
            f"catalog {name!r}: uri is not a JDBC URL of {', '.join(_DRIVERS)}",
            remedy=f"as in --conf {_PREFIX}{name}.uri=jdbc:postgresql://host/database",
        )
    if driver == "sqlite":
        return f"sqlite:///{found['at']}"
    from sqlalchemy.engine import make_url

    url = make_url(f"{driver}:{found['at']}")
    user, password = own.get("jdbc.user"), own.get("jdbc.password")
    if user:
        url = url.set(username=user, password=password)
    return url.render_as_string(hide_password=False)
