"""The Fetch API's codec, versions 4 to 18, hand-written: records go out as the views they are.

Source: Kafka's FetchRequest.json and FetchResponse.json; KIP-227 (fetch sessions).
"""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from bucketlog.log_format.model import Buffer, TopicId
from bucketlog.log_format.transactions import AbortedTransaction
from bucketlog.log_format.wire.frames import ITEMS_MAX, FrameReader, FrameWriter

TopicKey: TypeAlias = tuple[str, TopicId | None]
"""How requests name a topic: by its name, or by its id, by version. The other value is "" or None.
"""
MIN_VERSION = 4
MAX_VERSION = 18
FLEXIBLE_FROM = 12
TOPIC_IDS_FROM = 13
_LOG_START_FROM = 5
SESSIONS_FROM = 7
_LEADER_EPOCH_FROM = 9
_RACK_FROM = 11
_FETCHED_EPOCH_FROM = 12
_REPLICA_STATE_FROM = 15

NO_SESSION = 0
"""The session id of requests and responses without a session."""
FIRST_EPOCH, LAST_EPOCH = 0, -1
"""The epochs of full requests: one that wants a session, and one that does not."""
_NULL = -1
"""The length of an array that is null."""
_TOPIC_BYTES_MIN = 2
_PARTITION_BYTES_MIN = 16


class FetchedPartition(NamedTuple):
    """Either `topic` or `topic_id` is set, by version."""

    topic: str
    topic_id: TopicId | None
    partition: int
    leader_epoch: int
    fetch_offset: int
    max_bytes: int


class FetchPartitions:
    """The partitions of a request in columns, 28 bytes for each partition: many requests with many
    partitions may be in memory at once."""

    __slots__ = ("_leader_epochs", "_max_bytes", "_numbers", "_offsets", "_topics")

    def __init__(self, partitions: Iterable[FetchedPartition] = ()) -> None:
        self._topics: list[TopicKey] = []
        self._numbers = array("i")
        self._leader_epochs = array("i")
        self._offsets = array("q")
        self._max_bytes = array("i")
        topic: TopicKey = "", None
        for each in partitions:
            if each[:2] != topic:
                topic = each.topic, each.topic_id
            self.add(topic, *each[2:])

    def add(
        self,
        topic: TopicKey,
        number: int,
        leader_epoch: int,
        fetch_offset: int,
        max_bytes: int,
    ) -> None:
        self._topics.append(topic)
        self._numbers.append(number)
        self._leader_epochs.append(leader_epoch)
        self._offsets.append(fetch_offset)
        self._max_bytes.append(max_bytes)

    def append(self, each: FetchedPartition) -> None:
        self.add((each.topic, each.topic_id), *each[2:])

    def each_once(self) -> "FetchPartitions":
        """Each partition once, at its first place, with its last values, as in Kafka."""
        rows = {key: row for row, key in enumerate(zip(self._topics, self._numbers, strict=True))}
        if len(rows) == len(self):
            return self
        kept = FetchPartitions()
        for (topic, number), row in rows.items():
            values = self._leader_epochs[row], self._offsets[row], self._max_bytes[row]
            kept.add(topic, number, *values)
        return kept

    def topic_names(self) -> set[str]:
        """Only "" if the request names topics by their ids."""
        return {name for name, _ in self._topics}

    def name_bytes(self) -> int:
        """The encoded size of all topic names. A name counts again after another one."""
        size, last = 0, ""
        for name, _ in self._topics:
            if name is not last:
                size += len(name) if name.isascii() else len(name.encode())
                last = name
        return size

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, row: int) -> FetchedPartition:
        topic, topic_id = self._topics[row]
        columns = self._numbers, self._leader_epochs, self._offsets, self._max_bytes
        return FetchedPartition(topic, topic_id, *(column[row] for column in columns))

    def __iter__(self) -> Iterator[FetchedPartition]:
        columns = self._numbers, self._leader_epochs, self._offsets, self._max_bytes
        for (topic, topic_id), *values in zip(self._topics, *columns, strict=True):
            yield FetchedPartition(topic, topic_id, *values)


@dataclass(frozen=True, slots=True)
class FetchRequest:
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation_level: int
    session_id: int
    session_epoch: int
    partitions: FetchPartitions
    """Each once."""
    forgotten: Sequence[tuple[TopicKey, int]] = ()
    """Partitions that leave the session."""

    @property
    def is_full(self) -> bool:
        """Whether the request names all its partitions, with or without a session."""
        return self.session_epoch in (FIRST_EPOCH, LAST_EPOCH)


class FetchPartitionData(NamedTuple):
    """`records` are views; an unknown offset is -1. `aborted` is None for consumers of
    `read_uncommitted`; its transactions are in the order of their first offsets."""

    topic: str
    topic_id: TopicId | None
    partition: int
    error_code: int
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    records: list[Buffer]
    aborted: Sequence[AbortedTransaction] | None = None


