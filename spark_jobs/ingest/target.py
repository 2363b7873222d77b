"""What an ingest writes to."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol

from bucketlog.log_reader.tables.progress import TargetState, TopicEnds

if TYPE_CHECKING:
    from bucketlog.spark_jobs.ingest.rows import BatchRecords, IngestShape


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

    def prepare(self, shape: "IngestShape") -> TargetState:
        """Make the target, or see that rows of `shape` fit; finish what a run before has begun.
        Raises `ConfigurationError`."""
        ...

    def write(
        self, records: "BatchRecords", standing: TargetState, topics: Mapping[str, TopicEnds]
    ) -> WrittenBatch:
        """Commit batch `standing.next_batch` with the end offsets `topics`. Raises
        `IngestConflictError`, and Spark's errors where rows cannot be made or written: nothing is
        committed then."""
        ...
