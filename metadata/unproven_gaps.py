"""Gaps in the offsets that no visible high watermark stamp proves to be void. Pure.

A reader of the bucket alone stops at such a gap (`tiered_storage.log_cut`), because a segment in
flight may fill the gap. Invariants: only the last such gap of each partition is kept, because a
stamp that reaches its end reaches the ends of all earlier gaps. A visible segment is committed, so
readers find its stamps.
"""

from collections.abc import Mapping

from bucketlog.log_format.model import PartitionIndex, TopicId, TopicIdPartition


class UnprovenGaps:
    """Takes visible segments, and keeps the unproven gaps."""

    def __init__(self) -> None:
        self._ends: dict[TopicIdPartition, int] = {}

    @property
    def ends(self) -> Mapping[TopicIdPartition, int]:
        """The end of the last unproven gap of each partition that has one, in the order of their
        appearance. Do not keep the mapping across an await: it changes."""
        return self._ends

    def note(self, part: PartitionIndex, end: int) -> None:
        """A segment has become visible. The partition's last batch before it ends at `end`."""
        for row in part.batches:
            if row.base_offset > end:
                self._ends[part.partition] = row.base_offset
            end = row.next_offset
        self.prove(part.partition, part.hw_stamp)

    def prove(self, partition: TopicIdPartition, offset: int) -> None:
        """Note that no batch below `offset` is in flight."""
        if self._ends.get(partition, offset + 1) <= offset:
            del self._ends[partition]

    def forget(self, topic_id: TopicId) -> None:
        """The topic is deleted."""
        for partition in [key for key in self._ends if key.topic_id == topic_id]:
            del self._ends[partition]
