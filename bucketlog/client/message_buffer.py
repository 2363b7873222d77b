"""What a consumer has read and its caller has not got yet, and where each partition ends.

Invariants: messages of a partition stay in the order of their offsets. Those of a paused partition
wait in `_held`, so that none is lost or returned while the partition is paused. The same holds for
a partition of a retry topic while its next message is not due.
"""

import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Collection, Mapping
from typing import Generic, TypeVar

from confluent_kafka import OFFSET_BEGINNING, KafkaError, KafkaException, Message
from confluent_kafka import Consumer as KafkaConsumer
from confluent_kafka import TopicPartition as KafkaPartition

from bucketlog.client.decoding import headers_of, part_of_message, spot_of
from bucketlog.client.due_times import DueTimes
from bucketlog.client.kafka_errors import log_error
from bucketlog.client.origin_headers import due_ms
from bucketlog.client.reading_range import UntilOf, end_offsets, found_offsets
from bucketlog.client.sources import P, Part, Sources
from bucketlog.log_format.errors import LogError

K = TypeVar("K")
V = TypeVar("V")

_PASSING = frozenset(
    {
        KafkaError._TRANSPORT,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.NOT_COORDINATOR,
    }
)
"""librdkafka continues trying by itself: raised only where the timeout runs out."""
_OUT_OF_RANGE = frozenset({KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE})


