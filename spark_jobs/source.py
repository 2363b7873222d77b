"""`spark.read.format("bucketlog")`: the log as a table, read from the bucket alone.

    spark_jobs.source.register(spark)
    spark.read.format("bucketlog").option("subscribe", "orders").load("s3://bucket/prefix")

Columns are those of Spark's Kafka source; options are in `spark_jobs.options`. The driver reads the
log once per query (two listings, the footers) and hands byte ranges to tasks, which read objects
and nothing else. A schema given by `.schema(...)` chooses columns: what is not asked for is not
decoded. Written to the Python data source API of Spark 4.0.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from metadata.fold import fold
from spark_jobs.options import ReadOptions, parse_options
from spark_jobs.plan import Piece, plan_tasks, resolve_ranges
from spark_jobs.schema import check_schema, source_schema
from tiered_storage.location import open_sync_bucket
from tiered_storage.log_cut import readable
from tiered_storage.log_reader import read_log

if TYPE_CHECKING:
    import pyarrow as pa

FORMAT = "bucketlog"


def register(spark: SparkSession) -> None:
    """Make `format("bucketlog")` known to a session."""
    spark.dataSource.register(BucketlogSource)


@dataclass
class Task(InputPartition):
    """What one Spark task reads; travels to an executor by pickle."""

    pieces: tuple[Piece, ...]


class BucketlogSource(DataSource):
    """Options are checked before anything else. Raises `ConfigurationError`."""

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        self._options = parse_options(options)

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> StructType:
        return source_schema(include_headers=self._options.include_headers)

    def reader(self, schema: StructType) -> "BucketlogReader":
        check_schema(schema, include_headers=self._options.include_headers)
        return BucketlogReader(self._options, schema)


class BucketlogReader(DataSourceReader):
    """`partitions` runs on the driver, `read` in a task. Raises `BucketlogError`s."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options = options
        self._names = schema.fieldNames()

    def partitions(self) -> list[InputPartition]:
        tasks = plan(self._options)
        return [Task(pieces) for pieces in tasks] or [Task(())]

    def read(self, partition: InputPartition) -> Iterator["pa.RecordBatch"]:
        assert isinstance(partition, Task)
        if not partition.pieces:
            return
        from spark_jobs.fetch import read_pieces  # only tasks pay for importing the decoder

        bucket = open_sync_bucket(self._options.url, s3=self._options.s3)
        try:
            yield from read_pieces(
                bucket,
                partition.pieces,
                self._names,
                max_decompressed_bytes=self._options.max_decompressed_bytes,
            )
        finally:
            bucket.close()


def plan(options: ReadOptions) -> list[tuple[Piece, ...]]:
    """Read the log's index and divide what is wanted into tasks."""
    bucket = open_sync_bucket(options.url, s3=options.s3)
    try:
        snapshot = read_log(bucket)
    finally:
        bucket.close()
    batches = readable(snapshot)
    return plan_tasks(
        resolve_ranges(options, fold(snapshot.segments), batches),
        batches,
        {index.segment: index.ticket for index in snapshot.segments},
        max_partition_bytes=options.max_partition_bytes,
        min_partitions=options.min_partitions,
    )
