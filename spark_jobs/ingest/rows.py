"""The rows of an ingest, as Spark has them: a schema by DDL, and a frame of rows.

What becomes of a record is decided in `log_reader.tables.rows`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from bucketlog.log_format.errors import ConfigurationError
from bucketlog.log_reader.options import ReadOptions
from bucketlog.log_reader.plan import TaskPiece
from bucketlog.log_reader.tables.conversions import TimeRules
from bucketlog.log_reader.tables.rows import (
    DAY,
    SOURCE_COLUMNS,
    TOMBSTONE,
    BadRecords,
    RowMaker,
    RowShape,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FORMAT = "bucketlog"
_LINEAGE = StructType(
    [
        StructField("_log_topic", StringType()),
        StructField("_log_partition", IntegerType()),
        StructField("_log_offset", LongType()),
        StructField("_log_timestamp", TimestampType()),
        StructField("_log_key", BinaryType()),
        StructField(TOMBSTONE, BooleanType(), nullable=False),
        StructField(DAY, DateType()),
    ]
)
_SIMPLE: Mapping[type[DataType], pa.DataType] = {
    StringType: pa.string(),
    BooleanType: pa.bool_(),
    ByteType: pa.int8(),
    ShortType: pa.int16(),
    IntegerType: pa.int32(),
    LongType: pa.int64(),
    FloatType: pa.float32(),
    DoubleType: pa.float64(),
    BinaryType: pa.binary(),
    DateType: pa.date32(),
    TimestampType: pa.timestamp("us", tz="UTC"),
    TimestampNTZType: pa.timestamp("us"),
}
_SPARK: Mapping[pa.DataType, DataType] = {kind: each() for each, kind in _SIMPLE.items()}


@dataclass(frozen=True, slots=True)
class IngestShape:
    """The schema as Spark has it, and the same with the rules for its values."""

    fields: StructType
    rows: RowShape

    @classmethod
    def of(cls, rows: RowShape) -> "IngestShape":
        return cls(StructType([_spark_field(each) for each in rows.fields]), rows)

    @property
    def columns(self) -> StructType:
        """Of a row, without the number of its batch."""
        return StructType([*self.fields, *_LINEAGE])


def parse_shape(
    json_schema: str,
    day_from: str | None,
    *,
    times: TimeRules | None = None,
    bad_records: BadRecords = "fail",
) -> IngestShape:
    """From DDL, as `id string, amount double`; needs a session. Raises `ConfigurationError`."""
    from pyspark.errors import PySparkException

    try:
        fields = StructType.fromDDL(json_schema)
    except PySparkException as error:
        raise ConfigurationError(
            f"the schema {json_schema!r} does not parse: {_reason(error)}",
            remedy="as in 'id string, amount double'",
        ) from error
    assert isinstance(fields, StructType)
    typed = pa.schema([_arrow_field(field, field.name) for field in fields])
    shape = RowShape(typed, day_from, times or TimeRules(), bad_records)
    return IngestShape(fields, shape)


def _reason(error: Exception) -> str:
    """The first line that says something."""
    return next(filter(None, map(str.strip, str(error).splitlines())), type(error).__name__)


def _arrow_field(field: StructField, path: str) -> pa.Field:
    if not field.nullable:
        raise ConfigurationError(
            f"field {path!r} is NOT NULL: that is not checked",
            remedy="leave NOT NULL out; a field that a value lacks is null",
        )
    return pa.field(field.name, _arrow_type(field.dataType, path))


def _arrow_type(kind: DataType, path: str) -> pa.DataType:
    match kind:
        case StructType():
            return pa.struct([_arrow_field(each, f"{path}.{each.name}") for each in kind])
        case ArrayType():
            return pa.list_(_arrow_type(kind.elementType, f"{path}[]"))
        case MapType():
            return pa.map_(
                _arrow_type(kind.keyType, f"{path} key"), _arrow_type(kind.valueType, f"{path}{{}}")
            )
        case DecimalType():
            return pa.decimal128(kind.precision, kind.scale)
    found = _SIMPLE.get(type(kind))
    if found is None:
        raise ConfigurationError(
            f"field {path!r} has the type {kind.simpleString()}, which is not supported",
            remedy="see the table of conversions in docs/lake.md",
        )
    return found


def _spark_field(field: pa.Field) -> StructField:
    return StructField(field.name, _spark_type(field.type))


def _spark_type(kind: pa.DataType) -> DataType:
    """The reverse of `_arrow_type`."""
    if pa.types.is_struct(kind):
        return StructType([_spark_field(each) for each in kind])
    if pa.types.is_list(kind):
        return ArrayType(_spark_type(kind.value_type))
    if pa.types.is_map(kind):
        return MapType(_spark_type(kind.key_type), _spark_type(kind.item_type))
    if pa.types.is_decimal(kind):
        return DecimalType(kind.precision, kind.scale)
    return _SPARK[kind]


@dataclass(frozen=True)
class BatchRecords:
    """The records of a batch. `reading` are options of the source that read them, `options` the
    same, parsed. `tasks` are what to read by these options, for a target that plans nothing."""

    spark: "SparkSession"
    reading: Mapping[str, str]
    options: ReadOptions
    tasks: Sequence[Sequence[TaskPiece]]
    shape: IngestShape

    def rows(self) -> "DataFrame":
        """Evaluating the frame fails for a value that does not fit, if the shape says so."""
        records = self.spark.read.format(_FORMAT).options(**self.reading).load()
        chosen = records.select(*SOURCE_COLUMNS)
        return chosen.mapInArrow(_MakeRows(self.shape.rows), self.shape.columns)


@dataclass(frozen=True)
class _MakeRows:
    """What `mapInArrow` calls in a worker."""

    shape: RowShape

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        maker = RowMaker(self.shape)
        for batch in batches:
            yield maker.rows(batch).rows
