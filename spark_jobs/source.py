"""`spark.read.format("bucketlog")`: the log as a table, read from the bucket alone.

    spark_jobs.source.register(spark)
    spark.read.format("bucketlog").option("subscribe", "orders").load("s3://bucket/prefix")

Columns are those of Spark's Kafka source; options are in `spark_jobs.options`. The driver reads the
log once per query (a checkpoint, two listings, footers) and hands byte ranges to tasks, which read
objects and nothing else. A schema given by `.schema(...)` chooses columns: what is not asked for is
not decoded. Written to the Python data source API of Spark 4.0.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from bucketlog.errors import ConfigurationError
from bucketlog.model import TopicPartition
from metadata.checkpoint import restored
from metadata.fold import LogState, fold
from spark_jobs.options import ReadOptions, parse_options
from spark_jobs.plan import Piece, count_records, plan_tasks, resolve_ranges
from spark_jobs.schema import check_schema, source_schema
from tiered_storage.location import open_sync_bucket
from tiered_storage.log_cut import ReadablePartition, readable
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
        tasks = _plan(self._options)
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


@dataclass(frozen=True)
class Pinned:
    """Offsets of one moment. `options` pins a later read to them; `records` is what they hold by
    the footers, None where a range cuts batches. `partitions` are (topic, partition)."""

    options: dict[str, str]
    records: int | None
    partitions: tuple[tuple[str, int], ...]


def pin(options: Mapping[str, str]) -> Pinned:
    """Resolve what is to be read now, so that a growing log does not change it."""
    parsed = parse_options(options)
    view = _read(parsed)
    ranges = resolve_ranges(parsed, view.state, view.batches)
    starting: dict[str, dict[int, int]] = {}
    ending: dict[str, dict[int, int]] = {}
    for wanted in ranges:
        starting.setdefault(wanted.topic, {})[wanted.partition.partition] = wanted.start
        ending.setdefault(wanted.topic, {})[wanted.partition.partition] = wanted.end
    return Pinned(
        {"startingOffsets": json.dumps(starting), "endingOffsets": json.dumps(ending)},
        count_records(ranges, view.batches),
        tuple((wanted.topic, wanted.partition.partition) for wanted in ranges),
    )


@dataclass(frozen=True)
class _View:
    state: LogState
    batches: Mapping[TopicPartition, ReadablePartition]


def _read(options: ReadOptions) -> _View:
    bucket = open_sync_bucket(options.url, s3=options.s3)
    try:
        snapshot = read_log(bucket)
    finally:
        bucket.close()
    if snapshot.is_empty:
        raise ConfigurationError(
            f"there is no log at {options.url}, or it is empty",
            remedy="check the path; `bucketlog dev --data DIR` keeps its bucket in DIR/bucket",
        )
    before = restored(snapshot.checkpoint, keep_producers=False, keep_groups=False)
    return _View(fold(snapshot.segments, onto=before), readable(snapshot))


def _plan(options: ReadOptions) -> list[tuple[Piece, ...]]:
    view = _read(options)
    return plan_tasks(
        resolve_ranges(options, view.state, view.batches),
        view.batches,
        max_partition_bytes=options.max_partition_bytes,
        min_partitions=options.min_partitions,
    )
