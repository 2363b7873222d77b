"""The consumer: typed records of explicitly named partitions, in offset order per partition.

Invariants: nothing is skipped silently: an offset that is out of range, a lost broker or a record
that does not decode is raised, and iteration may go on after it. With `until="end"` it returns
exactly the records that stood before each partition's end when it was opened.
"""

import time
from collections import deque
from collections.abc import Iterator, Mapping
from datetime import datetime
from types import TracebackType
from typing import Any, Generic, Literal, Self, TypeAlias, TypeVar

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, KafkaError, KafkaException, Message
from confluent_kafka import Consumer as KafkaConsumer
from confluent_kafka import TopicPartition as KafkaPartition

from bucketlog.client.kafka_errors import log_error
from bucketlog.client.topic import Record, Topic
from bucketlog.errors import InvalidDataError, LogError

K = TypeVar("K")
V = TypeVar("V")

Start: TypeAlias = Literal["earliest", "latest"] | datetime | int | Mapping[int, int]
"""Where to begin: an end, the first record at or after a time, an offset, or one per partition."""

BATCH_RECORDS = 1000
_POLL_S = 0.25
_PASSING = frozenset({KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN})
"""librdkafka goes on trying by itself: raised only where the timeout runs out."""


class Consumer(Generic[K, V]):
    """Reads a topic's partitions; made by `Log.consumer`, used as a context manager and iterator.

    For use by one thread at a time.
    """

    def __init__(
        self,
        config: Mapping[str, Any],
        topic: Topic[K, V],
        *,
        start: Start,
        partitions: tuple[int, ...],
        until_end: bool,
        timeout_s: float,
    ) -> None:
        self.topic = topic
        self.partitions = partitions
        self._timeout_s = timeout_s
        self._ready: deque[Message] = deque()
        self._ends: dict[int, int] | None = None
        self._broken_since: float | None = None
        self._kafka = KafkaConsumer({**config, "enable.partition.eof": until_end})
        try:
            begin = self._positions(start)
            if until_end:
                self._ends = self._end_offsets(begin)
                begin = [spot for spot in begin if spot.partition in self._ends]
            self._kafka.assign(begin)
        except KafkaException as error:
            self._kafka.close()
            raise log_error(error.args[0], f"opening topic {topic.name!r}") from error
        except BaseException:
            self._kafka.close()
            raise

    def poll(self, max_records: int = BATCH_RECORDS, timeout_s: float = 1.0) -> list[Record[K, V]]:
        """Up to `max_records` records that are there or come within `timeout_s`; maybe none.

        Raises `LogError`, or `InvalidDataError` for a record that does not decode: the ones before
        it have been returned by earlier calls or come with the next one after it.
        """
        deadline = time.monotonic() + timeout_s
        while not self._ready and not self.finished:
            left = deadline - time.monotonic()
            if left <= 0 and timeout_s > 0:
                break
            self._fill(max_records, max(0.0, min(left, _POLL_S)))
            if timeout_s <= 0:
                break
        records: list[Record[K, V]] = []
        while self._ready and len(records) < max_records:
            try:
                records.append(self._decode(self._ready[0]))
            except InvalidDataError:
                if records:
                    return records
                self._ready.popleft()
                raise
            self._ready.popleft()
        return records

    def batches(self, max_records: int = BATCH_RECORDS) -> Iterator[list[Record[K, V]]]:
        """Non-empty lists of records as they come, at most `max_records` each."""
        while not self.finished:
            if batch := self.poll(max_records, _POLL_S):
                yield batch

    @property
    def finished(self) -> bool:
        """With `until="end"`: all of it was read. Otherwise never."""
        return self._ends is not None and not self._ends and not self._ready

    def close(self) -> None:
        self._kafka.close()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Record[K, V]:
        while not self._ready:
            if self.finished:
                raise StopIteration
            self._fill(BATCH_RECORDS, _POLL_S)
        return self._decode(self._ready.popleft())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _fill(self, max_records: int, timeout_s: float) -> None:
        try:
            messages = self._kafka.consume(max_records, timeout_s)
        except KafkaException as error:
            raise log_error(error.args[0], f"reading topic {self.topic.name!r}") from error
        failure: LogError | None = None
        for message in messages:
            error_of = message.error()
            if error_of is not None:
                failure = failure or self._failure(error_of, message)
            elif self._ends is None or self._is_wanted(message):
                self._broken_since = None
                self._ready.append(message)
        if failure is not None:
            raise failure
        self._check_stall()

    def _is_wanted(self, message: Message) -> bool:
        """Before its partition's end; ends a partition that has been read."""
        assert self._ends is not None
        partition, offset = message.partition() or 0, message.offset() or 0
        end = self._ends.get(partition)
        if end is None:
            return False
        if offset + 1 >= end:
            self._end(partition)
        return offset < end

    def _failure(self, error: KafkaError, message: Message) -> LogError | None:
        if error.code() == KafkaError._PARTITION_EOF:
            partition = message.partition() or 0
            self._broken_since = None
            if self._ends is not None and (message.offset() or 0) >= self._ends.get(partition, 0):
                self._end(partition)
            return None
        if error.code() in _PASSING:
            self._broken_since = self._broken_since or time.monotonic()
            return None
        return log_error(error, f"reading topic {self.topic.name!r}")

    def _check_stall(self) -> None:
        since = self._broken_since
        if since is not None and time.monotonic() - since > self._timeout_s:
            self._broken_since = None
            raise log_error(
                KafkaError(KafkaError._TRANSPORT),
                f"reading topic {self.topic.name!r}: no broker for {self._timeout_s:g} s",
            )

    def _end(self, partition: int) -> None:
        assert self._ends is not None
        if self._ends.pop(partition, None) is not None:
            self._kafka.incremental_unassign([KafkaPartition(self.topic.name, partition)])

    def _decode(self, message: Message) -> Record[K, V]:
        raw_key, raw_value = message.key(), message.value()
        partition, offset = message.partition() or 0, message.offset() or 0
        try:
            key = None if raw_key is None else self.topic.key_format.decode(raw_key)
            value = None if raw_value is None else self.topic.value_format.decode(raw_value)
        except InvalidDataError as error:
            raise InvalidDataError(
                f"the record at {self.topic.name}[{partition}]@{offset}: {error.message}",
                remedy=error.remedy,
            ) from error
        return Record(
            self.topic.name,
            partition,
            offset,
            message.timestamp()[1],
            key,
            value,
            _headers(message),
            is_tombstone=raw_value is None,
        )

    def _positions(self, start: Start) -> list[KafkaPartition]:
        name = self.topic.name
        if isinstance(start, datetime):
            at_ms = int(start.timestamp() * 1000)
            asked = [KafkaPartition(name, partition, at_ms) for partition in self.partitions]
            found = self._kafka.offsets_for_times(asked, self._timeout_s)
            for spot in found:
                if spot.error is not None:
                    raise log_error(spot.error, f"finding a time in topic {name!r}")
            return found
        return [KafkaPartition(name, part, _offset(start, part)) for part in self.partitions]

    def _end_offsets(self, begin: list[KafkaPartition]) -> dict[int, int]:
        """The high watermarks now, of the partitions that have something before them to read."""
        ends = {}
        for spot in begin:
            low, high = self._kafka.get_watermark_offsets(spot, self._timeout_s)
            first = low if spot.offset == OFFSET_BEGINNING else spot.offset
            if high > low and first != OFFSET_END and first < high:
                ends[spot.partition] = high
        return ends


def _offset(start: Literal["earliest", "latest"] | int | Mapping[int, int], partition: int) -> int:
    match start:
        case "earliest":
            return OFFSET_BEGINNING
        case "latest":
            return OFFSET_END
        case int():
            return start
        case _:
            return start.get(partition, OFFSET_BEGINNING)


def _headers(message: Message) -> tuple[tuple[str, bytes | None], ...]:
    headers = message.headers()
    if not headers:
        return ()
    items = headers.items() if isinstance(headers, dict) else headers
    return tuple(
        (name, value.encode() if isinstance(value, str) else value) for name, value in items
    )
