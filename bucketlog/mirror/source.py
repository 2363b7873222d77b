"""Reading from the source: Fetch and ListOffsets over connections of the mirror.

Versions are old ones without tagged fields: Apache Kafka 2.3 and later have them.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from bucketlog.client.broker_connection import BrokerConnection
from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.log_format.wire.frames import FrameReader, FrameWriter

FETCH_VERSION, LIST_OFFSETS_VERSION = 11, 2
EARLIEST, LATEST = -2, -1
READ_UNCOMMITTED, READ_COMMITTED = 0, 1
_TOPIC_BYTES_MIN, _PARTITION_BYTES_MIN, _ABORTED_BYTES = 6, 18, 16


class Partition(NamedTuple):
    topic: str
    number: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.number}"


class SourcePartition(NamedTuple):
    """`aborted`: producer ids and first offsets of aborted transactions. `stable_end` is the last
    stable offset, `high_watermark` is -1 with an error."""

    partition: Partition
    error: int
    high_watermark: int
    stable_end: int
    log_start: int
    aborted: list[tuple[int, int]]
    records: memoryview


def fetch(
    connection: BrokerConnection,
    positions: Mapping[Partition, int],
    *,
    wait_ms: int,
    bytes_max: int,
    partition_bytes_max: int,
) -> list[SourcePartition]:
    """Whole batches up to the last stable offset. Raises `EOFError`, `OSError`."""
    body = FrameWriter(flexible=False)
    body.int32(-1)
    body.int32(wait_ms)
    body.int32(1)
    body.int32(bytes_max)
    body.data.append(READ_COMMITTED)
    body.int32(0)
    body.int32(-1)
    grouped = _by_topic(positions)
    body.array_length(len(grouped))
    for topic, numbers in grouped.items():
        body.nullable_string(topic)
        body.array_length(len(numbers))
        for number in numbers:
            body.int32(number)
            body.int32(-1)
            body.int64(positions[Partition(topic, number)])
            body.int64(-1)
            body.int32(partition_bytes_max)
    body.array_length(0)
    body.nullable_string("")
    return _read_fetch(connection.ask(ApiKey.FETCH, FETCH_VERSION, body))


def _read_fetch(answer: FrameReader) -> list[SourcePartition]:
    answer.int32()
    error = answer.int16()
    answer.int32()
    found = []
    for _ in range(answer.array_length(_TOPIC_BYTES_MIN)):
        topic = answer.string()
        for _ in range(answer.array_length(_PARTITION_BYTES_MIN)):
            number, of_partition = answer.int32(), answer.int16()
            high_watermark, stable_end, log_start = answer.int64(), answer.int64(), answer.int64()
            aborted = [
                (answer.int64(), answer.int64()) for _ in range(answer.array_length(_ABORTED_BYTES))
            ]
            answer.int32()
            records = answer.nullable_bytes() or memoryview(b"")
            found.append(
                SourcePartition(
                    Partition(topic, number),
                    error or of_partition,
                    high_watermark,
                    stable_end,
                    log_start,
                    aborted,
                    records,
                )
            )
    return found


def list_offsets(
    connection: BrokerConnection, partitions: Iterable[Partition], spot: int, isolation: int
) -> dict[Partition, tuple[int, int]]:
    """Error and offset. `spot` is EARLIEST or LATEST. Raises `EOFError`, `OSError`."""
    body = FrameWriter(flexible=False)
    body.int32(-1)
    body.data.append(isolation)
    grouped = _by_topic(partitions)
    body.array_length(len(grouped))
    for topic, numbers in grouped.items():
        body.nullable_string(topic)
        body.array_length(len(numbers))
        for number in numbers:
            body.int32(number)
            body.int64(spot)
    answer = connection.ask(ApiKey.LIST_OFFSETS, LIST_OFFSETS_VERSION, body)
    answer.int32()
    found = {}
    for _ in range(answer.array_length(_TOPIC_BYTES_MIN)):
        topic = answer.string()
        for _ in range(answer.array_length(_PARTITION_BYTES_MIN)):
            number, error = answer.int32(), answer.int16()
            answer.int64()
            found[Partition(topic, number)] = error, answer.int64()
    return found


def _by_topic(partitions: Iterable[Partition]) -> dict[str, list[int]]:
    grouped: dict[str, list[int]] = {}
    for topic, number in partitions:
        grouped.setdefault(topic, []).append(number)
    return grouped
