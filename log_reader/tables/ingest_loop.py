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
    LogPartition,
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
    """The state of a target after a batch, and the rows and dead letters that it added."""

    standing: TargetState
    rows: int
    dead_letters: int


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
    """Ingest what the log holds now and the target does not. `cores` is the number of tasks that
    run at the same time. Raises `ConfigurationError`, `IngestConflictError`, and
    `InvalidDataError` for a value that does not fit, if the target says so. Batches that were
    committed before stay."""
    if max_batch_offsets <= 0:
        raise ConfigurationError(
            f"max_batch_offsets is {max_batch_offsets}", remedy="give a number above 0"
        )
    started = time.monotonic()
    standing = first = target.prepare()
    parts = log.now(is_first=first.commit is None, fail_on_data_loss=fail_on_data_loss)
    start = begin(first.topics, parts, fail_on_data_loss=fail_on_data_loss)
    for gap in start.gaps:
        logger.warning("%s-%d: offsets %d to %d are gone", *gap[:3], gap.end - 1)
    run = _Run(log, target, cores, parts)
    at: Offsets = start.at
    until = {part.place: part.end for part in parts}
    while at != until:
        ends = next_ends(at, until, max_batch_offsets)
        standing = run.batch(standing, at, ends)
        at = ends
    return IngestReport(
        target=target.name,
        batches=run.batches,
        tasks=run.tasks,
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
        log: IngestedLog,
        target: IngestTarget,
        cores: Callable[[], int],
        parts: Sequence[LogPartition],
    ) -> None:
        self._log = log
        self._target = target
        self._cores = cores
        self._parts = parts
        self.batches = 0
        self.tasks = 0
        self.records = 0
        self.dead_letters = 0

    def batch(self, standing: TargetState, start: Offsets, end: Offsets) -> TargetState:
        reading = self._log.reading(start, end, self._parts)
        options = parse_options(reading)
        tasks = self._log.plan(options, cores=self._cores)
        if not self._log.has_records(options, tasks):
            return standing
        topics = advanced(standing.topics, self._parts, end)
        written = self._target.write(IngestBatch(reading, options, tasks), standing, topics)
        self.batches += 1
        self.tasks += len(tasks)
        self.records += written.rows
        self.dead_letters += written.dead_letters
        return written.standing
