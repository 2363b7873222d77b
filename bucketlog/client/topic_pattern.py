"""Topics whose names match a pattern."""

import re
from types import UnionType
from typing import Any, TypeVar, overload

from bucketlog.client.formats import Format, format_of
from bucketlog.client.topic import Topic, TopicSource
from bucketlog.log_format.errors import ConfigurationError

K = TypeVar("K")
V = TypeVar("V")

PATTERN_CHARACTERS_MAX = 1000
INTERNAL_PREFIX = "__"


class TopicPattern(TopicSource[K, V]):
    """All topics whose whole name matches a regular expression, also those created later.

    All of these topics have one type of keys and one type of values.

    Args:
        pattern: A regular expression of Python's `re`. It must match the whole name of a topic.
            A pattern never matches a name that begins with two underscores, unless the pattern
            itself begins with two underscores.
        value: The type of the values, as for `Topic`. Default: `bytes`.
        key: The type of the keys, as for `Topic`. Default: `bytes`.

    Raises:
        ConfigurationError: The pattern is not a regular expression, or has more than 1,000
            characters.

    Examples:
        >>> shops = bucketlog.TopicPattern("orders-[a-z]+", value=str)
        >>> shops.matches("orders-eu"), shops.matches("old-orders-eu")
        (True, False)
    """

    __slots__ = ("_expression", "_key", "_value", "key_format", "pattern", "value_format")

    @overload
    def __init__(self: "TopicPattern[bytes, bytes]", pattern: str) -> None: ...
    @overload
    def __init__(
        self: "TopicPattern[bytes, V]", pattern: str, *, value: type[V] | Format[V]
    ) -> None: ...
    @overload
    def __init__(
        self: "TopicPattern[K, bytes]", pattern: str, *, key: type[K] | Format[K]
    ) -> None: ...
    @overload
    def __init__(self: "TopicPattern[bytes, Any]", pattern: str, *, value: UnionType) -> None: ...
    @overload
    def __init__(
        self: "TopicPattern[K, Any]", pattern: str, *, value: UnionType, key: type[K] | Format[K]
    ) -> None: ...
    @overload
    def __init__(
        self, pattern: str, *, value: type[V] | Format[V], key: type[K] | Format[K]
    ) -> None: ...
    def __init__(self, pattern: str, *, value: Any = bytes, key: Any = bytes) -> None:
        if len(pattern) > PATTERN_CHARACTERS_MAX:
            raise ConfigurationError(
                f"a pattern of {len(pattern):,} characters",
                remedy=f"use at most {PATTERN_CHARACTERS_MAX:,}",
            )
        try:
            self._expression = re.compile(pattern)
        except re.error as error:
            raise ConfigurationError(
                f"{pattern!r} is not a regular expression: {error}",
                remedy="use the syntax of Python's module re, as in 'orders-.*'",
            ) from error
        self.pattern = pattern
        self._value = value
        self._key = key
        self.value_format: Format[V] = format_of(value)
        self.key_format: Format[K] = format_of(key)

    def matches(self, name: str) -> bool:
        """Return whether the pattern matches the name of a topic.

        Args:
            name: The name of a topic.

        Returns:
            True if the pattern matches the whole name.
        """
        is_internal = name.startswith(INTERNAL_PREFIX)
        if is_internal and not self.pattern.startswith(INTERNAL_PREFIX):
            return False
        return self._expression.fullmatch(name) is not None

    def topic(self, name: str) -> Topic[K, V]:
        """The topic of this name, with the pattern's types.

        Args:
            name: The name of a topic.

        Returns:
            A topic, also for a name that does not match.

        Raises:
            ConfigurationError: This is not a name of a topic.
        """
        return Topic(name, value=self._value, key=self._key)

    def __repr__(self) -> str:
        return f"TopicPattern({self.pattern!r})"
