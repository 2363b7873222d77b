"""What a consumer reads: one topic, or several topics and patterns; and the names of partitions.

Inside a consumer, a partition is a `Part`: topic and number. Callers of a consumer of one topic
name a partition by its number, and callers of other consumers by a `TopicPartition`.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar

from typing_extensions import TypeVar as DefaultTypeVar

from bucketlog.client.topic import Topic, TopicPartition, TopicSource, check_topic
from bucketlog.client.topic_pattern import TopicPattern
from bucketlog.log_format.errors import ConfigurationError, InvalidDataError

K = TypeVar("K")
V = TypeVar("V")
P = DefaultTypeVar("P", default=int)
"""Name of a partition for callers: `int`, or `TopicPartition` if there may be several topics."""

Part: TypeAlias = tuple[str, int]
TOPICS_MAX = 10_000
NAMED_TOPICS = 3


SeveralTopics: TypeAlias = TopicPattern[K, V] | Sequence[TopicSource[K, V]]


class Sources(ABC, Generic[K, V, P]):
    """The topics of one consumer, with their types."""

    EXAMPLE_OF_OFFSETS: ClassVar[str]
    """For messages: offsets by partition."""
    description: str
    """Text for messages, as in "topic 'orders'"."""

    def __init__(
        self, topics: Iterable[Topic[K, V]], patterns: Sequence[TopicPattern[K, V]]
    ) -> None:
        self.topics = {topic.name: topic for topic in topics}
        """The topics that are read now."""
        self.may_wait = _may_wait(self.topics.values())
        """Whether a format may ask a server to decode a record."""
        self._named = frozenset(self.topics)
        self._patterns = patterns
        self.late: set[str] = set()
        """Topics that were found after the consumer had opened: all of their records are new."""

        self.retries: dict[str, float] = {}
        """Retry topics that are read too, with their delays in seconds."""

    @property
    def names(self) -> list[str]:
        """All topics to read, in order."""
        return sorted(self.topics.keys() | self.retries.keys())

    def retry(self, delays_s: Mapping[str, float]) -> None:
        """Read these retry topics too, and no others."""
        self.retries = dict(delays_s)
        self.topics = {name: topic for name, topic in self.topics.items() if name not in delays_s}

    @property
    def is_growing(self) -> bool:
        """Whether topics that are created later may be read."""
        return bool(self._patterns)

    def update(self, present: Iterable[str], *, is_late: bool) -> bool:
        """Note the names of all topics of the cluster. Returns whether other topics are read now.
        Raises `ConfigurationError` if too many match."""
        found = {name: self.topics[name] for name in self._named}
        for name in present:
            if name not in found and name not in self.retries:
                topic = self.topics.get(name) or self._matching(name)
                if topic is not None:
                    found[name] = topic
        if found.keys() == self.topics.keys():
            return False
        if len(found) > TOPICS_MAX:
            raise ConfigurationError(
                f"{len(found):,} topics match {self.description}",
                remedy=f"a consumer reads at most {TOPICS_MAX:,}: use a narrower pattern",
            )
        if is_late:
            self.late |= found.keys() - self.topics.keys()
        self.late &= found.keys()
        self.topics = found
        self.may_wait = _may_wait(found.values())
        return True

    def _matching(self, name: str) -> Topic[K, V] | None:
        matching = (pattern.topic(name) for pattern in self._patterns if pattern.matches(name))
        return next(matching, None)

    def topic_of(self, name: str) -> Topic[K, V]:
        """The topic of a message that was read, with its types."""
        found = self.topics.get(name) or self._matching(name)  # of a topic that was deleted since
        assert found is not None, name
        return found

    def origin_of(self, name: str) -> Topic[K, V]:
        """Return the origin topic of a record in a retry topic. Raises `InvalidDataError`."""
        found = self.topics.get(name) or self._matching(name)
        if found is None:
            raise InvalidDataError(
                f"the record came from topic {name!r}, which this consumer does not read",
                remedy="give each group its own retry topics",
            )
        return found

    def begins_early(self, part: Part) -> bool:
        """Whether a group that has committed nothing begins at the earliest record."""
        return part[0] in self.late or part[0] in self.retries

    @abstractmethod
    def part(self, name: P) -> Part:
        """Raises `ConfigurationError` if this is not the name of a partition."""

    @abstractmethod
    def is_name(self, given: object) -> bool:
        """Whether this can be the name of a partition."""

    @abstractmethod
    def name(self, part: Part) -> P: ...

    @abstractmethod
    def is_shown(self, part: Part) -> bool:
        """Whether callers can name this partition."""

    def label(self, part: Part) -> str:
        """Return the name of a partition for messages."""
        return repr(part[1])

    def shown(self, parts: Iterable[Part]) -> list[Part]:
        return sorted(part for part in parts if self.is_shown(part))

    def names_of(self, parts: Iterable[Part]) -> tuple[P, ...]:
        """Return the callers' names of partitions, in order."""
        return tuple(map(self.name, self.shown(parts)))

    def by_name(self, parts: Mapping[Part, int]) -> dict[P, int]:
        return {self.name(part): parts[part] for part in self.shown(parts)}


