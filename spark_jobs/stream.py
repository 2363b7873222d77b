"""`spark.readStream.format("bucketlog")`: micro-batches straight from the bucket.

Spark keeps the ends of micro-batches in the query's checkpoint and asks for each by its start and
end; where the first began is in its end, for Spark does not keep it. What is between two
offsets of a log never changes, so that a batch that is run again reads the same records.
Exactly-once comes from there; this side loses nothing and passes nothing twice
(`spark_jobs.progress`).

Spark 4.0 and 4.1 say neither the start nor a limit when they ask for the latest offset. They do ask
for the tasks of an empty batch when a query starts again from its checkpoint, and for those of each
batch, which is how the last end is known here. From 4.2 on both are given, and `availableNow` is
told.
"""

import importlib
import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from bucketlog.log_format.errors import DataLossError
from bucketlog.log_format.model import TopicId
from bucketlog.log_reader.options import ReadOptions, check_stream, open_log
from bucketlog.log_reader.planning import (
    LogFollower,
    SelectedLog,
    look_up_times,
    no_collection,
    tasks_of,
    with_segments,
)
from bucketlog.log_reader.ranges import resolve_starts
from bucketlog.spark_jobs.progress import (
    Report,
    StreamProgress,
    advanced,
    between,
    waiting_offsets,
)
from bucketlog.spark_jobs.schema import check_schema
from bucketlog.spark_jobs.task import Task, read_task
from bucketlog.tiered_storage.bucket import SyncBucket

if TYPE_CHECKING:
    import pyarrow as pa

logger = logging.getLogger(__name__)

_MIXINS: tuple[Any, ...] = ()
try:  # Spark 4.2
    _limits: Any = importlib.import_module("pyspark.sql.streaming.datasource")
    _MIXINS = (_limits.SupportsTriggerAvailableNow,)
except ImportError:
    _limits = None


class _Source:
    """The bucket as one query sees it. `look` asks it again unless it was asked less than
    `poll_interval_ms` ago and what it said then is enough."""

    def __init__(self, options: ReadOptions, clock: Callable[[], float]) -> None:
        self.bucket: SyncBucket = open_log(options)
        self._follower = LogFollower(self.bucket, options)
        self._interval_s = options.poll_interval_ms / 1000
        self._clock = clock
        self.seen: SelectedLog | None = None
        self._seen_at = 0.0

    def look(self, *, present_only: bool = True) -> SelectedLog:
        self.seen = self._follower.look(present_only=present_only)
        self._seen_at = self._clock()
        return self.seen

    def wait_s(self) -> float:
        """Until the bucket may be asked again."""
        return max(self._seen_at + self._interval_s - self._clock(), 0.0)


