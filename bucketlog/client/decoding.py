"""From librdkafka's messages to typed records."""

from typing import TypeVar

from confluent_kafka import Message

from bucketlog.client.topic import Record, Topic
from bucketlog.errors import InvalidDataError

K = TypeVar("K")
V = TypeVar("V")


def decode(topic: Topic[K, V], message: Message) -> Record[K, V]:
    """Raises `InvalidDataError`, which names topic, partition and offset."""
    partition, offset = spot_of(message)
    timestamp_ms = message.timestamp()[1]
    raw = (message.key(), message.value(), _headers(message))
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
    """Raises `InvalidDataError`, which names topic, partition and offset."""
    try:
        key = None if raw_key is None else topic.key_format.decode(raw_key)
        value = None if raw_value is None else topic.value_format.decode(raw_value)
    except InvalidDataError as error:
        raise InvalidDataError(
            f"the record at {topic.name}[{partition}]@{offset}: {error.message}",
            remedy=error.remedy,
        ) from error
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


def spot_of(message: Message) -> tuple[int, int]:
    """Partition and offset."""
    return message.partition() or 0, message.offset() or 0


def _headers(message: Message) -> tuple[tuple[str, bytes | None], ...]:
    headers = message.headers()
    if not headers:
        return ()
    items = headers.items() if isinstance(headers, dict) else headers
    return tuple(
        (name, value.encode() if isinstance(value, str) else value) for name, value in items
    )
