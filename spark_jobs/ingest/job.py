"""An ingest whose tasks run on Spark: the loop of `log_reader.tables.ingest_loop` in a session."""

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from py4j.protocol import Py4JJavaError

from bucketlog.log_reader.tables.ingest_loop import (
    MAX_BATCH_LOG_OFFSETS,
    IngestBatch,
    IngestReport,
    WrittenBatch,
    run_ingest,
)
from bucketlog.log_reader.tables.ingested_log import IngestedLog
from bucketlog.log_reader.tables.progress import TargetState, TopicEnds
from bucketlog.spark_jobs.ingest.rows import BatchRecords, IngestShape
from bucketlog.spark_jobs.ingest.spark_failure import error_of_values
from bucketlog.spark_jobs.ingest.target import SparkTarget
from bucketlog.spark_jobs.source import register

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def ingest(
    spark: "SparkSession",
    log: IngestedLog,
    target: SparkTarget,
    shape: IngestShape,
    *,
    max_batch_offsets: int = MAX_BATCH_LOG_OFFSETS,
    fail_on_data_loss: bool = True,
) -> IngestReport:
    """Ingest what the log holds now and the target does not. Raises the errors of `run_ingest` and
    Spark's."""
    register(spark)
    with closing(log):
        return run_ingest(
            log,
            _InSession(spark, target, shape),
            cores=lambda: spark.sparkContext.defaultParallelism,
            max_batch_offsets=max_batch_offsets,
            fail_on_data_loss=fail_on_data_loss,
        )


@dataclass(frozen=True)
class _InSession:
    """`target` as the loop uses it."""

    spark: "SparkSession"
    target: SparkTarget
    shape: IngestShape

    @property
    def name(self) -> str:
        return self.target.name

    def prepare(self) -> TargetState:
        return self.target.prepare(self.shape)

    def write(
        self, batch: IngestBatch, standing: TargetState, topics: Mapping[str, TopicEnds]
    ) -> WrittenBatch:
        from pyspark.errors import PySparkException

        records = BatchRecords(self.spark, batch.reading, batch.options, batch.tasks, self.shape)
        try:
            return self.target.write(records, standing, topics)
        except (Py4JJavaError, PySparkException) as error:
            told = error_of_values(str(error))
            if told is None:
                raise
            raise told from error