def read_request(
    frame: memoryview, at: int, version: int, *, items_max: int = ITEMS_MAX
) -> FetchRequest:
    """Decode the body that begins at `at`. Raises `MalformedRequestError`."""
    reader = FrameReader(frame, at, flexible=version >= FLEXIBLE_FROM, items_max=items_max)
    if version < _REPLICA_STATE_FROM:
        reader.int32()
    max_wait_ms = reader.int32()
    min_bytes = reader.int32()
    max_bytes = reader.int32()
    isolation_level = reader.int8()
    session_id, session_epoch = NO_SESSION, LAST_EPOCH
    if version >= SESSIONS_FROM:
        session_id, session_epoch = reader.int32(), reader.int32()
    partitions = FetchPartitions()
    for _ in range(reader.array_length(_TOPIC_BYTES_MIN)):
        _read_topic(reader, version, partitions)
    forgotten: list[tuple[TopicKey, int]] = []
    if version >= SESSIONS_FROM:
        _read_forgotten(reader, version, forgotten)
    if version >= _RACK_FROM:
        reader.string()
    reader.tags()
    reader.finish()
    return FetchRequest(
        max_wait_ms,
        min_bytes,
        max_bytes,
        isolation_level,
        session_id,
        session_epoch,
        partitions.each_once(),
        forgotten,
    )


def _read_topic(reader: FrameReader, version: int, into: FetchPartitions) -> None:
    topic = _read_topic_key(reader, version)
    for _ in range(reader.array_length(_PARTITION_BYTES_MIN)):
        partition = reader.int32()
        leader_epoch = reader.int32() if version >= _LEADER_EPOCH_FROM else -1
        fetch_offset = reader.int64()
        if version >= _FETCHED_EPOCH_FROM:
            reader.int32()
        if version >= _LOG_START_FROM:
            reader.int64()
        max_bytes = reader.int32()
        reader.tags()
        into.add(topic, partition, leader_epoch, fetch_offset, max_bytes)
    reader.tags()


def _read_topic_key(reader: FrameReader, version: int) -> TopicKey:
    if version >= TOPIC_IDS_FROM:
        return "", TopicId(reader.uuid())
    return reader.string(), None


def _read_forgotten(reader: FrameReader, version: int, into: list[tuple[TopicKey, int]]) -> None:
    for _ in range(reader.array_length(_TOPIC_BYTES_MIN)):
        topic = _read_topic_key(reader, version)
        into.extend((topic, reader.int32()) for _ in range(reader.array_length(4)))
        reader.tags()


def write_response(
    version: int,
    error_code: int,
    results: Sequence[FetchPartitionData],
    *,
    throttle_ms: int = 0,
    session_id: int = NO_SESSION,
) -> list[Buffer]:
    """Encode the body as parts to send one after another; `results` of a topic are together."""
    flexible = version >= FLEXIBLE_FROM
    writer = FrameWriter(flexible=flexible)
    parts: list[Buffer] = []
    by_topic: dict[str | TopicId | None, list[FetchPartitionData]] = {}
    for result in results:
        name = result.topic_id if version >= TOPIC_IDS_FROM else result.topic
        by_topic.setdefault(name, []).append(result)
    writer.int32(throttle_ms)
    if version >= SESSIONS_FROM:
        writer.int16(error_code)
        writer.int32(session_id)
    writer.array_length(len(by_topic))
    for partitions in by_topic.values():
        if version >= TOPIC_IDS_FROM:
            writer.data += partitions[0].topic_id or bytes(16)
        else:
            writer.nullable_string(partitions[0].topic)
        writer.array_length(len(partitions))
        for result in partitions:
            _write_partition(writer, version, result)
            parts.append(writer.data)
            parts.extend(result.records)
            writer = FrameWriter(flexible=flexible)
            writer.tags()
        writer.tags()
    writer.tags()
    parts.append(writer.data)
    return parts


def _write_partition(writer: FrameWriter, version: int, result: FetchPartitionData) -> None:
    writer.int32(result.partition)
    writer.int16(result.error_code)
    writer.int64(result.high_watermark)
    writer.int64(result.last_stable_offset)
    if version >= _LOG_START_FROM:
        writer.int64(result.log_start_offset)
    if result.aborted is None:
        writer.array_length(_NULL)
    else:
        writer.array_length(len(result.aborted))
        for producer_id, first_offset, _ in result.aborted:
            writer.int64(producer_id)
            writer.int64(first_offset)
            writer.tags()
    if version >= _RACK_FROM:
        writer.int32(-1)
    writer.bytes_length(sum(len(part) for part in result.records))
