"""The Produce API's codec, versions 3 to 12, hand-written: record data is never copied.

Source: Kafka's ProduceRequest.json and ProduceResponse.json.
"""

from dataclasses import dataclass
from typing import NamedTuple

from bucketlog.log_format.batch import RefusedRecord
from bucketlog.log_format.wire.frames import ITEMS_MAX, FrameReader, FrameWriter

MIN_VERSION = 3
MAX_VERSION = 12
FLEXIBLE_FROM = 9
_LOG_START_FROM = 5
_RECORD_ERRORS_FROM = 8

_TOPIC_BYTES_MIN = 2
_PARTITION_BYTES_MIN = 5


class ProducePartitionData(NamedTuple):
    """`records` is a view of the frame, or None where the client sent null."""

    topic: str
    partition: int
    records: memoryview | None


@dataclass(frozen=True, slots=True)
class ProduceRequest:
    transactional_id: str | None
    acks: int
    timeout_ms: int
    partitions: list[ProducePartitionData]


class PartitionResult(NamedTuple):
    """`log_append_time_ms` is -1 with CreateTime."""

    topic: str
    partition: int
    error_code: int
    base_offset: int
    log_append_time_ms: int
    log_start_offset: int
    error_message: str | None
    refused_records: tuple[RefusedRecord, ...] = ()
    """The records that caused the rejection of the batch, if known."""


def read_request(
    frame: memoryview, at: int, version: int, *, items_max: int = ITEMS_MAX
) -> ProduceRequest:
    """Decode the body that begins at `at`. Raises `MalformedRequestError`."""
    reader = FrameReader(frame, at, flexible=version >= FLEXIBLE_FROM, items_max=items_max)
    transactional_id = reader.nullable_string()
    acks = reader.int16()
    timeout_ms = reader.int32()
    partitions = []
    for _ in range(reader.array_length(_TOPIC_BYTES_MIN)):
        topic = reader.string()
        for _ in range(reader.array_length(_PARTITION_BYTES_MIN)):
            index = reader.int32()
            partitions.append(ProducePartitionData(topic, index, reader.nullable_bytes()))
            reader.tags()
        reader.tags()
    reader.tags()
    reader.finish()
    return ProduceRequest(transactional_id, acks, timeout_ms, partitions)


def write_response(version: int, results: list[PartitionResult]) -> bytearray:
    """Encode the body; `results` of one topic stand together."""
    writer = FrameWriter(flexible=version >= FLEXIBLE_FROM)
    by_topic: dict[str, list[PartitionResult]] = {}
    for result in results:
        by_topic.setdefault(result.topic, []).append(result)
    writer.array_length(len(by_topic))
    for topic, partitions in by_topic.items():
        writer.nullable_string(topic)
        writer.array_length(len(partitions))
        for result in partitions:
            writer.int32(result.partition)
            writer.int16(result.error_code)
            writer.int64(result.base_offset)
            writer.int64(result.log_append_time_ms)
            if version >= _LOG_START_FROM:
                writer.int64(result.log_start_offset)
            if version >= _RECORD_ERRORS_FROM:
                writer.array_length(len(result.refused_records))
                for refused in result.refused_records:
                    writer.int32(refused.at)
                    writer.nullable_string(refused.reason)
                    writer.tags()
                writer.nullable_string(result.error_message)
            writer.tags()
        writer.tags()
    writer.int32(0)
    writer.tags()
    return writer.data
