"""What every consumer does: polling, decoding, iterating, stopping at an end.

Which partitions are read is decided by a subclass: `PartitionConsumer` (they are named) or
`GroupConsumer` (the members of a group share them).

Invariants: nothing is skipped silently: an offset that is out of range, a lost broker or a record
that does not decode is raised, and iteration may go on after it (but see `on_error`). With
`until="end"` it returns exactly the records that stood before each partition's end when that was
looked up.
"""

import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator, Mapping
from itertools import islice
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, KafkaError, KafkaException, Message
from confluent_kafka import Consumer as KafkaConsumer
from confluent_kafka import TopicPartition as KafkaPartition

from bucketlog.client.decoding import (
    UnreadableRecordError,
    decode,
    decodes_at_once,
    spot_of,
)
from bucketlog.client.kafka_errors import log_error
from bucketlog.client.poison import Poison
from bucketlog.client.topic import Record, Topic, check_topic
from bucketlog.log_format.errors import LogError, SchemaRegistryError

K = TypeVar("K")
V = TypeVar("V")

BATCH_RECORDS = 1000
_POLL_S = 0.25
_PASSING = frozenset(
    {
        KafkaError._TRANSPORT,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.NOT_COORDINATOR,
    }
)
"""librdkafka goes on trying by itself: raised only where the timeout runs out."""


