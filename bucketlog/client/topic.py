"""A topic with its types, and the record that comes out of it."""

import re
from collections.abc import Mapping, Sequence
from types import UnionType
from typing import Any, Generic, Literal, NamedTuple, TypeAlias, TypeVar, cast, overload

from bucketlog.client.formats import BlockingFormat, Format, TopicBoundFormat, format_of
from bucketlog.log_format.errors import ConfigurationError, InvalidDataError

K = TypeVar("K")
V = TypeVar("V")
K_co = TypeVar("K_co", covariant=True)
V_co = TypeVar("V_co", covariant=True)

HeaderValue: TypeAlias = str | bytes | None
Headers: TypeAlias = Mapping[str, HeaderValue] | Sequence[tuple[str, HeaderValue]]
"""What a producer attaches, in this order; a name may come twice; text is sent as UTF-8."""

MAX_NAME_LENGTH = 249
_NAME = re.compile(r"[a-zA-Z0-9._-]+")


class TopicPartition(NamedTuple):
    """Name of a partition, for consumers that read several topics.

    Args:
        topic: Name of the topic.
        partition: Number of the partition.

    Examples:
        >>> bucketlog.TopicPartition("orders", 0)
        TopicPartition(topic='orders', partition=0)
    """

    topic: str
    partition: int


class TopicSource(Generic[K_co, V_co]):
    """Type of the topics and patterns that a consumer of several topics reads. Made by `Topic` and
    `TopicPattern`.

    Examples:
        >>> both: list[bucketlog.TopicSource] = [orders, bucketlog.TopicPattern("orders-.*")]
    """

    __slots__ = ()


class Topic(TopicSource[K, V]):
    """Name of a topic, with the types of its keys and values.

    Making a `Topic` creates nothing on the cluster: see `Topics.create`.

    Args:
        name: Name of the topic: up to 249 letters, digits, dots, underscores and hyphens.
        value: Type of the values. `bytes` is sent as it is, `str` as UTF-8. A pydantic model, and
            any other type that pydantic knows, is sent as JSON. A `Format`, such as `Avro(Order)`,
            encodes values itself. Default: `bytes`.
        key: Type of the keys, as for `value`. Default: `bytes`.

    Raises:
        ConfigurationError: If the name is not valid, or if the type cannot be encoded.

    Examples:
        >>> bucketlog.Topic("orders", value=Order, key=str)
        Topic('orders', value=json, key=text)
    """

    __slots__ = ("key_format", "key_waits", "name", "value_format", "value_waits")

    @overload
    def __init__(self: "Topic[bytes, bytes]", name: str) -> None: ...
    @overload
    def __init__(self: "Topic[bytes, V]", name: str, *, value: type[V] | Format[V]) -> None: ...
    @overload
    def __init__(self: "Topic[K, bytes]", name: str, *, key: type[K] | Format[K]) -> None: ...
    @overload
    def __init__(self: "Topic[bytes, Any]", name: str, *, value: UnionType) -> None: ...
    @overload
    def __init__(
        self: "Topic[K, Any]", name: str, *, value: UnionType, key: type[K] | Format[K]
    ) -> None: ...
    @overload
    def __init__(
        self, name: str, *, value: type[V] | Format[V], key: type[K] | Format[K]
    ) -> None: ...
    def __init__(self, name: str, *, value: Any = bytes, key: Any = bytes) -> None:
        if not _NAME.fullmatch(name) or name in (".", "..") or len(name) > MAX_NAME_LENGTH:
            raise ConfigurationError(
                f"{name!r} is not a topic name",
                remedy=f"1 to {MAX_NAME_LENGTH} of letters, digits, '.', '_' and '-'",
            )
        self.name = name
        self.value_format: Format[V] = _bound(format_of(value), name, "value")
        self.key_format: Format[K] = _bound(format_of(key), name, "key")
        self.value_waits = _waiting(self.value_format)
        """The same format, where it asks a server at times; else None."""
        self.key_waits = _waiting(self.key_format)

    def __repr__(self) -> str:
        return f"Topic({self.name!r}, value={self.value_format.name}, key={self.key_format.name})"


