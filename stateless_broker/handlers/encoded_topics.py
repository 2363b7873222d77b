"""A cache of topics, encoded for Metadata responses.

Invariant: an entry is used only if it was encoded for the current leaders and partitions. Otherwise
the topic is encoded again.
"""

from collections.abc import Iterator
from typing import NamedTuple

from kio.schema.errors import ErrorCode

from bucketlog.log_format.lru import LruCache
from bucketlog.log_format.model import TopicId
from bucketlog.log_format.wire import metadata
from bucketlog.metadata.fold import TopicState
from bucketlog.stateless_broker.membership.membership import Membership

ENTRY_BYTES = 300
"""The overhead of an entry, beside its encoded bytes."""


class LeaderPlace(NamedTuple):
    """The place that the leaders in an answer depend on: the zone of a broker, or '', and the
    listener that the request came through."""

    zone: str
    listener: str


class EncodedTopics:
    """`bytes_max` bounds the memory of the cache."""

    def __init__(self, membership: Membership, *, bytes_max: int) -> None:
        self._membership = membership
        self._bytes_max = bytes_max
        self._role_changes = -1
        """The value of `Membership.role_changes` when the entries were encoded."""
        self._kept: LruCache[tuple[TopicId, int, str, str], tuple[int, bytes]] = LruCache(0)

    def steps(
        self, topic: TopicState, version: int, place: LeaderPlace, out: list[bytes]
    ) -> Iterator[int]:
        """Append the encoded topic, without its end, to `out`. Each step yields the number of its
        partitions."""
        role_changes = self._membership.role_changes
        if role_changes != self._role_changes:
            self._role_changes, self._kept = role_changes, LruCache(self._bytes_max)
        key = topic.topic_id, version, *place
        partitions, data = self._kept.find(key) or (-1, b"")
        if partitions != topic.partitions:
            parts = [
                metadata.topic_start(
                    version, ErrorCode.none.value, topic.name, topic.topic_id, topic.partitions
                )
            ]
            leaders = yield from self._membership.leaders(topic.topic_id, topic.partitions, *place)
            node_ids = (leader.node_id for leader in leaders)
            for step in metadata.partition_steps(version, node_ids):
                parts.append(step)
                yield metadata.PARTITIONS_A_STEP
            data = b"".join(parts)
            if self._membership.role_changes == role_changes == self._role_changes:
                self._kept.keep(key, (topic.partitions, data), len(data) + ENTRY_BYTES)
        out.append(data)
        yield 1
