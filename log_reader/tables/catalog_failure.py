"""Failures of an Iceberg catalog, as errors that name the table and say what to do."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from pyiceberg.exceptions import (
    BadRequestError,
    ForbiddenError,
    NoSuchIdentifierError,
    NoSuchNamespaceError,
    NoSuchPropertyException,
    NoSuchTableError,
    NotInstalledError,
    OAuthError,
    UnauthorizedError,
    ValidationError,
)

from bucketlog.log_format.errors import BucketError, ConfigurationError

_LETTERS = 300
_REMEDY = (
    "check the table's name and its catalog's settings (--catalog-property, .pyiceberg.yaml or the "
    "environment variables PYICEBERG_CATALOG__*; with Spark, the settings spark.sql.catalog.*)"
)
_ENGINES = frozenset({"pyspark", "py4j"})
"""Their errors are not those of a catalog, even if they are a `ValueError`."""
_LIBRARIES = frozenset({"pyiceberg", "sqlalchemy"})
_SETTINGS = (
    BadRequestError,
    ForbiddenError,
    ImportError,
    NoSuchIdentifierError,
    NoSuchNamespaceError,
    NoSuchPropertyException,
    NoSuchTableError,
    NotInstalledError,
    OAuthError,
    UnauthorizedError,
    ValidationError,
    ValueError,
)
"""What a catalog refuses until a name, a setting or the environment is changed."""


@contextmanager
def catalog_failures(table: str) -> Iterator[None]:
    """Failures of PyIceberg and its database become `ConfigurationError`, if a name or a setting is
    wrong, or `BucketError`. Errors of bucketlog, of Spark and of the operating system pass."""
    try:
        yield
    except Exception as error:
        library = type(error).__module__.partition(".")[0]
        if isinstance(error, _SETTINGS) and library not in _ENGINES:
            raise ConfigurationError(
                f"the catalog of {table} refuses: {_in_a_line(error)}",
                remedy=_REMEDY,
            ) from error
        if library in _LIBRARIES:
            raise BucketError(
                f"the catalog of {table} fails: {_in_a_line(error)}",
                remedy="see that the catalog and the table's files can be read and written, and "
                "run the ingest again",
            ) from error
        raise


def _in_a_line(error: Exception) -> str:
    """Without the statement that SQLAlchemy adds, and without a refused header of HTTP, which has
    the token of the catalog."""
    text = " ".join(str(error).partition("\n[SQL")[0].split()) or type(error).__name__
    text = re.sub(r"(?i)\b(header value\b).*", r"\1: not shown", text)
    return text if len(text) <= _LETTERS else f"{text[:_LETTERS]}…"
