"""The schema of the `bucketlog` source: the columns of Spark's Kafka source.

Apart from `log_reader.columns`, so that planning a query does not import the decoder.
"""

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from bucketlog.log_format.errors import ConfigurationError

_HEADER = StructType([StructField("key", StringType()), StructField("value", BinaryType())])
_COLUMNS = StructType(
    [
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("offset", LongType()),
        StructField("timestamp", TimestampType()),
        StructField("timestampType", IntegerType()),
    ]
)
_HEADERS = StructField("headers", ArrayType(_HEADER))


def source_schema(*, include_headers: bool) -> StructType:
    return StructType([*_COLUMNS, _HEADERS]) if include_headers else _COLUMNS


def check_schema(wanted: StructType, *, include_headers: bool) -> None:
    """`wanted` is some columns of the source, in any order. Raises `ConfigurationError`."""
    if not wanted.fields:
        raise ConfigurationError("the schema has no column", remedy="choose one, such as offset")
    known = {field.name: field.dataType for field in source_schema(include_headers=include_headers)}
    for field in wanted:
        if known.get(field.name) != field.dataType:
            listed = ", ".join(f"{name} {kind.simpleString()}" for name, kind in known.items())
            raise ConfigurationError(
                f"the schema asks for {field.name} {field.dataType.simpleString()}",
                remedy=f"choose among {listed}; headers come with includeHeaders=true",
            )
