"""The Produce API's codec, versions 3 to 13, hand-written: record data is never copied.

Source: Kafka's ProduceRequest.json and ProduceResponse.json.
"""

import struct
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from bucketlog.log_format.batch import RefusedRecord
from bucketlog.log_format.model import Buffer, TopicId
from bucketlog.log_format.wire.frames import FrameReader, FrameWriter

MIN_VERSION = 3
MAX_VERSION = 13
FLEXIBLE_FROM = 9
ABORTABLE_KNOWN_FROM = 11
TRANSACTION_VERSION_2_FROM = 12
"""KIP-890: partitions join a transaction with their first batch."""
TOPIC_IDS_FROM = 13
"""KIP-516."""
MIRROR_TAG = 10_000
"""The tagged field of a request that brings batches of a mirror. It has no content. Kafka's own
tags are small numbers, and brokers skip tags that they do not know (KIP-482)."""
_LOG_START_FROM = 5
_RECORD_ERRORS_FROM = 8

_ACKS_AND_TIMEOUT = struct.Struct(">hi")
_RESULT = struct.Struct(">ihqq")
_ONE_RESULT = {True: struct.Struct(">Bihqqq"), False: struct.Struct(">iihqqq")}
"""An array of one partition, up to its log start; the key says whether the encoding is flexible."""
_INT16, _INT32 = struct.Struct(">h"), struct.Struct(">i")
_NO_RECORD_ERRORS = {True: b"\x01\0", False: b"\0\0\0\0\xff\xff"}
"""An empty array and a null string; the key says whether the encoding is flexible."""
_SHORT_NAME_BYTES = 126
"""The length of a longer topic name takes two bytes in flexible versions."""
_TOPIC_BYTES_MIN = 2
_PARTITION_BYTES_MIN = 5


class ProducePartitionData(NamedTuple):
    """`records` is a view of the frame, or None where the client sent null. `topic_id`: as the
    request names the topic, from version 13 on; then `topic` is '' if no topic has the id."""

    topic: str
    partition: int
    records: memoryview | None
    topic_id: TopicId | None = None


class ProduceRequest(NamedTuple):
    transactional_id: str | None
    acks: int
    timeout_ms: int
    partitions: list[ProducePartitionData]
    is_mirror: bool = False
    """Each batch must get the base offset that it has."""


class ProduceResult(NamedTuple):
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
    topic_id: TopicId | None = None
    """As in the request."""


class RequestReader:
    """Decodes the body of a request, from the position of `reader`, in one or several calls of
    `read`.

    If a request names a partition twice, only the last records count, as in Kafka (KafkaApis
    collects the partitions of a request in a map). `name_of` returns the name of a topic, or '';
    version 13 and later name topics by their ids. Raises `MalformedRequestError`.
    """

    def __init__(
        self, reader: FrameReader, version: int, name_of: Callable[[TopicId], str]
    ) -> None:
        self._reader = reader
        self._name_of = name_of if version >= TOPIC_IDS_FROM else None
        self._topic_id: TopicId | None = None
        self._transactional_id = reader.nullable_string()
        self._acks, self._timeout_ms = reader.unpack(_ACKS_AND_TIMEOUT)
        self._topics_left = reader.array_length(_TOPIC_BYTES_MIN)
        self._topic: str | None = None
        self._partitions_left = 0
        self._partitions: dict[tuple[TopicId | str, int], ProducePartitionData] = {}
        self._is_mirror = False

    def read(self, items: int) -> bool:
        """Decode about `items` more topics and partitions. Returns whether all are decoded. Raises
        `MalformedRequestError`."""
        reader = self._reader
        left = items
        while self._topic is not None or self._topics_left:
            if self._topic is None:
                self._topics_left -= 1
                if self._name_of is None:
                    self._topic = reader.string()
                else:
                    self._topic_id = TopicId(reader.uuid())
                    self._topic = self._name_of(self._topic_id)
                self._partitions_left = reader.array_length(_PARTITION_BYTES_MIN)
            topic, topic_id = self._topic, self._topic_id
            key, count = topic_id or topic, min(self._partitions_left, left)
            for _ in range(count):
                index = reader.int32()
                part = ProducePartitionData(topic, index, reader.nullable_bytes(), topic_id)
                self._partitions[key, index] = part
                reader.tags()
            self._partitions_left -= count
            left -= count + 1
            if not self._partitions_left:
                reader.tags()
                self._topic = None
            if left <= 0 and (self._topic is not None or self._topics_left):
                return False
        for _ in range(reader.tag_count() if reader.flexible else 0):
            tag = reader.uvarint()
            reader.skip(reader.uvarint())
            self._is_mirror |= tag == MIRROR_TAG
        reader.finish()
        return True

    def request(self) -> ProduceRequest:
        """The request, after `read` has returned True."""
        partitions = list(self._partitions.values())
        return ProduceRequest(
            self._transactional_id, self._acks, self._timeout_ms, partitions, self._is_mirror
        )


