"""New topics for one test, named after it."""

import re
import secrets
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, overload

if TYPE_CHECKING:
    from bucketlog.client.formats import Format
    from bucketlog.client.log import Log
    from bucketlog.client.topic import Topic

K = TypeVar("K")
V = TypeVar("V")

_TEST_NAME_LENGTH = 80


def random_suffix() -> str:
    """Sets a test's topics apart from those of others that have its name, and of other runs."""
    return secrets.token_hex(4)


class TopicFactory:
    """Maker of topics for one test: each call creates a topic with a new name. Returned by the
    fixture `bucketlog_topic_factory`.

    A call takes `value` and `key` as `bucketlog.Topic`, and `partitions` and `configs` as
    `Topics.create`. It raises `LogError` and `ConfigurationError`.

    Examples:
        >>> from bucketlog.testing import TopicFactory
        >>> new_topic = TopicFactory(log, "test_orders", "5f3a", partitions=1)
        >>> new_topic(value=Order, key=str)
        Topic('test_orders-5f3a-0', value=json, key=text)
    """

    def __init__(self, log: "Log", test: str, suffix: str, *, partitions: int) -> None:
        self._log = log
        test = re.sub("[^a-zA-Z0-9_]+", "-", test)[:_TEST_NAME_LENGTH].strip("-")
        self._prefix = f"{test}-{suffix}"
        self._partitions = partitions
        self._made: list[str] = []

    @overload
    def __call__(
        self, *, partitions: int | None = None, configs: Mapping[str, str] | None = None
    ) -> "Topic[bytes, bytes]": ...
    @overload
    def __call__(
        self,
        *,
        value: "type[V] | Format[V]",
        partitions: int | None = None,
        configs: Mapping[str, str] | None = None,
    ) -> "Topic[bytes, V]": ...
    @overload
    def __call__(
        self,
        *,
        key: "type[K] | Format[K]",
        partitions: int | None = None,
        configs: Mapping[str, str] | None = None,
    ) -> "Topic[K, bytes]": ...
    @overload
    def __call__(
        self,
        *,
        value: "type[V] | Format[V]",
        key: "type[K] | Format[K]",
        partitions: int | None = None,
        configs: Mapping[str, str] | None = None,
    ) -> "Topic[K, V]": ...
    def __call__(
        self,
        *,
        value: Any = bytes,
        key: Any = bytes,
        partitions: int | None = None,
        configs: Mapping[str, str] | None = None,
    ) -> "Topic[Any, Any]":
        from bucketlog.client.topic import Topic

        topic: Topic[Any, Any] = Topic(f"{self._prefix}-{len(self._made)}", value=value, key=key)
        self._log.topics.create(topic, partitions=partitions or self._partitions, configs=configs)
        self._made.append(topic.name)
        return topic

    def like(
        self,
        topic: "Topic[K, V]",
        *,
        partitions: int | None = None,
        configs: Mapping[str, str] | None = None,
    ) -> "Topic[K, V]":
        """Create a topic with the types of another one.

        Args:
            topic: Topic whose types the new topic has.
            partitions: Number of partitions; None means the number in pytest's configuration.
            configs: Configs by Kafka's names; None means no configs.

        Returns:
            The new topic.

        Raises:
            LogError: If the broker refuses the topic.
        """
        return self(
            value=topic.value_format,
            key=topic.key_format,
            partitions=partitions,
            configs=configs,
        )

    def delete_all(self) -> None:
        """Delete all topics that this factory has created.

        Raises:
            LogError: If the broker does not answer.
        """
        while self._made:
            self._log.topics.delete(self._made.pop())
