"""What filters on topic, partition, offset and timestamp leave of a plan. Pure.

Invariant: pruning leaves every record that a filter lets through; Spark still applies the filters,
so that what cannot be said in ranges may stay. A batch goes by the highest timestamp in its header,
as Kafka's own look-ups by time do.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from bucketlog.model import MAX_OFFSET, TopicPartition
from spark_jobs.ranges import OffsetRange
from tiered_storage.log_cut import ReadablePartition

Comparison: TypeAlias = Literal["=", "<", "<=", ">", ">="]
COLUMNS = ("topic", "partition", "offset", "timestamp")


@dataclass(frozen=True, slots=True)
class Pruning:
    """None: any. Offsets from `offset_from` on and before `offset_until`; records since
    `timestamp_from_ms`."""

    topics: frozenset[str] | None = None
    partitions: frozenset[int] | None = None
    offset_from: int = 0
    offset_until: int = MAX_OFFSET + 1
    timestamp_from_ms: int | None = None

    def with_topics(self, names: Iterable[str]) -> "Pruning":
        found = frozenset(names)
        return replace(self, topics=found if self.topics is None else self.topics & found)

    def with_partitions(self, numbers: Iterable[int]) -> "Pruning":
        found = frozenset(numbers)
        both = found if self.partitions is None else self.partitions & found
        return replace(self, partitions=both)

    def with_offset(self, comparison: Comparison, value: int) -> "Pruning":
        first, until = self.offset_from, self.offset_until
        if comparison in ("=", ">=", ">"):
            first = max(first, value + (comparison == ">"))
        if comparison in ("=", "<=", "<"):
            until = min(until, value + (comparison != "<"))
        return replace(self, offset_from=first, offset_until=until)

    def with_timestamp(self, comparison: Comparison, value_ms: int) -> "Pruning":
        """An upper bound prunes nothing: no batch says its lowest timestamp."""
        if comparison not in ("=", ">=", ">"):
            return self
        known = self.timestamp_from_ms
        return replace(self, timestamp_from_ms=value_ms if known is None else max(known, value_ms))

    def ranges(self, wanted: Iterable[OffsetRange]) -> list[OffsetRange]:
        left = []
        for each in wanted:
            if self.topics is not None and each.topic not in self.topics:
                continue
            if self.partitions is not None and each.partition.partition not in self.partitions:
                continue
            start, end = max(each.start, self.offset_from), min(each.end, self.offset_until)
            if start < end:
                left.append(each._replace(start=start, end=end))
        return left

    def parts(
        self, readable: Mapping[TopicPartition, ReadablePartition]
    ) -> Mapping[TopicPartition, ReadablePartition]:
        """Without objects and batches all of whose records are too old."""
        since = self.timestamp_from_ms
        if since is None:
            return readable
        return {
            partition: replace(
                part,
                rows=tuple(row for row in part.rows if row.max_timestamp_ms >= since),
                batches=tuple(each for each in part.batches if each.row.max_timestamp >= since),
            )
            for partition, part in readable.items()
        }


NO_PRUNING = Pruning()
