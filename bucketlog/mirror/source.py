"""Reads from the source: Fetch and ListOffsets, over connections of the mirror.

Apache Kafka 2.3 and later have the versions of these requests. From Kafka 3.1 on, Fetch requests
have topic ids (KIP-516). So records of a topic that was created again are never added to the copy
of the old topic.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from bucketlog.client.broker_connection import BrokerConnection
from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.log_format.wire.frames import FrameReader, FrameWriter, MalformedRequestError

FETCH_BY_NAME, FETCH_BY_ID, LIST_OFFSETS_VERSION = 11, 13, 2
_API_BYTES = 6
EARLIEST, LATEST = -2, -1
READ_UNCOMMITTED, READ_COMMITTED = 0, 1
_TOPIC_BYTES_MIN, _PARTITION_BYTES_MIN, _ABORTED_BYTES = 6, 18, 16


class Partition(NamedTuple):
    topic: str
    number: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.number}"


class SourcePartition(NamedTuple):
    """The part of a Fetch response for one partition.

    `aborted` has the producer id and first offset of each aborted transaction. `stable_end` is the
    last stable offset. `high_watermark` is -1 if there is an error.
    """

    partition: Partition
    error: int
    high_watermark: int
    stable_end: int
    log_start: int
    aborted: list[tuple[int, int]]
    records: memoryview


class SourceBroker:
    """A connection to a broker of the source. The constructor asks for the broker's API versions,
    and raises `EOFError` or `OSError`."""

    def __init__(self, connection: BrokerConnection) -> None:
        self.connection = connection
        self._has_ids = _versions_of(connection).get(ApiKey.FETCH, 0) >= FETCH_BY_ID

    def fetch(
        self,
        positions: Mapping[Partition, tuple[bytes | None, int]],
        *,
        wait_ms: int,
        bytes_max: int,
        partition_bytes_max: int,
    ) -> list[SourcePartition]:
        """Fetch batches up to the last stable offset.

        `positions` has the topic id and the offset to fetch from, by partition. If a topic has no
        id, the request has the names of all topics instead. Raises `EOFError`, `OSError`,
        `MalformedRequestError`.
        """
        ids = {each.topic: topic_id for each, (topic_id, _) in positions.items() if topic_id}
        by_id = self._has_ids and all(each.topic in ids for each in positions)
        body = FrameWriter(flexible=by_id)
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
            if by_id:
                body.data += ids[topic]
            else:
                body.nullable_string(topic)
            body.array_length(len(numbers))
            for number in numbers:
                body.int32(number)
                body.int32(-1)
                body.int64(positions[Partition(topic, number)][1])
                if by_id:
                    body.int32(-1)
                body.int64(-1)
                body.int32(partition_bytes_max)
                body.tags()
            body.tags()
        body.array_length(0)
        body.nullable_string("")
        body.tags()
        answer = self.connection.ask(ApiKey.FETCH, FETCH_BY_ID if by_id else FETCH_BY_NAME, body)
        names = {topic_id: topic for topic, topic_id in ids.items()} if by_id else None
        found = _read_fetch(answer, names)
        for each in found:
            if each.partition not in positions:
                raise MalformedRequestError(f"{each.partition} in the response was not requested")
        return found


def _versions_of(connection: BrokerConnection) -> dict[int, int]:
    """The newest version of each API."""
    answer = connection.ask(ApiKey.API_VERSIONS, 0, FrameWriter(flexible=False))
    answer.int16()
    ranges = [
        (answer.int16(), answer.int16(), answer.int16())
        for _ in range(answer.array_length(_API_BYTES))
    ]
    return {key: newest for key, _, newest in ranges}


def _read_fetch(answer: FrameReader, names: Mapping[bytes, str] | None) -> list[SourcePartition]:
    """Decode a Fetch response. `names` are topic names by id; None if the response has names."""
    answer.int32()
    error = answer.int16()
    answer.int32()
    found = []
    for _ in range(answer.array_length(_TOPIC_BYTES_MIN)):
        topic = answer.string() if names is None else names.get(answer.uuid(), "")
        for _ in range(answer.array_length(_PARTITION_BYTES_MIN)):
            number, of_partition = answer.int32(), answer.int16()
            high_watermark, stable_end, log_start = answer.int64(), answer.int64(), answer.int64()
            aborted = []
            for _ in range(answer.array_length(_ABORTED_BYTES)):
                aborted.append((answer.int64(), answer.int64()))
                answer.tags()
            answer.int32()
            records = answer.nullable_bytes() or memoryview(b"")
            answer.tags()
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
        answer.tags()
    return found


def list_offsets(
    connection: BrokerConnection, partitions: Iterable[Partition], spot: int, isolation: int
) -> dict[Partition, tuple[int, int]]:
    """The error code and offset, by partition. `spot` is EARLIEST or LATEST.

    Raises `EOFError`, `OSError`.
    """
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