class OneTopic(Sources[K, V, int]):
    """Partitions are named by their numbers."""

    EXAMPLE_OF_OFFSETS = "{0: 100}"

    def __init__(self, topic: Topic[K, V]) -> None:
        check_topic(topic)
        super().__init__([topic], ())
        self.topic = topic
        self.description = f"topic {topic.name!r}"

    def part(self, name: int) -> Part:
        return self.topic.name, name

    def is_name(self, given: object) -> bool:
        return _is_number(given)

    def name(self, part: Part) -> int:
        return part[1]

    def is_shown(self, part: Part) -> bool:
        return part[0] == self.topic.name


class ManyTopics(Sources[K, V, TopicPartition]):
    """Partitions are named by topic and number. Raises `ConfigurationError`."""

    EXAMPLE_OF_OFFSETS = '{bucketlog.TopicPartition("orders", 0): 100}'

    def __init__(self, given: object) -> None:
        topics, patterns = _sorted_out(given)
        super().__init__(topics, patterns)
        shown = [repr(topic.name) for topic in topics[:NAMED_TOPICS]]
        shown += [f"/{pattern.pattern}/" for pattern in patterns[: NAMED_TOPICS - len(shown)]]
        more = len(topics) + len(patterns) - len(shown)
        plural = "topic" if len(topics) == 1 and not patterns else "topics"
        self.description = f"{plural} {', '.join(shown)}" + (f" and {more} more" if more else "")

    def part(self, name: TopicPartition) -> Part:
        given: object = name
        if isinstance(given, tuple) and len(given) == 2:
            return given[0], given[1]
        raise ConfigurationError(
            f"{name!r} does not name a partition of {self.description}",
            remedy='name it as in bucketlog.TopicPartition("orders", 0)',
        )

    def is_name(self, given: object) -> bool:
        return isinstance(given, tuple) and len(given) == 2 and _is_number(given[1])

    def name(self, part: Part) -> TopicPartition:
        return TopicPartition(*part)

    def label(self, part: Part) -> str:
        return f"{part[0]}[{part[1]!r}]"

    def is_shown(self, part: Part) -> bool:
        return part[0] not in self.retries


def _is_number(given: object) -> bool:
    return isinstance(given, int) and not isinstance(given, bool) and given >= 0


def _sorted_out(given: object) -> tuple[list[Topic[Any, Any]], list[TopicPattern[Any, Any]]]:
    topics: list[Topic[Any, Any]] = []
    patterns: list[TopicPattern[Any, Any]] = []
    for source in given if isinstance(given, Iterable) and not isinstance(given, str) else [given]:
        if isinstance(source, TopicPattern):
            patterns.append(source)
            continue
        check_topic(source)
        assert isinstance(source, Topic)
        if source.name in {topic.name for topic in topics}:
            raise ConfigurationError(
                f"topic {source.name!r} is named twice", remedy="name each topic once"
            )
        topics.append(source)
    if not topics and not patterns:
        raise ConfigurationError(
            "the list of topics is empty",
            remedy='name a topic, as in [bucketlog.Topic("orders")], or use a TopicPattern',
        )
    if len(topics) > TOPICS_MAX:
        raise ConfigurationError(
            f"{len(topics):,} topics for one consumer", remedy=f"name at most {TOPICS_MAX:,}"
        )
    return topics, patterns


def _may_wait(topics: Iterable[Topic[Any, Any]]) -> bool:
    return any(topic.key_waits is not None or topic.value_waits is not None for topic in topics)


def sources_of(given: object) -> "Sources[K, V, int] | Sources[K, V, TopicPartition]":
    """Make the sources of a topic, a pattern, or a list of these. Raises
    `ConfigurationError`."""
    if isinstance(given, TopicPattern) or (
        isinstance(given, Iterable) and not isinstance(given, str)
    ):
        return ManyTopics(given)
    check_topic(given)
    assert isinstance(given, Topic)
    return OneTopic(given)


def the_topic(sources: Sources[K, V, int]) -> Topic[K, V]:
    """The topic of a consumer of one topic. Raises `ConfigurationError`."""
    if not isinstance(sources, OneTopic):
        raise ConfigurationError(
            f"this consumer reads {sources.description}",
            remedy="use consumer.topics, or record.topic",
        )
    return sources.topic