class MessageBuffer(ABC, Generic[K, V, P]):
    """Fills `_ready` from librdkafka. `timeout_s` bounds each request and each lack of a broker."""

    _kafka: KafkaConsumer

    def __init__(
        self, sources: Sources[K, V, P], *, until: UntilOf[P] | None, timeout_s: float
    ) -> None:
        self._sources = sources
        self._until: UntilOf[Part] | None = (
            {sources.part(name): at for name, at in until.items()}
            if isinstance(until, Mapping)
            else until
        )
        self._timeout_s = timeout_s
        self._ready: deque[Message] = deque()
        self._held: list[Message] = []
        """Messages of paused partitions, which were read before the pause."""
        self._paused: set[Part] = set()
        self._due = DueTimes(time.monotonic, time.time)
        """Partitions of retry topics whose next message is not due."""
        self._began: dict[Part, int] = {}
        """Positions where reading begins in partitions of which nothing was read yet."""
        self._at_earliest: set[Part] = set()
        """Of these, those that begin at the earliest offset, as it was when it was looked up."""
        self._ends: dict[Part, int] | None = None if until is None else {}
        """Ends of the partitions that are not read to their end yet, with `until`."""
        self._end_at: dict[Part, int] = {}
        """Positions where reading stops, by partition, with `until`."""
        self._retry_ends: dict[Part, int] = {}
        """Ends that the partitions of retry topics had when `process` began, with `until`."""
        self._broken_since: float | None = None
        self._epoch = 0
        """Number of times that partitions were sought or lost: see `Acknowledged`."""

    @abstractmethod
    def _begin_at_earliest(self, part: Part) -> None:
        """Records were deleted since the earliest offset was looked up: look it up again."""

    @abstractmethod
    def _stop_reading(self, part: Part) -> None:
        """Note that the partition was read to its end."""

    def _fill(self, max_records: int, timeout_s: float) -> None:
        """As soon as there is one, with what is there by then: `consume` waits for all of them."""
        if self._due:
            self._release_due()
        failure = self._take(self._consume(1, timeout_s))
        if self._ready and max_records > 1 and failure is None:
            failure = self._take(self._consume(max_records - 1, 0))
        if failure is not None:
            raise failure
        self._check_stall()

    def _take(self, messages: list[Message]) -> LogError | None:
        """Keep those that are needed; the first failure among them."""
        failure: LogError | None = None
        for message in messages:
            error_of = message.error()
            if error_of is not None:
                failure = failure or self._failure(error_of, message)
            elif self._ends is None or self._is_wanted(message):
                self._broken_since = None
                if self._began:
                    self._began.pop(part_of_message(message), None)
                if self._must_hold(message):
                    self._held.append(message)
                else:
                    self._ready.append(message)
        return failure

    def _must_hold(self, message: Message) -> bool:
        """Whether its partition is paused or waits, maybe from now on for this message."""
        if not self._paused and not self._sources.retries:
            return False
        part = part_of_message(message)
        if part in self._paused or part in self._due:
            return True
        delay_s = self._sources.retries.get(part[0])
        if delay_s is None:
            return False
        at_ms = message.timestamp()[1]
        if not self._due.waits(part, due_ms(headers_of(message)), at_ms, delay_s):
            return False
        self._kafka.pause([KafkaPartition(*part)])
        return True

    def _release_due(self) -> None:
        """Return messages of retry topics that are due now."""
        due = self._due.take_due()
        if not due:
            return
        held, self._held = self._held, []
        first = set(due)
        for message in held:
            part = part_of_message(message)
            must_hold = part not in due or (part not in first and self._must_hold(message))
            first.discard(part)
            (self._held if must_hold else self._ready).append(message)
        again = [
            KafkaPartition(*part)
            for part in due
            if part not in self._due and (self._ends is None or part in self._ends)
        ]
        if again:
            self._kafka.resume(again)

    def _consume(self, max_records: int, timeout_s: float) -> list[Message]:
        try:
            return self._kafka.consume(max_records, timeout_s)
        except KafkaException as error:
            raise log_error(error.args[0], f"reading {self._sources.description}") from error

    def _is_wanted(self, message: Message) -> bool:
        """Before its partition's end; ends a partition that has been read."""
        assert self._ends is not None
        part, offset = spot_of(message)
        end = self._ends.get(part)
        if end is None:
            return False
        if offset + 1 >= end:
            self._end(part)
        return offset < end

    def _failure(self, error: KafkaError, message: Message) -> LogError | None:
        if error.code() == KafkaError._PARTITION_EOF:
            part, offset = spot_of(message)
            self._broken_since = None
            if self._ends is not None and offset >= self._ends.get(part, 0):
                self._end(part)
            return None
        if error.code() in _PASSING:
            self._broken_since = self._broken_since or time.monotonic()
            return None
        part = part_of_message(message)
        if error.code() in _OUT_OF_RANGE and part in self._at_earliest & self._began.keys():
            self._begin_at_earliest(part)
            return None
        return log_error(error, f"reading {self._sources.description}")

    def _check_stall(self) -> None:
        since = self._broken_since
        if since is not None and time.monotonic() - since > self._timeout_s:
            self._broken_since = None
            raise log_error(
                KafkaError(KafkaError._TRANSPORT),
                f"reading {self._sources.description}: no broker for {self._timeout_s:g} s",
            )

    def _end(self, part: Part) -> None:
        assert self._ends is not None
        if self._ends.pop(part, None) is not None:
            self._stop_reading(part)

    def _end_offsets(self, begin: list[KafkaPartition]) -> dict[Part, int]:
        """Where reading stops, for the partitions that have something before it to read."""
        assert self._until is not None
        until = {} if isinstance(self._until, str) else self._until
        if isinstance(until, Mapping):  # partitions without an offset stop at their present ends
            until = {**self._retry_ends, **until}
        ends, unread = end_offsets(self._kafka, begin, until, self._timeout_s)
        self._end_at.update(ends)
        return unread

    def _begin_at(self, wanted: Mapping[Part, int]) -> list[KafkaPartition]:
        """Where to assign these partitions, with the ends looked up. librdkafka must not look them
        up: its answer may come late, and would then undo a seek. Raises `LogError`,
        `KafkaException`."""
        found = found_offsets(self._kafka, wanted, self._timeout_s)
        self._began.update(found)
        self._at_earliest -= wanted.keys()
        self._at_earliest |= {part for part, at in wanted.items() if at == OFFSET_BEGINNING}
        return [KafkaPartition(*part, at) for part, at in found.items()]

    def _drop_ready(self, parts: Collection[Part]) -> None:
        kept = [message for message in self._ready if part_of_message(message) not in parts]
        self._ready.clear()
        self._ready.extend(kept)
        self._held = [message for message in self._held if part_of_message(message) not in parts]
