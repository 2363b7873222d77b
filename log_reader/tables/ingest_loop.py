"""The loop of an ingest: from the target's last commit to the log's end as of the start, in
batches that are committed one by one. Spark-free.

Invariants: the target is asked before the log, so that the log is never the older of the two; a
batch is committed only with rows; offsets of a stretch without records are reached by the next
batch, or read again by the next run.
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

from bucketlog.log_format.errors import ConfigurationError
from bucketlog.log_reader.options import ReadOptions, parse_options
from bucketlog.log_reader.plan import TaskPiece
from bucketlog.log_reader.tables.ingested_log import IngestedLog
from bucketlog.log_reader.tables.progress import (
    Gap,
    Offsets,
    TargetState,
    TopicEnds,
    advanced,
    begin,
    next_ends,
)

MAX_BATCH_LOG_OFFSETS = 10_000_000
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class IngestBatch:
    """The records of a batch. `reading` are options of the source that read them, `options` the
    same, parsed. `tasks` are what to read by these options, for a target that plans nothing."""

    reading: Mapping[str, str]
    options: ReadOptions
    tasks: Sequence[Sequence[TaskPiece]]


class WrittenBatch(NamedTuple):
    """The state of a target after a batch, and the rows and dead letters that it added.
    `file_bytes` is the size of the new files. `newest_ms` is the highest timestamp of the new rows,
    None if it is not known."""

    standing: TargetState
    rows: int
    dead_letters: int
    file_bytes: int = 0
    newest_ms: int | None = None


class IngestTarget(Protocol):
    """One sequence of batches. Of any number of ingests at once, one commits batch n, as one step
    that readers and later runs see whole."""

    @property
    def name(self) -> str:
        """For messages and the report."""
        ...

    def prepare(self) -> TargetState:
        """Make the target, or see that the rows fit; finish what a run before has begun. Raises
        `ConfigurationError`."""
        ...

    def write(
        self, batch: IngestBatch, standing: TargetState, topics: Mapping[str, TopicEnds]
    ) -> WrittenBatch:
        """Commit batch `standing.next_batch` with the end offsets `topics`. Raises
        `IngestConflictError`, and the errors of reading and writing: nothing is committed then."""
        ...


class IngestObserver(Protocol):
    """Follows the runs of an ingest, such as for metrics."""

    def began(self) -> None:
        """A run begins, and has not looked at the log yet."""
        ...

    def advanced(self, lag: int, written: WrittenBatch | None) -> None:
        """A run has looked at the log, or ended a batch. `lag` is the number of offsets that this
        run has not ingested yet. `written` is None if nothing was committed."""
        ...


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
    nothing was ever committed. `tasks`: the number of tasks of all batches."""

    target: str
    batches: int
    tasks: int
    records: int
    dead_letters: int
    last_batch: int | None
    went_on_from: Literal["nothing", "commit"]
    resumed_files: int
    gaps: tuple[Gap, ...]
    recreated: tuple[str, ...]
    partitions: tuple[IngestedPartition, ...]
    seconds: float


def run_ingest(
    log: IngestedLog,
    target: IngestTarget,
    *,
    cores: Callable[[], int],
    max_batch_offsets: int = MAX_BATCH_LOG_OFFSETS,
    fail_on_data_loss: bool = True,
) -> IngestReport:
    """Ingest what the log holds now and the target does not. Raises the errors of `IngestRun`.
    Batches that were committed before stay."""
    return whole_run(
        IngestRun(
            log,
            target,
            cores=cores,
            max_batch_offsets=max_batch_offsets,
            fail_on_data_loss=fail_on_data_loss,
        )
    )


def whole_run(run: "IngestRun") -> IngestReport:
    """Write all batches of a run. Raises its errors."""
    while run.lag:
        run.write_batch()
    return run.report()


class IngestRun:
    """One run of an ingest, batch by batch. It ends where the log ended when the run began."""

    def __init__(
        self,
        log: IngestedLog,
        target: IngestTarget,
        *,
        cores: Callable[[], int],
        max_batch_offsets: int = MAX_BATCH_LOG_OFFSETS,
        fail_on_data_loss: bool = True,
        observer: IngestObserver | None = None,
    ) -> None:
        """Prepare the target, and look at the log. `cores` is the number of tasks that run at the
        same time. Raises `ConfigurationError`, `IngestConflictError`, and the log's errors."""
        if max_batch_offsets <= 0:
            raise ConfigurationError(
                f"max_batch_offsets is {max_batch_offsets}", remedy="give a number above 0"
            )
        self._started = time.monotonic()
        self._log = log
        self._target = target
        self._cores = cores
        self._max_batch_offsets = max_batch_offsets
        self._observer = observer
        if observer is not None:
            observer.began()
        log.check()  # before the target is created
        self._standing = self._first = target.prepare()
        self._parts = log.now(
            is_first=self._first.commit is None, fail_on_data_loss=fail_on_data_loss
        )
        self._start = begin(self._first.topics, self._parts, fail_on_data_loss=fail_on_data_loss)
        for gap in self._start.gaps:
            logger.warning("%s-%d: offsets %d to %d are gone", *gap[:3], gap.end - 1)
        self._at: Offsets = self._start.at
        self._until: Offsets = {part.place: part.end for part in self._parts}
        self._batches = 0
        self._tasks = 0
        self._records = 0
        self._dead_letters = 0
        self._advanced(None)

    def _advanced(self, written: WrittenBatch | None) -> None:
        if self._observer is not None:
            self._observer.advanced(self.lag, written)

    @property
    def lag(self) -> int:
        """Offsets that this run has not ingested yet. At 0, the run is complete."""
        return sum(self._until.values()) - sum(self._at.values())

    def write_batch(self) -> WrittenBatch | None:
        """Ingest the next batch. None if its offsets have no records: then nothing is committed.
        Raises `IngestConflictError`, `InvalidDataError` for a value that does not fit, if the
        target says so, and the errors of reading and writing."""
        end = next_ends(self._at, self._until, self._max_batch_offsets)
        reading = self._log.reading(self._at, end, self._parts)
        options = parse_options(reading)
        tasks = self._log.plan(options, cores=self._cores)
        if not self._log.has_records(options, tasks):
            self._at = end
            self._advanced(None)
            return None
        topics = advanced(self._standing.topics, self._parts, end)
        batch = IngestBatch(reading, options, tasks)
        written = self._target.write(batch, self._standing, topics)
        self._at, self._standing = end, written.standing
        self._batches += 1
        self._tasks += len(tasks)
        self._records += written.rows
        self._dead_letters += written.dead_letters
        self._advanced(written)
        return written

    def report(self) -> IngestReport:
        """Return the report of the batches up to now."""
        commit = self._standing.commit
        return IngestReport(
            target=self._target.name,
            batches=self._batches,
            tasks=self._tasks,
            records=self._records,
            dead_letters=self._dead_letters,
            last_batch=commit.batch if commit else None,
            went_on_from=self._first.found_in,
            resumed_files=self._first.resumed_files,
            gaps=tuple(self._start.gaps),
            recreated=tuple(self._start.recreated),
            partitions=tuple(
                IngestedPartition(topic, partition, end)
                for (topic, partition), end in self._at.items()
            ),
            seconds=round(time.monotonic() - self._started, 3),
        )
