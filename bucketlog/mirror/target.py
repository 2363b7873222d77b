"""Writes to the target: Produce requests whose batches must get their original offsets."""

from collections.abc import Mapping
from typing import NamedTuple

from bucketlog.client.broker_connection import BrokerConnection
from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.log_format.wire.frames import FrameWriter, uvarint
from bucketlog.log_format.wire.produce import MIRROR_TAG
from bucketlog.mirror.source import Partition

PRODUCE_VERSION = 9
ACKS_ALL = -1
_MIRROR = b"\1" + uvarint(MIRROR_TAG) + b"\0"
_TOPIC_BYTES_MIN, _PARTITION_BYTES_MIN, _RECORD_BYTES_MIN = 2, 20, 5


class WriteResult(NamedTuple):
    partition: Partition
    error: int
    message: str | None


def send_batches(
    connection: BrokerConnection, batches: Mapping[Partition, bytes | bytearray], timeout_ms: int
) -> None:
    """Send one batch of each partition, in one request. Raises `OSError`."""
    body = FrameWriter(flexible=True)
    body.nullable_string(None)
    body.int16(ACKS_ALL)
    body.int32(timeout_ms)
    grouped: dict[str, list[tuple[int, bytes | bytearray]]] = {}
    for (topic, number), batch in batches.items():
        grouped.setdefault(topic, []).append((number, batch))
    body.array_length(len(grouped))
    for topic, rows in grouped.items():
        body.nullable_string(topic)
        body.array_length(len(rows))
        for number, batch in rows:
            body.int32(number)
            body.bytes_length(len(batch))
            body.data += batch
            body.tags()
        body.tags()
    connection.send(ApiKey.PRODUCE, PRODUCE_VERSION, body, body_tags=_MIRROR)


def receive_results(connection: BrokerConnection) -> list[WriteResult]:
    """Wait for the response to the oldest open request. Raises `EOFError`, `OSError`."""
    answer = connection.receive(flexible=True)
    found = []
    for _ in range(answer.array_length(_TOPIC_BYTES_MIN)):
        topic = answer.string()
        for _ in range(answer.array_length(_PARTITION_BYTES_MIN)):
            number, error = answer.int32(), answer.int16()
            answer.skip(3 * 8)
            for _ in range(answer.array_length(_RECORD_BYTES_MIN)):
                answer.int32()
                answer.nullable_string()
                answer.tags()
            found.append(WriteResult(Partition(topic, number), error, answer.nullable_string()))
            answer.tags()
        answer.tags()
    return found