class BucketlogStreamReader(DataSourceStreamReader, *_MIXINS):  # type: ignore[misc] # as found
    """All but `read` runs on the driver, in one process for as long as the query runs. Raises
    `BucketlogError`s."""

    def __init__(
        self,
        options: ReadOptions,
        schema: StructType,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._options = options
        self._schema = schema
        self._names = schema.fieldNames()
        self._clock = clock
        self._sleep = sleep
        self._opened: _Source | None = None
        self._initial: StreamProgress | None = None
        self._reached: StreamProgress | None = None
        self._target: StreamProgress | None = None
        self._triggered_s: float | None = None

    @property
    def _source(self) -> _Source:
        if self._opened is None:
            # not where the reader is made: Spark hides what is raised there
            check_stream(self._options)
            check_schema(self._schema, include_headers=self._options.include_headers)
            self._opened = _Source(self._options, self._clock)
        return self._opened

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        return self._begin().to_json()

    def _begin(self) -> StreamProgress:
        """Where a new query begins; decided once."""
        if self._initial is None:
            options, source = self._options, self._source
            log = source.look(present_only=False)
            starting = options.starting or "latest"
            times = look_up_times(source.bucket, options, log, [starting])
            starts = resolve_starts(starting, log.selected, log.parts, times, self._report)
            self._initial = StreamProgress.at(starts)
        return self._initial

    def latestOffset(self, start: Any = None, limit: Any = None) -> dict[str, Any]:  # noqa: N802 - Spark's name
        if start is not None:
            self._reached = self._progress(start)
        current = self._reached if self._reached is not None else self._begin()
        most = self._options.max_offsets_per_trigger
        if _limits is not None:
            most = limit.max_rows if isinstance(limit, _limits.ReadMaxRows) else None
        latest = self._latest(current, most)
        if latest != current:
            self._triggered_s = self._clock()
        if current is self._initial or current == self._initial:
            latest = replace(latest, began=current.topics)
        return latest.to_json()

    def _latest(self, current: StreamProgress, most: int | None) -> StreamProgress:
        source = self._source
        if self._target is not None:
            seen = source.seen or source.look()
            return self._target.capped(advanced(current, seen.selected, seen.parts, most))
        if source.seen is not None:
            found = self._worthwhile(current, source.seen, most)
            if found != current and source.wait_s() > 0:
                return found
            self._sleep(source.wait_s())
        return self._worthwhile(current, source.look(), most)

    def _worthwhile(
        self, current: StreamProgress, log: SelectedLog, most: int | None
    ) -> StreamProgress:
        """Return the end of the next micro-batch. Return `current` if fewer offsets wait than a
        micro-batch should have, and the last one began less than the longest delay ago."""
        found = advanced(current, log.selected, log.parts, most)
        least = self._options.min_offsets_per_trigger
        if least is not None and self._triggered_s is not None:
            since_ms = (self._clock() - self._triggered_s) * 1000
            is_late = since_ms >= self._options.max_trigger_delay_ms
            if not is_late and waiting_offsets(current, log.selected, log.parts) < least:
                return current
        return found

    def _progress(self, found: Any) -> StreamProgress:
        """Return the progress that Spark kept in the checkpoint. Raises `ConfigurationError`."""
        return StreamProgress.from_json(found, self._topic_ids)

    def _topic_ids(self) -> dict[str, TopicId]:
        log = self._source.seen or self._source.look()
        return {each.topic: each.partition.topic_id for each in log.selected}

    def getDefaultReadLimit(self) -> Any:  # noqa: N802 - Spark's name
        """Spark 4.2 and later."""
        most = self._options.max_offsets_per_trigger
        return _limits.ReadAllAvailable() if most is None else _limits.ReadMaxRows(most)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Spark 4.2 and later: what is there now is all that the query reads."""
        log = self._source.look()
        self._target = advanced(StreamProgress({}), log.selected, log.parts, None)

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802 - Spark's name
        """Spark 4.2 and later: the end of the log, for the query's progress."""
        seen = self._source.seen
        if seen is None:
            return None
        return advanced(StreamProgress({}), seen.selected, seen.parts, None).to_json()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        first, last = self._progress(start), self._progress(end)
        self._reached = last
        if first == last:
            return []
        if last.began is not None:
            first = StreamProgress(last.began)
        source = self._source
        with no_collection():
            log = source.seen
            if log is None or not last.is_within(log.selected, log.parts):
                log = source.look()
            ranges = between(first, last, log.selected, log.parts, self._report)
            parts = with_segments(source.bucket, ranges, log.parts)
            return [Task.of(each) for each in tasks_of(source.bucket, self._options, ranges, parts)]

    def read(self, partition: InputPartition) -> Iterator["pa.RecordBatch"]:
        assert isinstance(partition, Task)
        return read_task(self._options, self._names, partition)

    def commit(self, end: dict[str, Any]) -> None:
        """Do nothing: Spark keeps the progress in the checkpoint of the query."""

    def stop(self) -> None:
        if self._opened is not None:
            self._opened.bucket.close()
            self._opened = None

    @property
    def _report(self) -> Report:
        return _refuse if self._options.fail_on_data_loss else _warn


def _refuse(text: str) -> None:
    raise DataLossError(
        f"{text}: records may have been missed",
        remedy="set failOnDataLoss=false to continue with what is there, or begin again with a new "
        "checkpointLocation and a new place to write to",
    )


def _warn(text: str) -> None:
    logger.warning("%s: records may have been missed (failOnDataLoss=false)", text)
