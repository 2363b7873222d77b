"""A record becomes a row: the fields of its JSON value, where it came from, its day.

Invariant: no record is left out, and no row is made of a value that does not parse: such a value
fails the batch. A null value (a tombstone) is a row without fields, told by `_log_tombstone`.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from bucketlog.log_format.errors import ConfigurationError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

LINEAGE = {
    "_log_topic": "topic",
    "_log_partition": "partition",
    "_log_offset": "offset",
    "_log_timestamp": "timestamp",
    "_log_key": "key",
}
"""Columns that every row has, and those of the source they are."""
TOMBSTONE = "_log_tombstone"
DAY = "day"
BATCH = "_ingest_batch"
"""Of Iceberg tables alone."""
BAD_VALUE = "bucketlog: a value that does not parse"
_VALUE, _CORRUPT, _PARSED = "value", "corrupt", "parsed"
_DAY_MICROSECONDS = 24 * 60 * 60 * 1_000_000
_EXCERPT_LETTERS = 200


@dataclass(frozen=True, slots=True)
class RowShape:
    """`day_from`: the field whose day partitions the rows; None is the record's timestamp."""

    fields: "StructType"
    day_from: str | None


class BadRecord(NamedTuple):
    topic: str
    partition: int
    offset: int
    value: str


def parse_shape(json_schema: str, day_from: str | None) -> RowShape:
    """From DDL, as `id string, amount double`; needs a session. Raises `ConfigurationError`."""
    from pyspark.errors import PySparkException
    from pyspark.sql.types import StructType

    try:
        fields = StructType.fromDDL(json_schema)
    except PySparkException as error:
        raise ConfigurationError(
            f"the schema {json_schema!r} does not parse: {_reason(error)}",
            remedy="as in 'id string, amount double'",
        ) from error
    assert isinstance(fields, StructType)
    _check_fields(fields)
    if day_from is not None:
        kinds = {field.name: field.dataType.typeName() for field in fields}
        if kinds.get(day_from) not in ("timestamp", "timestamp_ntz", "date"):
            raise ConfigurationError(
                f"no day can be made of {day_from!r}",
                remedy="name a field of the schema that is a timestamp or a date",
            )
    return RowShape(fields, day_from)


def _reason(error: Exception) -> str:
    """The first line that says something."""
    return next(filter(None, map(str.strip, str(error).splitlines())), type(error).__name__)


def _check_fields(fields: "StructType") -> None:
    taken = {name.lower() for name in (*LINEAGE, TOMBSTONE, DAY, BATCH)}
    for field in fields:
        name = field.name.lower()
        if name in taken:
            raise ConfigurationError(
                f"the schema has {field.name!r} twice, or ingest has a column of that name",
                remedy="leave it out, or produce it under another name",
            )
        if not field.nullable:
            raise ConfigurationError(
                f"field {field.name!r} is NOT NULL: that is not checked",
                remedy="leave NOT NULL out; a field that a value lacks is null",
            )
        taken.add(name)


def to_rows(log: "DataFrame", shape: RowShape) -> "DataFrame":
    """Evaluating it fails with `BAD_VALUE` where a value does not parse."""
    from pyspark.sql import functions

    frame = _parsed(log, shape)
    offset = functions.when(_is_bad(frame), functions.raise_error(functions.lit(BAD_VALUE)))
    lineage = {name: frame[source] for name, source in LINEAGE.items()}
    lineage["_log_offset"] = functions.coalesce(offset.cast("bigint"), frame["offset"])
    rows = frame.select(
        *(frame[_PARSED][_VALUE][field.name].alias(field.name) for field in shape.fields),
        *(column.alias(name) for name, column in lineage.items()),
        frame[_VALUE].isNull().alias(TOMBSTONE),
    )
    return rows.withColumn(DAY, _day(rows, shape))


def first_bad_record(log: "DataFrame", shape: RowShape) -> BadRecord | None:
    """By topic, partition and offset. Reads all of `log`."""
    frame = _parsed(log, shape)
    bad = frame.where(_is_bad(frame)).orderBy("topic", "partition", "offset")
    for row in bad.select("topic", "partition", "offset", _VALUE).limit(1).collect():
        text = bytes(row[_VALUE]).decode(errors="replace")
        excerpt = text if len(text) <= _EXCERPT_LETTERS else f"{text[:_EXCERPT_LETTERS]}…"
        return BadRecord(row["topic"], row["partition"], row["offset"], excerpt)
    return None


def _parsed(log: "DataFrame", shape: RowShape) -> "DataFrame":
    """The value is read as a field of an object: by itself Spark reads the first JSON value of a
    text, and passes over what stands behind it."""
    from pyspark.sql import functions
    from pyspark.sql.types import StringType, StructField, StructType

    whole = StructType([StructField(_VALUE, shape.fields), StructField(_CORRUPT, StringType())])
    text = functions.concat(
        functions.lit(f'{{"{_VALUE}":'), log[_VALUE].cast("string"), functions.lit("}")
    )
    options = {
        "mode": "PERMISSIVE",
        "columnNameOfCorruptRecord": _CORRUPT,
        "timeZone": "UTC",
    }
    return log.withColumn(_PARSED, functions.from_json(text, whole, options))


def _is_bad(frame: "DataFrame") -> "Column":
    from pyspark.sql import functions

    parsed = frame[_PARSED]
    return frame[_VALUE].isNotNull() & (
        parsed[_VALUE].isNull()
        | parsed[_CORRUPT].isNotNull()
        | ~functions.is_valid_utf8(frame[_VALUE].cast("string"))
    )


def _day(rows: "DataFrame", shape: RowShape) -> "Column":
    """In UTC, whatever the session's time zone is."""
    from pyspark.sql import functions

    source = rows[shape.day_from or "_log_timestamp"]
    if dict(rows.dtypes)[shape.day_from or "_log_timestamp"] != "timestamp":
        return source.cast("date")
    at = functions.unix_micros(source)
    midnight = at - functions.pmod(at, functions.lit(_DAY_MICROSECONDS))
    return functions.date_from_unix_date((midnight / _DAY_MICROSECONDS).cast("int"))
