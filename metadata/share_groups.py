"""Share groups in the fold: of each share-partition the leader, and records in flight. Pure.

Invariants: a share-partition has one leader at a time, a broker incarnation under a leader epoch;
what any other leader writes does not count. Batches are in offset order, do not overlap, and end
at or above the start offset. Records from the start offset on that are in no batch are available.
Source: KIP-932; Kafka's PersisterStateBatchCombiner and ShareCoordinatorShard.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from bucketlog.log_format.model import TopicId, TopicIdPartition
from bucketlog.metadata.share_facts import (
    ShareFact,
    ShareOffsetsForgotten,
    SharePartitionsTaken,
    ShareStartRow,
    ShareStateWritten,
    ShareTakenRow,
    ShareWrittenRow,
)

AVAILABLE = 0


class ShareBatch(NamedTuple):
    """Records from `first` to `last`, both included. `state` as of `share_facts.StoredState`."""

    first: int
    last: int
    state: int
    deliveries: int


class SharePartition(NamedTuple):
    """`state_epoch` counts how often an administrator set the start; `leader` is the incarnation of
    a broker, '' for nobody."""

    state_epoch: int
    leader_epoch: int
    leader: str
    start_offset: int
    batches: tuple[ShareBatch, ...] = ()

    @property
    def completed(self) -> int:
        """Number of records at or after the start offset that are acknowledged or archived."""
        return sum(
            each.last - max(each.first, self.start_offset) + 1
            for each in self.batches
            if each.state != AVAILABLE
        )


def overlaid(
    batches: Sequence[ShareBatch], changes: Iterable[ShareBatch], start_offset: int
) -> tuple[ShareBatch, ...]:
    """`batches` with `changes` over them, from `start_offset` on. Neighbours that are alike become
    one."""
    rows = list(batches)
    for change in changes:
        low = bisect_left(rows, change.first, key=lambda row: row.last)
        high = bisect_right(rows, change.last, key=lambda row: row.first)
        inner = [change]
        if low < high:
            before, after = rows[low], rows[high - 1]
            if before.first < change.first:
                inner.insert(0, before._replace(last=change.first - 1))
            if after.last > change.last:
                inner.append(after._replace(first=change.last + 1))
        rows[low:high] = inner
    kept: list[ShareBatch] = []
    for row in rows:
        if row.last < start_offset or (row.state == AVAILABLE and not row.deliveries):
            continue
        last = kept[-1] if kept else None
        if last is not None and last.last + 1 == row.first and last[2:] == row[2:]:
            kept[-1] = last._replace(last=row.last)
        else:
            kept.append(row)
    return tuple(kept)


class ShareGroups:
    """`by_group`: the share-partitions of each group; a group without any is absent."""

    def __init__(self) -> None:
        self.by_group: dict[str, dict[TopicIdPartition, SharePartition]] = {}
        self.partition_count = 0
        self._groups_of: dict[TopicId, set[str]] = {}
        """The groups that may have state of a topic."""

    def apply(self, fact: ShareFact, partitions: Collection[TopicIdPartition]) -> None:
        """Fold one fact. Its rows for other partitions than `partitions` have no effect."""
        if isinstance(fact, ShareOffsetsForgotten):
            named = None if fact.topics is None else {TopicId(each.bytes) for each in fact.topics}
            rows = self.by_group.get(fact.group, {})
            gone = [key for key in rows if named is None or key.topic_id in named]
            self._drop(fact.group, gone)
            return
        for row in fact.rows:
            partition = TopicIdPartition(TopicId(row.topic_id.bytes), row.partition)
            if partition in partitions:
                known = self.by_group.get(fact.group, {}).get(partition)
                changed = _changed(fact, known, row)
                if changed is not None:
                    self._put(fact.group, partition, changed)

    def _put(self, group: str, partition: TopicIdPartition, state: SharePartition) -> None:
        rows = self.by_group.setdefault(group, {})
        self.partition_count += partition not in rows
        rows[partition] = state
        self._groups_of.setdefault(partition.topic_id, set()).add(group)

    def note_loaded(self, group: str, partition: TopicIdPartition, state: SharePartition) -> None:
        """Add a share-partition that comes from a checkpoint."""
        self._put(group, partition, state)

    def forget_topic(self, topic_id: TopicId) -> None:
        for group in self._groups_of.pop(topic_id, set()):
            rows = self.by_group.get(group, {})
            self._drop(group, [key for key in rows if key.topic_id == topic_id])

    def _drop(self, group: str, partitions: Iterable[TopicIdPartition]) -> None:
        rows = self.by_group.get(group)
        if rows is None:
            return
        for partition in partitions:
            del rows[partition]
            self.partition_count -= 1
        if not rows:
            del self.by_group[group]


def _changed(
    fact: ShareFact,
    known: SharePartition | None,
    row: ShareTakenRow | ShareWrittenRow | ShareStartRow,
) -> SharePartition | None:
    """Return the share-partition after a row of `fact`; None if the row does not count."""
    if isinstance(row, ShareStartRow):
        if known is None:
            return SharePartition(0, 0, "", row.start_offset)
        epochs = known.state_epoch + 1, known.leader_epoch + 1
        return SharePartition(*epochs, "", row.start_offset)
    if isinstance(row, ShareTakenRow) and isinstance(fact, SharePartitionsTaken):
        known = known or SharePartition(0, 0, "", row.start_offset)
        if row.leader_epoch != known.leader_epoch + 1:
            return None
        return known._replace(leader_epoch=row.leader_epoch, leader=fact.leader)
    if known is None or not isinstance(row, ShareWrittenRow):
        return None
    if not isinstance(fact, ShareStateWritten):
        return None
    if (row.leader_epoch, fact.leader) != (known.leader_epoch, known.leader):
        return None
    start = max(known.start_offset, row.start_offset)
    changes = (ShareBatch(*each) for each in row.changes)
    return known._replace(start_offset=start, batches=overlaid(known.batches, changes, start))
