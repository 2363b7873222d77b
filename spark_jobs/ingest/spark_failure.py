"""What Spark failed with, in a line: what failed, the cause, what to do. Pure."""

import re
from collections.abc import Mapping

from bucketlog.log_format.errors import (
    BucketlogError,
    InvalidDataError,
    SchemaRegistryError,
    SchemaRegistryUnavailableError,
)
from bucketlog.log_reader.tables.registry_formats.values import NewerSchemaError

_LETTERS = 300
_OWN_ERROR = re.compile(r"^bucketlog(?:\.\w+)*\.\w+Error: (.+)", re.MULTILINE)
"""Raised in a Python worker: the end of the stack trace that Spark's text repeats."""
_ENDS_RUN: Mapping[str, type[BucketlogError]] = {
    each.__name__: each
    for each in (
        InvalidDataError,
        NewerSchemaError,
        SchemaRegistryError,
        SchemaRegistryUnavailableError,
    )
}
_IN_WORKER = re.compile(rf"^bucketlog(?:\.\w+)*\.({'|'.join(_ENDS_RUN)}): (.+)", re.MULTILINE)
_CAUSE = "Caused by: "
_PACKAGE = re.compile(r"^(?:[a-z]\w*\.)+(?=[A-Z])")
_NAME_REMEDY = (
    "name the table as catalog.database.table, and configure its catalog: "
    "--conf spark.sql.catalog.<catalog>=org.apache.iceberg.spark.SparkCatalog and what it needs"
)
_REMEDIES = (
    (
        r"No FileSystem for scheme|fs\.s3a\.\w+ not found",
        "give Spark the jars of hadoop-aws, see docs/spark.md: --conf spark.jars=…",
    ),
    (
        r"Cannot find catalog plugin class|data source: iceberg",
        "give Spark the jar of Iceberg, see docs/spark.md: --conf spark.jars=…; and name a table "
        "of an Iceberg catalog: catalog.database.table",
    ),
    (
        r"SINGLE_PART_NAMESPACE|CATALOG_NOT_FOUND|SCHEMA_NOT_FOUND|INVALID_IDENTIFIER|PARSE_|"
        r"IDENTIFIER_TOO_MANY_NAME_PARTS",
        _NAME_REMEDY,
    ),
    (
        r"Mkdirs failed|ParentNotDirectory|NotADirectory|AccessDenied|AccessControlException|"
        r"Permission denied|Read-only file system",
        "give a target that Spark may write to",
    ),
)


def in_a_line(text: str) -> str:
    """`text` is what the exception says of itself, stack traces and all."""
    own = _OWN_ERROR.search(text)
    if own:
        return own.group(1)
    lines = [line.strip().removeprefix(": ") for line in text.splitlines() if line.strip()]
    if len(lines) > 1 and lines[0].startswith("An error occurred while calling"):
        del lines[0]
    causes = [line.removeprefix(_CAUSE) for line in lines if line.startswith(_CAUSE)]
    told = [*lines[:1], *causes[-1:]]
    if len(told) > 1 and told[1] in told[0]:
        del told[1]
    return f"{'; '.join(_shortened(line) for line in told)} ({_remedy(text)})"


def error_of_values(text: str) -> BucketlogError | None:
    """Return the error of a Python worker that could not make rows of the values. Return None if
    `text` has no such error. The message contains the remedy."""
    found = _IN_WORKER.search(text)
    return None if found is None else _ENDS_RUN[found.group(1)](found.group(2))


def _remedy(text: str) -> str:
    for pattern, remedy in _REMEDIES:
        if re.search(pattern, text):
            return remedy
    return "what was committed before stays; Spark's own log tells more"


def _shortened(line: str) -> str:
    line = _PACKAGE.sub("", line)
    return line if len(line) <= _LETTERS else f"{line[:_LETTERS]}…"