def read_request(
    reader: FrameReader, version: int, name_of: Callable[[TopicId], str] = lambda _: ""
) -> ProduceRequest:
    """Decode the body, from the position of `reader`. Raises `MalformedRequestError`."""
    request = RequestReader(reader, version, name_of)
    request.read(reader.items_left + 1)
    return request.request()


def write_response(
    version: int, results: Iterable[ProduceResult], *, throttle_ms: int = 0
) -> bytearray:
    """Encode the body; `results` of one topic are together."""
    writer = FrameWriter(flexible=version >= FLEXIBLE_FROM)
    for _ in response_steps(writer, version, results, throttle_ms=throttle_ms):
        pass
    return writer.data


def write_single_response(version: int, result: ProduceResult, *, throttle_ms: int = 0) -> Buffer:
    """Encode the body for one partition, with the same bytes as `write_response`. Most requests of
    many clients have one partition."""
    flexible = version >= FLEXIBLE_FROM
    name = result.topic.encode() if result.topic_id is None else result.topic_id
    if (
        version < _LOG_START_FROM
        or result.error_message is not None
        or result.refused_records
        or len(name) > _SHORT_NAME_BYTES
    ):
        return write_response(version, [result], throttle_ms=throttle_ms)
    row = (
        result.partition,
        result.error_code,
        result.base_offset,
        result.log_append_time_ms,
        result.log_start_offset,
    )
    errors = _NO_RECORD_ERRORS[flexible] if version >= _RECORD_ERRORS_FROM else b""
    if not flexible:
        head = _INT32.pack(1) + _INT16.pack(len(name))
        return b"".join(
            (head, name, _ONE_RESULT[False].pack(1, *row), errors, _INT32.pack(throttle_ms))
        )
    head = b"\x02" if result.topic_id is not None else bytes((2, len(name) + 1))
    body = _ONE_RESULT[True].pack(2, *row)
    return b"".join((head, name, body, errors, b"\0\0", _INT32.pack(throttle_ms), b"\0"))


def response_steps(
    writer: FrameWriter, version: int, results: Iterable[ProduceResult], *, throttle_ms: int = 0
) -> Iterator[int]:
    """Encode the body in steps. Each step yields the number of its partitions."""
    by_topic: dict[TopicId | str, list[ProduceResult]] = {}
    for result in results:
        by_topic.setdefault(result.topic_id or result.topic, []).append(result)
        yield 1
    writer.array_length(len(by_topic))
    for topic, partitions in by_topic.items():
        if isinstance(topic, str):
            writer.nullable_string(topic)
        else:
            writer.data += topic
        writer.array_length(len(partitions))
        partitions.reverse()
        while partitions:  # freeing all results at once would take milliseconds
            _write_partition(writer, version, partitions.pop())
            yield 1
        writer.tags()
    writer.int32(throttle_ms)
    writer.tags()


def _write_partition(writer: FrameWriter, version: int, result: ProduceResult) -> None:
    writer.pack(
        _RESULT,
        result.partition,
        result.error_code,
        result.base_offset,
        result.log_append_time_ms,
    )
    if version >= _LOG_START_FROM:
        writer.int64(result.log_start_offset)
    if version < _RECORD_ERRORS_FROM:
        pass
    elif result.error_message is None and not result.refused_records:
        writer.data += _NO_RECORD_ERRORS[writer.flexible]
    else:
        writer.array_length(len(result.refused_records))
        for refused in result.refused_records:
            writer.int32(refused.at)
            writer.error_message(refused.reason)
            writer.tags()
        writer.error_message(result.error_message)
    writer.tags()
