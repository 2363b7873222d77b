"""The view: a broker's folded state in memory, with where each batch stands in the bucket.

Pure: segments in, facts and touched partitions out. Invariants: the high watermark is the end of
the last visible batch, so it never rests on a void tail and never goes back; rows of a partition
are in offset order, so every look-up is a bisection. Batches that stand in the partition's tier, or
end at or before its log start, have no rows.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from bucketlog.log_format.checkpoint import Checkpoint
from bucketlog.log_format.errors import InvalidDataError
from bucketlog.log_format.model import (
    SegmentIndex,
    TopicId,
    TopicIdPartition,
    WaitingSegment,
)
from bucketlog.metadata.checkpoint import restored
from bucketlog.metadata.facts import (
    Fact,
    LogStartPayload,
    LogStartsMoved,
    SwapPayload,
    TiersSwapped,
    TopicCreated,
    TopicDeleted,
    partition_of,
    topic_id_of,
)
from bucketlog.metadata.fold import CommittedOffset, LogState, TopicState
from bucketlog.metadata.partition_log import PartitionLog
from bucketlog.metadata.topic_names import TopicNames
from bucketlog.metadata.waiting import WaitingSegments


class ViewChange(NamedTuple):
    """What one segment changed."""

    facts: list[Fact]
    partitions: list[TopicIdPartition]


class View:
    """Topics and partitions as the visible segments make them."""

    def __init__(self) -> None:
        self._state = LogState(keep_producers=False)
        self._logs: dict[TopicIdPartition, PartitionLog] = {}
        self.waiting = WaitingSegments()
        self._names = TopicNames()

    def apply(self, index: SegmentIndex) -> ViewChange:
        """Fold one visible segment. Raises `InvalidDataError`."""
        facts = self._state.apply(index)
        for fact in facts:
            if isinstance(fact, TopicCreated):
                self._names.add(fact.name)
            elif isinstance(fact, TopicDeleted):
                self._names.remove(fact.name)
                self._forget(topic_id_of(fact))
        for fact in facts:  # also of topics that a later one of these deletes
            if isinstance(fact, TiersSwapped):
                self._begin(fact.swaps)
            elif isinstance(fact, LogStartsMoved):
                self._begin(fact.partitions)
        touched = []
        size = 0
        for part in index.partitions:
            if part.batches:
                log = self._logs.get(part.partition) or self._new_log(part.partition)
                for row in part.batches:
                    log.append(index.segment, row)
                    size += row.length
                touched.append(part.partition)
        if touched:
            self.waiting.append(WaitingSegment(index.segment, size, index.created_ms))
        return ViewChange(facts, touched)

    def logs(self) -> Mapping[TopicIdPartition, PartitionLog]:
        """Of partitions that have or had batches: not to be held over an await."""
        return self._logs

    def _new_log(self, partition: TopicIdPartition) -> PartitionLog:
        state = self._state.partitions[partition]
        log = self._logs[partition] = PartitionLog(state.tier)
        log.begin_at(state.batches_from)
        return log

    def _begin(self, named: Iterable[SwapPayload | LogStartPayload]) -> None:
        """An entry about these partitions was folded."""
        for partition in map(partition_of, named):
            log = self._logs.get(partition)
            if log is not None:
                log.begin_at(self._state.partitions[partition].batches_from)
        self.waiting.forget_before(
            {segments[0] for log in self._logs.values() if (segments := log.batches.segments)}
        )

    @classmethod
    def of(cls, segments: Iterable[SegmentIndex], checkpoint: Checkpoint | None = None) -> "View":
        """With the visible segments after `checkpoint` in ticket order. Raises `InvalidDataError`.
        It takes long where the log is: a thread may do it, and then the view `become` it."""
        fresh = cls()
        fresh._state = restored(checkpoint, keep_producers=False)
        fresh._names = TopicNames(fresh._state.names)
        if checkpoint is not None:
            for partition in checkpoint.partitions:
                state = fresh._state.partitions[partition]
                fresh._logs[partition] = PartitionLog.of_checkpoint(
                    checkpoint, partition, state.tier, state.batches_from
                )
            fresh.waiting = WaitingSegments.of_checkpoint(checkpoint)
        for index in segments:
            fresh.apply(index)
        return fresh

    def become(self, fresh: "View") -> None:
        """Show what `fresh` shows, which nobody else uses. Whoever holds a partition's log sees it
        grow. Raises `InvalidDataError` where less would be shown than before, and stays as it
        is then."""
        for partition, held in self._logs.items():
            found = fresh.log(partition)
            if found is not None and found.high_watermark < held.high_watermark:
                raise InvalidDataError(
                    f"{partition} was shown up to offset {held.high_watermark}, and now ends at "
                    f"{found.high_watermark}",
                    remedy="objects are missing in the bucket: restore them",
                )
        for partition in self._logs.keys() & fresh._logs.keys():
            held = self._logs[partition]
            held.become(fresh._logs[partition])
            fresh._logs[partition] = held
        self._state, self._logs, self.waiting = fresh._state, fresh._logs, fresh.waiting
        self._names = fresh._names

    def _forget(self, topic_id: TopicId) -> None:
        for partition in [key for key in self._logs if key.topic_id == topic_id]:
            del self._logs[partition]

    def topics(self) -> list[TopicState]:
        return list(self._state.topics.values())

    @property
    def partition_count(self) -> int:
        """The number of partitions of all topics."""
        return len(self._state.partitions)

    def colliding_name(self, name: str) -> str | None:
        """A topic whose name equals `name`, or differs from it only in '.' and '_'."""
        return self._names.colliding(name)

    def topic(self, name: str) -> TopicState | None:
        topic_id = self._state.names.get(name)
        return None if topic_id is None else self._state.topics[topic_id]

    def topic_name(self, topic_id: TopicId) -> str | None:
        topic = self._state.topics.get(topic_id)
        return None if topic is None else topic.name

    def topic_by_id(self, topic_id: TopicId) -> TopicState | None:
        return self._state.topics.get(topic_id)

    def log(self, partition: TopicIdPartition) -> PartitionLog | None:
        """None where the partition does not exist; its log may be empty."""
        topic = self._state.topics.get(partition.topic_id)
        if topic is None or not 0 <= partition.partition < topic.partitions:
            return None
        return self._logs.get(partition) or self._new_log(partition)

    def log_start(self, partition: TopicIdPartition) -> int:
        return self._state.partitions[partition].log_start

    def has_offsets(self, group: str) -> bool:
        return bool(self._state.groups.get(group))

    def group_count(self) -> int:
        """The number of groups with committed offsets."""
        return len(self._state.groups)

    def groups(self) -> list[str]:
        """The groups that have committed offsets."""
        return list(self._state.groups)

    def offsets(self, group: str) -> Mapping[TopicIdPartition, CommittedOffset]:
        """A group's committed offsets as they are now: not to be held over an await."""
        return self._state.groups.get(group, {})
