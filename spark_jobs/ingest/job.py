"""The loop of an ingest: from the target's last commit to the log's end as of the start, in
batches that are committed one by one.

Invariants: the target is asked before the log, so that the log is never the older of the two; a
batch is committed only with rows (what an Iceberg conflict is seen by); offsets of a stretch
without records are reached by the next batch, or read again by the next run.
"""

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from py4j.protocol import Py4JJavaError

from bucketlog.log_format.errors import ConfigurationError, InvalidDataError
from bucketlog.spark_jobs.ingest.moment import IngestedLog, has_records
from bucketlog.spark_jobs.ingest.progress import (
    Gap,
    LogPartition,
    Offsets,
    TargetState,
    advanced,
    begin,
    next_ends,
)
from bucketlog.spark_jobs.ingest.rows import BAD_VALUE, RowShape, first_bad_record, to_rows
from bucketlog.spark_jobs.ingest.target import IngestTarget
from bucketlog.spark_jobs.source import FORMAT, register

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

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
    """`went_on_from`: what told where to go on (see `TargetState`). `gaps` and `recreated` are
    empty unless losses were allowed. `last_batch` None: nothing was ever committed."""

    target: str
    batches: int
    records: int
    last_batch: int | None
    went_on_from: Literal["nothing", "commit", "rows"]
    resumed_files: int
    gaps: tuple[Gap, ...]
    recreated: tuple[str, ...]
    partitions: tuple[IngestedPartition, ...]
    seconds: float


def ingest(
    spark: "SparkSession",
    log: IngestedLog,
    target: IngestTarget,
    shape: RowShape,
    *,
    max_batch_offsets: int = MAX_BATCH_LOG_OFFSETS,
    fail_on_data_loss: bool = True,
) -> IngestReport:
    """Ingest what the log holds now and the target does not. Raises `ConfigurationError`,
    `InvalidDataError` for the first value that does not parse, `IngestConflictError`; batches that
    were committed before stay."""
    if max_batch_offsets <= 0:
        raise ConfigurationError(
            f"max_batch_offsets is {max_batch_offsets}", remedy="give a number above 0"
        )
    register(spark)
    started = time.monotonic()
    columns = to_rows(_load(spark, _no_records(log)), shape).schema
    standing = first = target.prepare(columns)
    if first.found_in == "rows":
        logger.warning(
            "%s: no snapshot is left that tells the offsets of an ingest; it goes on after the "
            "highest offset of each partition's rows",
            target.name,
        )
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
        shape: RowShape,
        parts: Sequence[LogPartition],
    ) -> None:
        self._spark = spark
        self._log = log
        self._target = target
        self._shape = shape
        self._parts = parts
        self.batches = 0
        self.records = 0

    def batch(self, standing: TargetState, start: Offsets, end: Offsets) -> TargetState:
        from pyspark.errors import PySparkException

        reading = self._log.reading(start, end)
        if not has_records(reading):
            return standing
        records = _load(self._spark, reading)
        topics = advanced(standing.topics, self._parts, end)
        try:
            standing, added = self._target.write(to_rows(records, self._shape), standing, topics)
        except (Py4JJavaError, PySparkException) as error:
            if BAD_VALUE in str(error):
                raise self._bad_value(records) from error
            raise
        self.batches += 1
        self.records += added
        return standing

    def _bad_value(self, records: "DataFrame") -> InvalidDataError:
        bad = first_bad_record(records, self._shape)
        assert bad is not None
        return InvalidDataError(
            f"topic {bad.topic!r} partition {bad.partition} offset {bad.offset}: the value is no "
            f"JSON object of the schema: {bad.value!r}",
            remedy="give a schema that all values fit; nothing of this batch was committed",
        )


def _load(spark: "SparkSession", reading: Mapping[str, str]) -> "DataFrame":
    return spark.read.format(FORMAT).options(**reading).load()


def _no_records(log: IngestedLog) -> dict[str, str]:
    return log.reading({}, {})
