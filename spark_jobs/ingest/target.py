"""What an ingest on Spark writes to."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from bucketlog.log_reader.tables.progress import TargetState, TopicEnds

if TYPE_CHECKING:
    from bucketlog.log_reader.tables.ingest_loop import WrittenBatch
    from bucketlog.spark_jobs.ingest.rows import BatchRecords, IngestShape


class SparkTarget(Protocol):
    """`IngestTarget` with the shape of rows and the records as Spark has them."""

    @property
    def name(self) -> str:
        """For messages and the report."""
        ...

    def prepare(self, shape: "IngestShape") -> TargetState:
        """As `IngestTarget.prepare`."""
        ...

    def write(
        self, records: "BatchRecords", standing: TargetState, topics: Mapping[str, TopicEnds]
    ) -> "WrittenBatch":
        """As `IngestTarget.write`. Also raises Spark's errors."""
        ...
