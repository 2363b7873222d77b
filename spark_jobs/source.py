"""`format("bucketlog")`: the log as a table, or as a stream, read from the bucket alone.

    bucketlog.spark_jobs.source.register(spark)
    spark.read.format("bucketlog").option("subscribe", "orders").load("s3://bucket/prefix")
    spark.readStream.format("bucketlog").option("subscribe", "orders").load("s3://bucket/prefix")

Columns are those of Spark's Kafka source; options are in `log_reader.options`. The driver reads the
log once per query (a checkpoint, two listings, footers; of the tiers that are needed the manifests,
and the indexes of objects to cut) and hands byte ranges to tasks, which read objects and nothing
else. A schema given by `.schema(...)` chooses columns: what is not asked for is not decoded.
Written to the Python data source API of Spark 4.0.
"""

import logging
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from bucketlog.log_reader.options import ReadOptions, check_batch, open_log, parse_options
from bucketlog.log_reader.planning import no_collection, planned_tasks
from bucketlog.log_reader.requests import report_planning
from bucketlog.spark_jobs.reused_worker import ease_next_task
from bucketlog.spark_jobs.schema import check_schema, source_schema
from bucketlog.spark_jobs.stream import BucketlogStreamReader
from bucketlog.spark_jobs.task import Task, read_task

if TYPE_CHECKING:
    import pyarrow as pa

logger = logging.getLogger(__name__)

FORMAT = "bucketlog"


def register(spark: SparkSession) -> None:
    """Make `format("bucketlog")` known to a session.

    The Python processes of a local session (`local`, `local[4]`) are of the Python that calls this
    function, unless PYSPARK_PYTHON names another one. Spark would take `python3` of the PATH, which
    may have neither pyspark nor bucketlog.
    """
    context = spark.sparkContext
    master = context.master or ""
    is_local = master == "local" or master.startswith("local[")
    if is_local and "PYSPARK_PYTHON" not in os.environ:
        context.pythonExec = sys.executable
    spark.dataSource.register(BucketlogSource)


class BucketlogSource(DataSource):
    """Options are checked before anything else. Raises `ConfigurationError`."""

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        self._options = parse_options(options)
        ease_next_task()  # Spark makes a source in a worker that will make others

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> StructType:
        return source_schema(include_headers=self._options.include_headers)

    def reader(self, schema: StructType) -> "BucketlogReader":
        check_batch(self._options)
        check_schema(schema, include_headers=self._options.include_headers)
        self._warn_of_ignored()
        return BucketlogReader(self._options, schema)

    def streamReader(self, schema: StructType) -> BucketlogStreamReader:  # noqa: N802 - Spark's name
        self._warn_of_ignored()
        return BucketlogStreamReader(self._options, schema)

    def _warn_of_ignored(self) -> None:
        if self._options.ignored:
            logger.warning(
                "options without effect: %s: this source reads the bucket, and no broker",
                ", ".join(self._options.ignored),
            )


class BucketlogReader(DataSourceReader):
    """`partitions` runs on the driver, `read` in a task. Raises `BucketlogError`s.

    Filters are not taken from Spark: where one frame is used with two filters, it would give both
    what the last one left (docs/decisions/0010)."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self.options = options
        self._names = schema.fieldNames()

    def partitions(self) -> list[InputPartition]:
        options = self.options
        with no_collection(), report_planning(open_log(options), options.url) as planning:
            planning.tasks = planned_tasks(planning.bucket, options)
            tasks = [Task.of(pieces) for pieces in planning.tasks] or [Task.of(())]
        ease_next_task()
        return list(tasks)

    def read(self, partition: InputPartition) -> Iterator["pa.RecordBatch"]:
        assert isinstance(partition, Task)
        return read_task(self.options, self._names, partition)
