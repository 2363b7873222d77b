"""From librdkafka's messages to typed records."""

from typing import Any, Literal, TypeVar

from confluent_kafka import Message

from bucketlog.client.topic import Record, Topic
from bucketlog.log_format.errors import InvalidDataError

K = TypeVar("K")
V = TypeVar("V")


class UnreadableRecordError(InvalidDataError):
    """A record whose `part` does not decode, for the `reason` without its place."""

    def __init__(self, where: str, part: Literal["key", "value"], reason: InvalidDataError) -> None:
        super().__init__(
            f"the {part} of the record at {where}: {reason.message}", remedy=reason.remedy
        )
        self.part = part
        self.reason = reason.message
        self.cause_name = f"{type(reason).__module__}.{type(reason).__qualname__}"


def decode(topic: Topic[K, V], message: Message) -> Record[K, V]:
    """Raises `UnreadableRecordError`, which names topic, partition and offset."""
    partition, offset = spot_of(message)
    timestamp_ms = message.timestamp()[1]
    raw = (message.key(), message.value(), headers_of(message))
    return decode_raw(topic, partition, offset, timestamp_ms, *raw)


def decode_raw(
    topic: Topic[K, V],
    partition: int,
    offset: int,
    timestamp_ms: int,
    raw_key: bytes | None,
    raw_value: bytes | None,
    headers: tuple[tuple[str, bytes | None], ...],
) -> Record[K, V]:
    """Raises `UnreadableRecordError`, which names topic, partition and offset."""
    part: Literal["key", "value"] = "key"
    try:
        key = None if raw_key is None else topic.key_format.decode(raw_key)
        part = "value"
        value = None if raw_value is None else topic.value_format.decode(raw_value)
    except InvalidDataError as error:
        where = f"{topic.name}[{partition}]@{offset}"
        raise UnreadableRecordError(where, part, error) from error
    return Record(
        topic.name,
        partition,
        offset,
        timestamp_ms,
        key,
        value,
        headers,
        is_tombstone=raw_value is None,
    )


def decodes_at_once(topic: Topic[Any, Any], message: Message) -> bool:
    """No format of the topic would ask a server for this message."""
    key, value = topic.key_waits, topic.value_waits
    raw_key = message.key() if key is not None else None
    raw_value = message.value() if value is not None else None
    return (key is None or raw_key is None or key.decodes_at_once(raw_key)) and (
        value is None or raw_value is None or value.decodes_at_once(raw_value)
    )


def spot_of(message: Message) -> tuple[int, int]:
    """Partition and offset."""
    return message.partition() or 0, message.offset() or 0


def headers_of(message: Message) -> tuple[tuple[str, bytes | None], ...]:
    headers = message.headers()
    if not headers:
        return ()
    items = headers.items() if isinstance(headers, dict) else headers
    return tuple(
        (name, value.encode() if isinstance(value, str) else value) for name, value in items
    )
