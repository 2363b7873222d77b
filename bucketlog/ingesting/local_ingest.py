"""An ingest into an Iceberg table whose tasks run in processes of this machine.

The loop, the rows and the commit are those of the ingest on Spark (`log_reader.tables`).
"""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import NamedTuple

from bucketlog.ingesting.ingest_figures import TableFigures
from bucketlog.log_format.errors import BucketError, BucketlogError, BucketRefusedError
from bucketlog.log_reader.tables.ingest_loop import (
    MAX_BATCH_LOG_OFFSETS,
    IngestBatch,
    IngestReport,
    IngestRun,
    WrittenBatch,
    whole_run,
)
from bucketlog.log_reader.tables.ingested_log import IngestedLog
from bucketlog.log_reader.tables.progress import TargetState, TopicEnds
from bucketlog.log_reader.tables.rows import RowShape
from bucketlog.log_reader.tables.table_target import TableTarget


class ShapedTarget:
    """The target of an ingest loop: a table and the shape of its rows. Each run calls `shapes`
    once, because a schema registry may have new schemas since the last run."""

    def __init__(self, table: TableTarget, shapes: Callable[[], RowShape]) -> None:
        self._table = table
        self._shapes = shapes
        self._shape: RowShape | None = None

    @property
    def name(self) -> str:
        return self._table.name

    def prepare(self) -> TargetState:
        self._shape = self._shapes()
        return self._table.prepare(self._shape)

    def write(
        self, batch: IngestBatch, standing: TargetState, topics: Mapping[str, TopicEnds]
    ) -> WrittenBatch:
        assert self._shape is not None  # the loop calls `prepare` first
        return self._table.write(batch.options, batch.tasks, self._shape, standing, topics)


class RepeatedUpkeep(NamedTuple):
    """Maintenance of a table between the runs of its ingest. `LocalIngest.follow` calls `run` after
    a run of the ingest, if at least `every_s` have passed since the last call. Errors of `run` do
    not end the ingest."""

    every_s: float
    run: Callable[[], None]


@dataclass(frozen=True)
class LocalIngest:
    """`processes` is the number of tasks that run at the same time."""

    log: IngestedLog
    target: ShapedTarget
    processes: int
    max_batch_offsets: int = MAX_BATCH_LOG_OFFSETS
    fail_on_data_loss: bool = True

    def run(self, figures: TableFigures | None = None) -> IngestReport:
        """Ingest what the log holds now. Raises the errors of `IngestRun` and of the tasks."""
        with closing(self.log):
            return self._run(figures)

    def begin(self, figures: TableFigures | None = None) -> IngestRun:
        """Begin a run, whose batches the caller writes. Raises the errors of `IngestRun`."""
        return IngestRun(
            self.log,
            self.target,
            cores=lambda: self.processes,
            max_batch_offsets=self.max_batch_offsets,
            fail_on_data_loss=self.fail_on_data_loss,
            observer=figures,
        )

    def _run(self, figures: TableFigures | None) -> IngestReport:
        return whole_run(self.begin(figures))

    def follow(
        self,
        every_s: float,
        stopped: threading.Event,
        *,
        failed: Callable[[BucketlogError | OSError], None],
        upkeep: RepeatedUpkeep | None = None,
        figures: TableFigures | None = None,
        now_s: Callable[[], float] = time.monotonic,
    ) -> Iterator[IngestReport]:
        """Run again and again until `stopped` is set. A run begins `every_s` after the last one
        began, or at once if that is over. `failed` gets an error that another run may not have, and
        each error of the upkeep; other errors are raised."""
        maintained_s = now_s()
        with closing(self.log):
            while not stopped.is_set():
                began_s, is_ingested = now_s(), False
                try:
                    yield self._run(figures)
                    is_ingested = True
                    if upkeep is not None and now_s() - maintained_s >= upkeep.every_s:
                        maintained_s = now_s()
                        upkeep.run()
                except (BucketlogError, OSError) as error:
                    if figures is not None:
                        figures.failed()
                    if not is_ingested and not _may_pass(error):
                        raise
                    self.log.close()
                    failed(error)
                stopped.wait(max(0.0, began_s + every_s - now_s()))


def _may_pass(error: BucketlogError | OSError) -> bool:
    """Whether another run may end without the error: stores and catalogs come back."""
    if isinstance(error, BucketError):
        return not isinstance(error, BucketRefusedError)
    return isinstance(error, OSError) or error.retriable
