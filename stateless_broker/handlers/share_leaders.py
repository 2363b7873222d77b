"""The leaders of share-partitions. A share-partition is led by the broker that leads the partition
for clients without a zone. All members must ask the same broker, so zones in their client ids do
not count."""

from collections.abc import Callable

from bucketlog.log_format.model import TopicIdPartition
from bucketlog.metadata.fold import TopicState
from bucketlog.metadata.sequencer.live_brokers import LiveBroker
from bucketlog.metadata.view import View
from bucketlog.stateless_broker.membership.membership import Membership

TOPICS_KEPT = 1_000


class ShareLeaders:
    """`has_ended`: whether the epoch is over."""

    def __init__(
        self, *, view: View, membership: Membership, has_ended: Callable[[], bool]
    ) -> None:
        self._view = view
        self._membership = membership
        self._has_ended = has_ended
        self._role_changes = -1
        self._kept: dict[tuple[bytes, int], list[LiveBroker]] = {}

    def leader_of(self, partition: TopicIdPartition) -> LiveBroker | None:
        """Return the leader; None if the partition does not exist."""
        topic = self._view.topic_by_id(partition.topic_id)
        if topic is None or not 0 <= partition.partition < topic.partitions:
            return None
        return self._leaders(topic)[partition.partition]

    def _leaders(self, topic: TopicState) -> list[LiveBroker]:
        membership = self._membership
        if membership.role_changes != self._role_changes or len(self._kept) >= TOPICS_KEPT:
            self._role_changes = membership.role_changes
            self._kept.clear()
        key = topic.topic_id, topic.partitions
        found = self._kept.get(key)
        if found is None:
            steps = membership.leaders(topic.topic_id, topic.partitions)
            try:
                while True:
                    next(steps)
            except StopIteration as done:
                found = self._kept[key] = done.value
        return found

    def owns(self, partition: TopicIdPartition) -> bool:
        """Return whether this broker leads the share-partition, and the others can see that it
        lives."""
        membership = self._membership
        if self._has_ended() or membership.has_handed_over or not membership.is_session_live:
            return False
        leader = self.leader_of(partition)
        return leader is not None and leader == membership.me
