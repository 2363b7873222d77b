"""The durations of the steps between a batch's arrival and its acknowledgement, for the metrics.

Each flush adds one duration to each step. Nothing is counted per record.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from bucketlog.tiered_storage.counting import DurationHistogram


@dataclass(slots=True)
class StepDurations:
    """Histograms of the durations by step. `waiting`: from the arrival of a flush's oldest batch to
    the flush. `put`: the PUT with all retries. `publish`: from the end of the PUT, including the
    wait for earlier segments of the chain."""

    waiting: DurationHistogram = field(default_factory=DurationHistogram)
    reserve: DurationHistogram = field(default_factory=DurationHistogram)
    put: DurationHistogram = field(default_factory=DurationHistogram)
    publish: DurationHistogram = field(default_factory=DurationHistogram)

    def by_step(self) -> Iterator[tuple[str, DurationHistogram]]:
        """Return the steps in their order, with the values of the metric's label."""
        yield from (
            ("waiting", self.waiting),
            ("reserve", self.reserve),
            ("put", self.put),
            ("publish", self.publish),
        )
