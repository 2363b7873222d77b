"""The offsets of all groups in the fold, committed and pending: weight, and index by topic. Pure.

Invariant: for each topic and group, the index has the number of the group's offsets of the topic,
committed and pending together. So the deletion of a topic reads only groups with offsets of the
topic. The index has one entry for a topic and a group, whatever their number of partitions.
"""

from collections.abc import Collection, Iterable

from bucketlog.log_format.model import TopicId, TopicIdPartition
from bucketlog.metadata.committed_offset import CommittedOffset, Offsets, offset_weight
from bucketlog.metadata.transactions import Transactions


class FoldedOffsets:
    """`by_group`: committed offsets; a group without any is absent. `weight`: the weight of all
    committed and pending offsets (`offset_weight`). `Transactions` keeps the pending offsets, and
    also changes them through `put` and `drop`."""

    def __init__(self) -> None:
        self.by_group: dict[str, Offsets] = {}
        self.weight = 0
        self._counts: dict[TopicId, dict[str, int]] = {}

    def put(
        self, group: str, rows: Offsets, partition: TopicIdPartition, committed: CommittedOffset
    ) -> None:
        """Put an offset into `rows`, which are committed or pending offsets of the group."""
        before = rows.get(partition)
        if before is not None:
            self.weight -= offset_weight(before.metadata)
        else:
            self._count(group, partition.topic_id)
        rows[partition] = committed
        self.weight += offset_weight(committed.metadata)

    def drop(self, group: str, rows: Offsets, partition: TopicIdPartition) -> None:
        """Remove an offset from `rows`, if it is there."""
        before = rows.pop(partition, None)
        if before is None:
            return
        self.weight -= offset_weight(before.metadata)
        counts = self._counts[partition.topic_id]
        counts[group] -= 1
        if not counts[group]:
            del counts[group]
            if not counts:
                del self._counts[partition.topic_id]

    def note_loaded(self, group: str, rows: Offsets) -> None:
        """Count offsets that come from a checkpoint, and not through `put`."""
        for partition, row in rows.items():
            self._count(group, partition.topic_id)
            self.weight += offset_weight(row.metadata)

    def drop_pending(
        self, group: str, partitions: Iterable[TopicIdPartition], transactions: Transactions
    ) -> None:
        """Remove the group's pending offsets of these partitions from all `transactions`."""
        for partition in partitions:
            for rows in transactions.release(group, partition):
                self.drop(group, rows, partition)

    def forget_topic(self, topic_id: TopicId, partitions: int, transactions: Transactions) -> None:
        """Remove the offsets of a topic with this number of partitions."""
        for group in list(self._counts.get(topic_id, {})):
            rows = self.by_group.get(group, {})
            for partition in _of_topic(rows, topic_id, partitions):
                self.drop(group, rows, partition)
            held = _of_topic(transactions.held(group), topic_id, partitions)
            self.drop_pending(group, held, transactions)
            if not self.by_group.get(group, True):
                del self.by_group[group]

    def _count(self, group: str, topic_id: TopicId) -> None:
        counts = self._counts.setdefault(topic_id, {})
        counts[group] = counts.get(group, 0) + 1


def _of_topic(
    rows: Collection[TopicIdPartition], topic_id: TopicId, partitions: int
) -> list[TopicIdPartition]:
    """The topic's keys in `rows`. It iterates over the rows or the partitions, whichever are
    fewer."""
    if len(rows) <= partitions:
        return [key for key in rows if key.topic_id == topic_id]
    keys = (TopicIdPartition(topic_id, number) for number in range(partitions))
    return [key for key in keys if key in rows]
