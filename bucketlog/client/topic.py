"""A topic with its types, and the record that comes out of it."""

import re
from collections.abc import Mapping, Sequence
from types import UnionType
from typing import Any, Generic, Literal, TypeAlias, TypeVar, cast, overload

from bucketlog.client.formats import BlockingFormat, Format, TopicBoundFormat, format_of
from bucketlog.log_format.errors import ConfigurationError, InvalidDataError

K = TypeVar("K")
V = TypeVar("V")

HeaderValue: TypeAlias = str | bytes | None
Headers: TypeAlias = Mapping[str, HeaderValue] | Sequence[tuple[str, HeaderValue]]
"""What a producer attaches, in this order; a name may come twice; text is sent as UTF-8."""

MAX_NAME_LENGTH = 249
_NAME = re.compile(r"[a-zA-Z0-9._-]+")


class Topic(Generic[K, V]):
    """A topic's name and the types of its keys and values.

        orders = Topic("orders", value=Order, key=str)

    `bytes` (the default) is sent raw, `str` as UTF-8, a pydantic model (or any type pydantic
    knows: a dataclass, int, list) as JSON; a `Format` as it says. Nothing is sent or created here.
    Raises `ConfigurationError`.
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
                f"{name!r} is no topic name",
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
    """Where a name alone does not do. Raises `ConfigurationError`."""
    if not isinstance(given, Topic):
        name = given if isinstance(given, str) else "orders"
        raise ConfigurationError(
            f"a topic with its types is wanted, not {given!r}",
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


class Record(Generic[K, V]):
    """One record. `offset` and `partition` say where it stands, for ever.

    `timestamp_ms` is milliseconds since 1970 UTC (-1: none); `headers` in the order sent. `key` is
    None where the producer gave none. A record without a value is a tombstone: reading `value`
    then raises `InvalidDataError`; ask `is_tombstone` first where a topic may hold some.
    """

    __slots__ = (
        "_value",
        "headers",
        "is_tombstone",
        "key",
        "offset",
        "partition",
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
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.timestamp_ms = timestamp_ms
        self.key = key
        self._value = value
        self.headers = headers
        self.is_tombstone = is_tombstone

    @property
    def value(self) -> V:
        if self.is_tombstone:
            raise InvalidDataError(
                f"the record at {self.where} has no value",
                remedy="it is a tombstone: check record.is_tombstone first",
            )
        # It was decoded from bytes: a V, which may be None (JSON null, of an optional type).
        return cast(V, self._value)

    @property
    def where(self) -> str:
        """`orders[2]@17`: topic, partition, offset; for messages."""
        return f"{self.topic}[{self.partition}]@{self.offset}"

    def __repr__(self) -> str:
        shown = "tombstone" if self.is_tombstone else repr(self._value)
        return f"Record({self.where}, key={self.key!r}, value={shown})"
