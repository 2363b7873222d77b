"""Base of all consumers: polling, decoding, iterating, stopping at an end.

Which partitions are read is decided by a subclass: `PartitionConsumer` (they are named) or
`GroupConsumer` (the members of a group share them).

Invariants: nothing is skipped silently: an offset that is out of range, a lost broker or a record
that does not decode is raised, and iteration may continue after it (but see `on_error`). With
`until="end"`, a consumer returns exactly the records before each partition's end, as it was when
the consumer looked it up.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from itertools import islice
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from confluent_kafka import Consumer as KafkaConsumer
from confluent_kafka import KafkaError, KafkaException, Message

from bucketlog.client.control import ControlledReading
from bucketlog.client.decoding import (
    UnreadableRecordError,
    decode,
    decodes_at_once,
)
from bucketlog.client.handed_out import UNBOUNDED
from bucketlog.client.kafka_errors import log_error
from bucketlog.client.own_process import OwnProcess
from bucketlog.client.poison import Poison
from bucketlog.client.reading_range import UntilOf
from bucketlog.client.sources import P, Sources, the_topic
from bucketlog.client.statistics import LatestStatistics, Statistics
from bucketlog.client.topic import Record, Topic
from bucketlog.client.topic_search import TopicSearch
from bucketlog.client.turn import Turn
from bucketlog.log_format.errors import BucketlogError, LogError, SchemaRegistryError

if TYPE_CHECKING:
    from bucketlog.client.traced_reads import TracedReads

K = TypeVar("K")
V = TypeVar("V")

BATCH_RECORDS = 1000
_POLL_S = 0.25
_NO_TOPIC = frozenset(
    {
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError._UNKNOWN_TOPIC,
        KafkaError._UNKNOWN_PARTITION,
        KafkaError.UNKNOWN_TOPIC_ID,
    }
)


class Consumer(ControlledReading[K, V, P], ABC):
    """Consumer of a topic: an iterator over its records. Made by `Log.consumer`, and used as a
    context manager.

    One thread at a time may use a consumer. Another thread gets `ConcurrentUseError`. Only `stop`
    may be called from any thread, and from signal handlers.

    Attributes:
        topic: Topic that is read.

    Examples:
        >>> with log.consumer(orders, start="earliest", until="end") as consumer:
        ...     for batch in consumer.batches(max_records=100):
        ...         print([record.value.id for record in batch])
        ['1', '2']
    """

    def __init__(
        self,
        config: Mapping[str, Any],
        sources: Sources[K, V, P],
        poison: Poison,
        search: TopicSearch,
        *,
        until: UntilOf[P] | None,
        timeout_s: float,
        traced: "TracedReads | None" = None,
    ) -> None:
        super().__init__(sources, until=until, timeout_s=timeout_s)
        self._traced = traced
        self._search = search
        self._turn = Turn(self._has_open_records)
        self._stopped = False
        self._poison = poison
        self._woken = False
        self._ahead: tuple[Message, Record[K, V] | UnreadableRecordError] | None = None
        """Result of `_look_at` for the message that is handed out next."""
        self._statistics = LatestStatistics()
        ours = {**config, "enable.partition.eof": until is not None}
        try:
            self._kafka = KafkaConsumer(self._statistics.added_to(ours))
        except KafkaException as error:
            raise log_error(error.args[0], f"opening {sources.description}") from error
        self._process = OwnProcess("consumer", self._kafka)

    @property
    def topic(self: "Consumer[K, V, int]") -> Topic[K, V]:
        """The topic of a consumer of one topic. Others have `topics`. Raises
        `ConfigurationError`."""
        return the_topic(self._sources)

    @property
    def passed_over(self) -> int:
        """Number of records that did not decode, and were skipped or set aside (`on_error`)."""
        return self._poison.passed_over

    @property
    def statistics(self) -> Statistics | None:
        """The last statistics, with `statistics_interval_s`; None before the first ones. They are
        updated while the consumer asks for records."""
        return self._statistics.latest

    def poll(self, max_records: int = BATCH_RECORDS, timeout_s: float = 1.0) -> list[Record[K, V]]:
        """Return available records, or wait for the first ones.

        Args:
            max_records: Largest number of records to return. Default: 1000.
            timeout_s: Longest wait for a first record, in seconds. Default: 1.

        Returns:
            Up to `max_records` records, in the order of each partition; none if there are none.

        Raises:
            ConcurrentUseError: If another thread uses the consumer.
            ConfigurationError: If the consumer was opened in another process.
            LogError: If the next offset is out of range, or if the broker refuses to read.
            SchemaRegistryError: If the schema registry does not answer.
            UnreadableRecordError: If the next record does not decode, with `on_error="raise"`. The
                next call continues after this record.
        """
        if self._traced is None:
            return self._poll(max_records, timeout_s)
        return self._traced.received(lambda: self._poll(max_records, timeout_s))

    def _poll(self, max_records: int, timeout_s: float) -> list[Record[K, V]]:
        """`poll` without a span."""
        self._process.check()
        with self._turn:
            if self._stopped:
                return []
            try:
                records, count = self._read_ahead(max_records, timeout_s)
            except UnreadableRecordError:
                self._give_up_first()
                raise
            self._hand_out(count)
            return records

    def batches(self, max_records: int = BATCH_RECORDS) -> Iterator[list[Record[K, V]]]:
        """Iterate over lists of records as they become available.

        Args:
            max_records: Largest number of records in a list. Default: 1000.

        Yields:
            A list of at least one record.

        Raises:
            BucketlogError: As `poll`.
        """
        while not self._stopped and not self.finished:
            if batch := self.poll(max_records, _POLL_S):
                yield batch

    @property
    @abstractmethod
    def finished(self) -> bool:
        """Whether all records up to `until` were returned. Without `until`, this is False."""

    @property
    def is_stopped(self) -> bool:
        """Whether `stop` was called."""
        return self._stopped

    def stop(self, signal_number: int | None = None, frame: FrameType | None = None) -> None:
        """Stop iterating: `poll` returns no more records, and loops over the consumer end.

        Any thread may call `stop`, and it may be a signal handler, as in
        `signal.signal(signal.SIGTERM, consumer.stop)`. The body of the loop finishes the current
        record. Leaving the `with` block then commits this record.

        Args:
            signal_number: Number of the signal, which Python passes to handlers; ignored. Default:
                None.
            frame: Stack frame, which Python passes to handlers; ignored. Default: None.
        """
        self._stopped = self._woken = True

    def close(self) -> None:
        """Close the consumer.

        Raises:
            ConcurrentUseError: If another thread uses the consumer.
            LogError: If the dead letters of this consumer were not delivered.
        """
        with self._turn:
            if self._process.is_here:
                try:
                    self._close()
                finally:
                    self._poison.close()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Record[K, V]:
        receiving = None if self._traced is None else self._traced.receiving()
        self._process.check()
        self._turn.take()
        try:
            if self._stopped:
                raise StopIteration
            while (record := self._at_once(may_wait=True)) is None:
                if self.is_stopped or not self._prepare():
                    raise StopIteration
            if receiving is not None:
                receiving.end_one(record)
            return record
        except BucketlogError as error:
            if receiving is not None:
                receiving.fail(error)
            raise
        finally:
            self._turn.give_back()

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
            records, count = self._decode_ahead(min(max_records, self._room()))
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
        if decodes_at_once(self._sources, message):
            return
        try:
            self._ahead = message, decode(self._sources, message, self._epoch)
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
            elif (
                may_wait
                or not self._sources.may_wait
                or decodes_at_once(self._sources, self._ready[0])
            ):
                record = decode(self._sources, self._ready[0], self._epoch)
            else:
                return None
        except UnreadableRecordError:
            if not self._poison.raises:
                return None
            self._more_wanted()
            self._give_up_first()
            raise
        self._more_wanted()
        self._hand_out(1)
        return record

    def _hand_out(self, count: int) -> None:
        for _ in range(count):
            self._handed_out(self._ready.popleft())

    def _give_up_first(self) -> None:
        """The error of the first message is raised: nobody gets a record of it."""
        self._passed_over(self._ready[0])
        self._hand_out(1)

    def _begin(self) -> None:
        self._process.check()
        self._woken = self._stopped

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
                records.append(decode(self._sources, message, self._epoch))
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
            for message, _ in unreadable:
                self._passed_over(message)
        return records, count

    def _close(self) -> None:
        self._kafka.close()

    # Topics that match a pattern come and go ---------------------------------------------------

    def _fill(self, max_records: int, timeout_s: float) -> None:
        names = self._search.found()
        if names is not None and self._sources.update(names, is_late=True):
            self._topics_changed()
        super()._fill(max_records, timeout_s)

    def _failure(self, error: KafkaError, message: Message) -> LogError | None:
        retries = self._sources.retries
        if retries and error.code() in _NO_TOPIC and message.topic() in retries:
            return None  # just created: librdkafka looks again
        if self._is_of_deleted_topic(log_error(error, "reading")):
            return None
        return super()._failure(error, message)

    def _is_of_deleted_topic(self, failure: LogError) -> bool:
        """A topic that matches a pattern may be deleted at any time. The next search leaves its
        partitions out."""
        if not self._sources.is_growing or failure.kafka_code not in _NO_TOPIC:
            return False
        self._search.is_due = True
        return True

    @abstractmethod
    def _topics_changed(self) -> None:
        """Read the topics that `_sources` has now."""

    # What a group keeps account of -----------------------------------------------------------

    def _has_open_records(self) -> bool:
        """The caller was given records that count as done with the next call."""
        return False

    def _room(self) -> int:
        """Number of records that the caller may get now."""
        return UNBOUNDED

    def _passed_over(self, message: Message) -> None:
        """The caller does not get this message, which comes next or soon."""

    @abstractmethod
    def _more_wanted(self) -> None:
        """The caller asks for records: it is done with those it was given."""

    @abstractmethod
    def _is_serving_due(self) -> bool:
        """`_more_wanted` would ask librdkafka for news, which may wait."""

    @abstractmethod
    def _handed_out(self, message: Message) -> None:
        """The caller is given this message."""


def _outcome(found: Record[K, V] | UnreadableRecordError) -> Record[K, V]:
    if isinstance(found, UnreadableRecordError):
        raise found
    return found
