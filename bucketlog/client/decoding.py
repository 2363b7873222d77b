"""Decoding of librdkafka's messages into typed records."""

from typing import TYPE_CHECKING, Any, Literal, TypeVar

from bucketlog.client.origin_headers import retry_of
from bucketlog.client.sources import Part, Sources
from bucketlog.client.topic import Record, Retry, Topic
from bucketlog.log_format.errors import InvalidDataError

if TYPE_CHECKING:
    from confluent_kafka import Message

K = TypeVar("K")
V = TypeVar("V")


class UnreadableRecordError(InvalidDataError):
    """Error of a record that does not decode. Raised by consumers with `on_error="raise"`.

    Attributes:
        part: "key" or "value".
        reason: Why the part does not decode.
        cause_name: Name of the class of the cause.

    Examples:
        >>> numbers = bucketlog.Topic("orders", value=int, key=str)
        >>> with log.consumer(numbers, start="earliest", until="end") as consumer:
        ...     try:
        ...         next(consumer)
        ...     except bucketlog.UnreadableRecordError as error:
        ...         print(error.part)
        value
    """

    def __init__(
        self, where: str, part: Literal["key", "value", "header"], reason: InvalidDataError
    ) -> None:
        super().__init__(
            f"the {part} of the record at {where}: {reason.message}", remedy=reason.remedy
        )
        self.part = part
        self.reason = reason.message
        self.cause_name = f"{type(reason).__module__}.{type(reason).__qualname__}"


def decode(sources: Sources[K, V, Any], message: "Message", epoch: int = 0) -> Record[K, V]:
    """Raises `UnreadableRecordError`, which names topic, partition and offset."""
    part, offset = spot_of(message)
    timestamp_ms = message.timestamp()[1]
    headers = headers_of(message)
    if part[0] not in sources.retries:
        topic = sources.topic_of(part[0])
        raw = (message.key(), message.value(), headers)
        return decode_raw(topic, part[1], offset, timestamp_ms, *raw, epoch)
    try:
        retry, headers, first_ms = retry_of(headers)
        topic = sources.origin_of(retry.topic)
    except InvalidDataError as error:
        raise UnreadableRecordError(f"{part[0]}[{part[1]}]@{offset}", "header", error) from error
    return decode_raw(
        topic,
        part[1],
        offset,
        timestamp_ms if first_ms is None else first_ms,
        message.key(),
        message.value(),
        headers,
        epoch,
        read_from=part[0],
        retry=retry,
    )


def decode_raw(
    topic: Topic[K, V],
    partition: int,
    offset: int,
    timestamp_ms: int,
    raw_key: bytes | None,
    raw_value: bytes | None,
    headers: tuple[tuple[str, bytes | None], ...],
    epoch: int = 0,
    *,
    read_from: str | None = None,
    retry: Retry | None = None,
) -> Record[K, V]:
    """`read_from`: the topic that holds the record, if it is not the topic with its types. Raises
    `UnreadableRecordError`, which names topic, partition and offset."""
    name = topic.name if read_from is None else read_from
    part: Literal["key", "value"] = "key"
    try:
        key = None if raw_key is None else topic.key_format.decode(raw_key)
        part = "value"
        value = None if raw_value is None else topic.value_format.decode(raw_value)
    except InvalidDataError as error:
        where = f"{name}[{partition}]@{offset}"
        raise UnreadableRecordError(where, part, error) from error
    return Record(
        name,
        partition,
        offset,
        timestamp_ms,
        key,
        value,
        headers,
        is_tombstone=raw_value is None,
        raw_key=raw_key,
        raw_value=raw_value,
        retry=retry,
        epoch=epoch,
    )


def decodes_at_once(sources: Sources[Any, Any, Any], message: "Message") -> bool:
    """No format of the message's topic would ask a server for this message."""
    name = message.topic() or ""
    try:
        if name in sources.retries:
            name = retry_of(headers_of(message))[0].topic
        topic = sources.origin_of(name)
    except InvalidDataError:
        return True
    key, value = topic.key_waits, topic.value_waits
    raw_key = message.key() if key is not None else None
    raw_value = message.value() if value is not None else None
    return (key is None or raw_key is None or key.decodes_at_once(raw_key)) and (
        value is None or raw_value is None or value.decodes_at_once(raw_value)
    )


def part_of_message(message: "Message") -> Part:
    """Topic and partition."""
    return message.topic() or "", message.partition() or 0


def spot_of(message: "Message") -> tuple[Part, int]:
    """Topic and partition, and the offset."""
    return part_of_message(message), message.offset() or 0


def headers_of(message: "Message") -> tuple[tuple[str, bytes | None], ...]:
    headers = message.headers()
    if not headers:
        return ()
    items = headers.items() if isinstance(headers, dict) else headers
    return tuple(
        (name, value.encode() if isinstance(value, str) else value) for name, value in items
    )
