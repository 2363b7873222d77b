"""The loop of an ingest: from the target's last commit to the log's end as of the start, in
batches that are committed one by one.

Invariants: the target is asked before the log, so that the log is never the older of the two; a
batch is committed only with rows; offsets of a stretch without records are reached by the next
batch, or read again by the next run.
"""

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from py4j.protocol import Py4JJavaError

from bucketlog.log_format.errors import ConfigurationError, InvalidDataError
from bucketlog.log_reader.options import parse_options
from bucketlog.log_reader.replay_plan import plan_batch
from bucketlog.log_reader.tables.progress import (
    Gap,
    LogPartition,
    Offsets,
    TargetState,
    advanced,
    begin,
    next_ends,
)
from bucketlog.spark_jobs.ingest.moment import IngestedLog, has_records
from bucketlog.spark_jobs.ingest.rows import BatchRecords, IngestShape
from bucketlog.spark_jobs.ingest.spark_failure import invalid_data
from bucketlog.spark_jobs.ingest.target import IngestTarget
from bucketlog.spark_jobs.source import register

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MAX_BATCH_LOG_OFFSETS = 10_000_000
logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class IngestedPartition:
    """`end` is the next offset to ingest."""

    topic: str
    partition: int
    end: int


@dataclass(frozen=True, slots=True)
class IngestReport:
    """`records` are rows that were added. `went_on_from`: what told where to continue (see
    `TargetState`). `gaps` and `recreated` are empty unless losses were allowed. `last_batch` None:
    nothing was ever committed."""

    target: str
    batches: int
    records: int
    dead_letters: int
    last_batch: int | None
    went_on_from: Literal["nothing", "commit"]
    resumed_files: int
    gaps: tuple[Gap, ...]
    recreated: tuple[str, ...]
    partitions: tuple[IngestedPartition, ...]
    seconds: float


def ingest(
    spark: "SparkSession",
    log: IngestedLog,
    target: IngestTarget,
    shape: IngestShape,
    *,
    max_batch_offsets: int = MAX_BATCH_LOG_OFFSETS,
    fail_on_data_loss: bool = True,
) -> IngestReport:
    """Ingest what the log holds now and the target does not. Raises `ConfigurationError`,
    `IngestConflictError`, and `InvalidDataError` for a value that does not fit, if the shape says
    so. Batches that were committed before stay."""
    if max_batch_offsets <= 0:
        raise ConfigurationError(
            f"max_batch_offsets is {max_batch_offsets}", remedy="give a number above 0"
        )
    register(spark)
    started = time.monotonic()
    standing = first = target.prepare(shape)
    parts = log.now(is_first=first.commit is None, fail_on_data_loss=fail_on_data_loss)
    start = begin(first.topics, parts, fail_on_data_loss=fail_on_data_loss)
    for gap in start.gaps:
        logger.warning("%s-%d: offsets %d to %d are gone", *gap[:3], gap.end - 1)
    run = _Run(spark, log, target, shape, parts)
    at: Offsets = start.at
    until = {part.place: part.end for part in parts}
    while at != until:
        ends = next_ends(at, until, max_batch_offsets)
        standing = run.batch(standing, at, ends)
        at = ends
    return IngestReport(
        target=target.name,
        batches=run.batches,
        records=run.records,
        dead_letters=run.dead_letters,
        last_batch=standing.commit.batch if standing.commit else None,
        went_on_from=first.found_in,
        resumed_files=first.resumed_files,
        gaps=tuple(start.gaps),
        recreated=tuple(start.recreated),
        partitions=tuple(
            IngestedPartition(topic, partition, end) for (topic, partition), end in at.items()
        ),
        seconds=round(time.monotonic() - started, 3),
    )


class _Run:
    def __init__(
        self,
        spark: "SparkSession",
        log: IngestedLog,
        target: IngestTarget,
        shape: IngestShape,
        parts: Sequence[LogPartition],
    ) -> None:
        self._spark = spark
        self._log = log
        self._target = target
        self._shape = shape
        self._parts = parts
        self.batches = 0
        self.records = 0
        self.dead_letters = 0

    def batch(self, standing: TargetState, start: Offsets, end: Offsets) -> TargetState:
        from pyspark.errors import PySparkException

        reading = self._log.reading(start, end, self._parts)
        options = parse_options(reading)
        tasks = plan_batch(options, cores=self._cores)
        if not has_records(options, tasks):
            return standing
        records = BatchRecords(self._spark, reading, options, tasks, self._shape)
        topics = advanced(standing.topics, self._parts, end)
        try:
            written = self._target.write(records, standing, topics)
        except (Py4JJavaError, PySparkException) as error:
            told = invalid_data(str(error))
            if told is None:
                raise
            raise InvalidDataError(told) from error
        self.batches += 1
        self.records += written.rows
        self.dead_letters += written.dead_letters
        return written.standing

    def _cores(self) -> int:
        return self._spark.sparkContext.defaultParallelism