def check_topic(given: object) -> None:
    """A name alone is not enough. Raises `ConfigurationError`."""
    if not isinstance(given, Topic):
        name = given if isinstance(given, str) else "orders"
        raise ConfigurationError(
            f"a Topic is needed, not {given!r}",
            remedy=f'as in bucketlog.Topic("{name}")',
        )


def _bound(chosen: Format[V], topic: str, part: Literal["key", "value"]) -> Format[V]:
    return (
        cast(Format[V], chosen.bound(topic, part))
        if isinstance(chosen, TopicBoundFormat)
        else chosen
    )


def _waiting(chosen: Format[Any]) -> BlockingFormat | None:
    return chosen if isinstance(chosen, BlockingFormat) else None


class Retry(NamedTuple):
    """Origin of a record in a retry topic. Made by `process`, as `Record.retry`.

    Attributes:
        topic: Name of the first topic of the record.
        partition: Number of the partition in this topic.
        offset: Offset in this partition.
        attempts: Number of earlier calls of the handler.
    """

    topic: str
    partition: int
    offset: int
    attempts: int


class Record(Generic[K, V]):
    """Record of a topic. Returned by consumers and by `replay`.

    Attributes:
        topic: Name of the topic.
        partition: Number of the partition.
        offset: Offset of the record in its partition.
        timestamp_ms: Time of the record, in milliseconds since 1970 UTC; -1 means no time.
        key: Decoded key; None means no key.
        value: Decoded value. Reading the value of a tombstone raises `InvalidDataError`.
        headers: Names and values of the headers, in the order in which they were sent.
        is_tombstone: Whether the record has no value. Compaction then removes the key.
        raw_key: Stored bytes of the key; None means no key.
        raw_value: Stored bytes of the value; None means a tombstone.
        retry: Origin of a record that `process` reads from a retry topic, a `Retry`; None for other
            records. The headers and the time of the record are those of its origin.

    Examples:
        >>> with log.consumer(orders, start="earliest", until="end") as consumer:
        ...     for record in consumer:
        ...         print(record.where, record.key, record.value.amount)
        orders[0]@0 ann 9.5
        orders[0]@1 bob 20.0
    """

    __slots__ = (
        "_epoch",
        "_value",
        "headers",
        "is_tombstone",
        "key",
        "offset",
        "partition",
        "raw_key",
        "raw_value",
        "retry",
        "timestamp_ms",
        "topic",
    )

    def __init__(
        self,
        topic: str,
        partition: int,
        offset: int,
        timestamp_ms: int,
        key: K | None,
        value: V | None,
        headers: tuple[tuple[str, bytes | None], ...] = (),
        *,
        is_tombstone: bool = False,
        raw_key: bytes | None = None,
        raw_value: bytes | None = None,
        retry: Retry | None = None,
        epoch: int = 0,
    ) -> None:
        self.retry = retry
        self._epoch = epoch
        """Number of times that its consumer had sought or lost partitions before the record."""
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.timestamp_ms = timestamp_ms
        self.key = key
        self._value = value
        self.headers = headers
        self.is_tombstone = is_tombstone
        self.raw_key = raw_key
        self.raw_value = raw_value

    @property
    def value(self) -> V:
        """Decoded value.

        Raises:
            InvalidDataError: If the record is a tombstone.
        """
        if self.is_tombstone:
            raise InvalidDataError(
                f"the record at {self.where} has no value",
                remedy="it is a tombstone: check record.is_tombstone first",
            )
        # It was decoded from bytes: a V, which may be None (JSON null, of an optional type).
        return cast(V, self._value)

    @property
    def where(self) -> str:
        """Topic, partition and offset for messages, as in `orders[2]@17`."""
        return f"{self.topic}[{self.partition}]@{self.offset}"

    def __repr__(self) -> str:
        shown = "tombstone" if self.is_tombstone else repr(self._value)
        return f"Record({self.where}, key={self.key!r}, value={shown})"
