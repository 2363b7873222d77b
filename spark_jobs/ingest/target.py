"""What an ingest writes to."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from bucketlog.spark_jobs.ingest.progress import TargetState, TopicEnds

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType


class IngestTarget(Protocol):
    """One sequence of batches. Of any number of ingests at once, one commits batch n, as one step
    that readers and later runs see whole."""

    @property
    def name(self) -> str:
        """For messages and the report."""
        ...

    def prepare(self, columns: "StructType") -> TargetState:
        """Make the target, or see that rows of `columns` fit; finish what a run before has begun.
        Raises `ConfigurationError`."""
        ...

    def write(
        self, rows: "DataFrame", standing: TargetState, topics: Mapping[str, TopicEnds]
    ) -> tuple[TargetState, int]:
        """Commit batch `standing.next_batch` with the end offsets `topics`; how it stands then, and
        how many rows were added. Raises `IngestConflictError`, and Spark's errors where rows cannot
        be made or written: nothing is committed then."""
        ...
