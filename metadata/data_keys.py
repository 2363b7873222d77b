"""The wrapped data keys of encrypted topics in the fold. Pure.

Invariant: a topic without data keys has no entry, so reading an unencrypted topic costs one
look-up. The keys of a deleted topic are forgotten with it.
"""

from collections.abc import Container, Iterator, Mapping

from bucketlog.log_format.model import TopicId
from bucketlog.log_format.wrapped_key import WrappedKey
from bucketlog.metadata.encryption_facts import DataKeyCreated

_NONE: Mapping[bytes, WrappedKey] = {}


class DataKeys:
    """All data keys of the log, by topic and key id; those of a topic in the order of their
    facts."""

    def __init__(self) -> None:
        self.by_topic: dict[TopicId, dict[bytes, WrappedKey]] = {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DataKeys) and self.by_topic == other.by_topic

    __hash__ = None  # type: ignore[assignment]  # keys are added

    def __len__(self) -> int:
        return sum(map(len, self.by_topic.values()))

    def __iter__(self) -> Iterator[WrappedKey]:
        for keys in self.by_topic.values():
            yield from keys.values()

    def apply(self, fact: DataKeyCreated, topics: Container[TopicId]) -> None:
        """Add the key, unless its topic is unknown: another broker may delete the topic while a
        broker writes the fact."""
        topic_id = TopicId(fact.topic_id.bytes)
        if topic_id in topics:
            self.add(WrappedKey(topic_id, fact.key_id, fact.wrapped_by, fact.wrapped, fact.at_ms))

    def add(self, key: WrappedKey) -> None:
        """A key that is there already stays."""
        self.by_topic.setdefault(key.topic_id, {}).setdefault(key.key_id, key)

    def forget_topic(self, topic_id: TopicId) -> None:
        self.by_topic.pop(topic_id, None)

    def of_topic(self, topic_id: TopicId) -> Mapping[bytes, WrappedKey]:
        """Return the data keys of a topic, by key id. Do not keep the result over an await."""
        return self.by_topic.get(topic_id, _NONE)

    def newest(self, topic_id: TopicId, wrapped_by: str) -> WrappedKey | None:
        """The latest of the topic's keys with that key-encryption key."""
        for key in reversed(tuple(self.of_topic(topic_id).values())):
            if key.wrapped_by == wrapped_by:
                return key
        return None