class Consumer(ABC, Generic[K, V]):
    """Reads a topic; made by `Log.consumer`, used as a context manager and iterator.

    For use by one thread at a time.
    """

    def __init__(
        self,
        config: Mapping[str, Any],
        topic: Topic[K, V],
        poison: Poison,
        *,
        until_end: bool,
        timeout_s: float,
    ) -> None:
        check_topic(topic)
        self.topic = topic
        self._poison = poison
        self._timeout_s = timeout_s
        self._ready: deque[Message] = deque()
        self._ends: dict[int, int] | None = {} if until_end else None
        """With `until="end"`: where each partition that is not read to its end yet ends."""
        self._broken_since: float | None = None
        self._woken = False
        self._ahead: tuple[Message, Record[K, V] | UnreadableRecordError] | None = None
        """What `_look_at` made of the message that is handed out next."""
        self._asks = topic.key_waits is not None or topic.value_waits is not None
        """To decode may mean to ask a server."""
        try:
            self._kafka = KafkaConsumer({**config, "enable.partition.eof": until_end})
        except KafkaException as error:
            raise log_error(error.args[0], f"opening topic {topic.name!r}") from error

    @property
    def passed_over(self) -> int:
        """How many records were skipped or set aside because they do not decode (`on_error`)."""
        return self._poison.passed_over

    def poll(self, max_records: int = BATCH_RECORDS, timeout_s: float = 1.0) -> list[Record[K, V]]:
        """Up to `max_records` records that are there or come within `timeout_s`; maybe none.

        Raises `LogError`, or `InvalidDataError` for a record that does not decode: the ones before
        it have been returned by earlier calls or come with the next one after it.
        """
        try:
            records, count = self._read_ahead(max_records, timeout_s)
        except UnreadableRecordError:
            self._hand_out(1)
            raise
        self._hand_out(count)
        return records

    def batches(self, max_records: int = BATCH_RECORDS) -> Iterator[list[Record[K, V]]]:
        """Non-empty lists of records as they come, at most `max_records` each."""
        while not self.finished:
            if batch := self.poll(max_records, _POLL_S):
                yield batch

    @property
    @abstractmethod
    def finished(self) -> bool:
        """With `until="end"`: all of it was read. Otherwise never."""

    def close(self) -> None:
        try:
            self._kafka.close()
        finally:
            self._poison.close()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Record[K, V]:
        while (record := self._at_once(may_wait=True)) is None:
            if not self._prepare():
                raise StopIteration
        return record

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    # Handing out, in steps: the first two may wait, in any thread; the others never do ---------

    def _read_ahead(self, max_records: int, timeout_s: float) -> tuple[list[Record[K, V]], int]:
        """The records that `_hand_out`, called with the number beside them, takes next."""
        deadline = time.monotonic() + timeout_s
        while True:
            self._more_wanted()
            self._wait(max_records, deadline if timeout_s > 0 else 0.0)
            records, count = self._decode_ahead(max_records)
            if records or self.finished or time.monotonic() >= deadline or self._woken:
                return records, count
            self._hand_out(count)

    def _prepare(self) -> bool:
        """Wait for what `_at_once` takes or raises; False: all was read, or `_wake` was called."""
        while True:
            self._more_wanted()
            self._wait(BATCH_RECORDS, float("inf"))
            if not self._ready:
                return False
            if self._poison.raises:
                self._look_at(self._ready[0])
                return True
            if self._decode_ahead(1)[0]:
                return True
            self._hand_out(1)

    def _look_at(self, message: Message) -> None:
        """Decode it now if that may wait. Raises `SchemaRegistryError`."""
        if decodes_at_once(self.topic, message):
            return
        try:
            self._ahead = message, decode(self.topic, message)
        except UnreadableRecordError as error:
            self._ahead = message, error

    def _at_once(self, *, may_wait: bool = False) -> Record[K, V] | None:
        """Hand out a record that is there and decodes, if nothing else is to be done first."""
        if not self._ready or self._is_serving_due():
            return None
        ahead, self._ahead = self._ahead, None
        try:
            if ahead is not None and ahead[0] is self._ready[0]:
                record = _outcome(ahead[1])
            elif may_wait or not self._asks or decodes_at_once(self.topic, self._ready[0]):
                record = decode(self.topic, self._ready[0])
            else:
                return None
        except UnreadableRecordError:
            if not self._poison.raises:
                return None
            self._more_wanted()
            self._hand_out(1)
            raise
        self._more_wanted()
        self._hand_out(1)
        return record

    def _hand_out(self, count: int) -> None:
        for _ in range(count):
            self._handed_out(self._ready.popleft())

    def _begin(self) -> None:
        self._woken = False

    def _wake(self) -> None:
        """Let the thread that waits return soon: until `_begin`, nothing waits."""
        self._woken = True

    def _wait(self, max_records: int, deadline: float) -> None:
        """Until something is ready, or all was read; `deadline` 0: look once."""
        while not self._ready and not self._woken and not self.finished:
            left = deadline - time.monotonic()
            if left <= 0 and deadline:
                return
            self._fill(max_records, max(0.0, min(left, _POLL_S)))
            if not deadline:
                return

    def _decode_ahead(self, max_records: int) -> tuple[list[Record[K, V]], int]:
        """What decodes of the first `max_records`, and how many of them were looked at. What does
        not decode has been passed over, or is raised when it is the first."""
        records: list[Record[K, V]] = []
        unreadable: list[tuple[Message, UnreadableRecordError]] = []
        count = 0
        for message in islice(self._ready, max_records):
            try:
                records.append(decode(self.topic, message))
            except UnreadableRecordError as error:
                if self._poison.raises:
                    if records:
                        break
                    raise
                unreadable.append((message, error))
            except SchemaRegistryError:  # it says nothing about the record: it stays the next one
                if count:
                    break
                raise
            count += 1
        if unreadable:
            self._poison.pass_over(unreadable)
        return records, count

    # What a group keeps account of -----------------------------------------------------------

    @abstractmethod
    def _more_wanted(self) -> None:
        """The caller asks for records: it is done with those it was given."""

    @abstractmethod
    def _is_serving_due(self) -> bool:
        """`_more_wanted` would ask librdkafka for news, which may wait."""

    @abstractmethod
    def _handed_out(self, message: Message) -> None:
        """The caller is given this message."""

    @abstractmethod
    def _stop_reading(self, partition: int) -> None:
        """It was read to its end."""

    # Reading ---------------------------------------------------------------------------------

    def _fill(self, max_records: int, timeout_s: float) -> None:
        """As soon as there is one, with what is there by then: `consume` waits for all of them."""
        failure = self._take(self._consume(1, timeout_s))
        if self._ready and max_records > 1 and failure is None:
            failure = self._take(self._consume(max_records - 1, 0))
        if failure is not None:
            raise failure
        self._check_stall()

    def _take(self, messages: list[Message]) -> LogError | None:
        """Keep those that are wanted; the first failure among them."""
        failure: LogError | None = None
        for message in messages:
            error_of = message.error()
            if error_of is not None:
                failure = failure or self._failure(error_of, message)
            elif self._ends is None or self._is_wanted(message):
                self._broken_since = None
                self._ready.append(message)
        return failure

    def _consume(self, max_records: int, timeout_s: float) -> list[Message]:
        try:
            return self._kafka.consume(max_records, timeout_s)
        except KafkaException as error:
            raise log_error(error.args[0], f"reading topic {self.topic.name!r}") from error

    def _is_wanted(self, message: Message) -> bool:
        """Before its partition's end; ends a partition that has been read."""
        assert self._ends is not None
        partition, offset = spot_of(message)
        end = self._ends.get(partition)
        if end is None:
            return False
        if offset + 1 >= end:
            self._end(partition)
        return offset < end

    def _failure(self, error: KafkaError, message: Message) -> LogError | None:
        if error.code() == KafkaError._PARTITION_EOF:
            partition, offset = spot_of(message)
            self._broken_since = None
            if self._ends is not None and offset >= self._ends.get(partition, 0):
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
            self._stop_reading(partition)

    def _end_offsets(self, begin: list[KafkaPartition]) -> dict[int, int]:
        """The high watermarks now, of the partitions that have something before them to read."""
        ends = {}
        for spot in begin:
            low, high = self._kafka.get_watermark_offsets(spot, self._timeout_s)
            first = low if spot.offset == OFFSET_BEGINNING else spot.offset
            if high > low and first != OFFSET_END and first < high:
                ends[spot.partition] = high
        return ends

    def _at_time(self, partitions: list[int], at_ms: int) -> list[KafkaPartition]:
        """The first record at or after a time, by partition."""
        asked = [KafkaPartition(self.topic.name, partition, at_ms) for partition in partitions]
        found = self._kafka.offsets_for_times(asked, self._timeout_s)
        for spot in found:
            if spot.error is not None:
                raise log_error(spot.error, f"finding a time in topic {self.topic.name!r}")
        return found


def _outcome(found: Record[K, V] | UnreadableRecordError) -> Record[K, V]:
    if isinstance(found, UnreadableRecordError):
        raise found
    return found
