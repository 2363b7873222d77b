"""What the producers with and without `await` share: queueing records and keeping their fates.

Invariants: every record that `put` or `put_batch` took is reported once by librdkafka; a failure
stays in the account until somebody has seen it: who asked for that record, or `raise_failures`.
What is given up does not enter it: whoever stops the producer gets the number.
Nothing here waits but `hasten`. Reports come in the thread that polls the handle.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from typing import Any, NamedTuple, TypeAlias, TypeVar

from confluent_kafka import KafkaError, KafkaException, Message
from confluent_kafka import Producer as KafkaProducer

from bucketlog.client.kafka_errors import ADVICE, log_error
from bucketlog.client.own_process import OwnProcess
from bucketlog.client.statistics import LatestStatistics
from bucketlog.client.topic import Headers, HeaderValue, Topic, check_topic
from bucketlog.log_format.display import Description
from bucketlog.log_format.errors import (
    BucketlogError,
    ConfigurationError,
    InvalidDataError,
    LogError,
)

K = TypeVar("K")
V = TypeVar("V")

SEND_MANY_CHUNK = 1000
"""Records encoded and queued at a time by `send_many`."""

Report: TypeAlias = Callable[[KafkaError | None, Message], None]
Encoded: TypeAlias = tuple[
    str, bytes | None, bytes | None, int, list[tuple[str, HeaderValue]] | None, int
]
"""Topic, value, key, partition (-1: by the key), headers, milliseconds since 1970 (0: now)."""

HASTEN_S = 0.5
"""After it librdkafka connects by itself."""
_GIVEN_UP = {"PURGE_QUEUE", "PURGE_INFLIGHT"}
NOW_MS, EPOCH_MS = 0, 1
"""librdkafka takes 0 for now: the millisecond after it stands for 1970 itself."""


class Delivered(NamedTuple):
    """Place of a record that is stored. Returned by `Delivery.result`.

    Attributes:
        topic: Name of the topic.
        partition: Number of the partition.
        offset: Offset of the record in its partition.

    Examples:
        >>> with log.producer() as producer:
        ...     delivered = producer.send(orders, Order(id="3", amount=1.5)).result()
        >>> delivered.partition, delivered.offset
        (0, 2)
    """

    topic: str
    partition: int
    offset: int


class DeliveryState:
    """The outcome of one record. The record's report sets the place or `_error`, once.

    A handle stores the place as three values. With a tuple in each handle, Python's garbage
    collector would have one more object to scan for each record.
    """

    __slots__ = ("_error", "_offset", "_outbox", "_partition", "_topic")

    def __init__(self, outbox: "Outbox") -> None:
        self._outbox = outbox
        self._topic: str | None = None
        self._partition = self._offset = -1
        self._error: BucketlogError | None = None

    @property
    def done(self) -> bool:
        """Whether the outcome is known: the record was delivered, or it failed."""
        return self._topic is not None or self._error is not None

    @property
    def error(self) -> BucketlogError | None:
        """Error of a record that was not delivered; None while the outcome is open, and after a
        delivery. Reading this property does not handle the error: `flush` still raises it."""
        return self._error

    def _report(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self._partition = message.partition() or 0
            self._offset = message.offset() or 0
            self._topic = message.topic() or ""  # last: other threads read the topic first
        else:
            self._error = self._outbox.failed(error, message, self)

    def _delivered(self) -> Delivered | None:
        """Return the place of the record; None while the outcome is open, and after a failure."""
        if self._topic is None:
            return None
        return Delivered(self._topic, self._partition, self._offset)

    def _raise(self, error: BucketlogError) -> None:
        self._outbox.failures.pop(self, None)
        raise error


class Outbox:
    """librdkafka's producer, and the account of what was not delivered."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        """Raises `ConfigurationError`."""
        self.statistics = LatestStatistics()
        try:
            self.kafka = KafkaProducer(self.statistics.added_to(config))
        except KafkaException as error:
            reason = error.args[0].str().strip()
            raise ConfigurationError(
                f"this producer cannot be made: {reason}", remedy=ADVICE["_INVALID_ARG"].remedy
            ) from error
        self.process = OwnProcess("producer", self.kafka)
        self.failures: dict[object, BucketlogError] = {}
        """Failures that nobody has seen, by the handle of the record, or by a number if there is no
        handle."""
        self._numbers = itertools.count()
        self._first_topic: str | None = None
        self._is_hastened = False

    def description(self, *, is_closed: bool) -> Description:
        """Describe a producer for display, without librdkafka: the process may be a forked one."""
        elsewhere = "open" if self.process.is_here else "of another process"
        return Description({"state": "closed" if is_closed else elsewhere})

    def hasten(self, timeout_s: float | None = None) -> None:
        """Before the first wait for a report: an idempotent producer of librdkafka forgets the
        broker that it began with, and would connect to another after half a second only."""
        self.process.check()
        if self._is_hastened or self._first_topic is None:
            return
        self._is_hastened = True
        limit_s = HASTEN_S if timeout_s is None else min(HASTEN_S, timeout_s)
        with suppress(KafkaException):  # it is for the records' reports to tell
            self.kafka.list_topics(self._first_topic, limit_s)

    def poll(self, timeout_s: float) -> int:
        """Serve the reports that are there, or the first that comes; how many."""
        self.process.check()
        with suppress(KafkaException):  # fatal, raised once: each record's report tells it, too
            return self.kafka.poll(timeout_s)
        return 0

    def serve_events(self) -> None:
        """Serve what waits now. librdkafka counts its own events, such as errors of connections,
        among the records that it holds."""
        while self.poll(0):
            pass

    def flush(self, timeout_s: float) -> int:
        """Serve reports, sending without lingering; how many records are on their way still."""
        self.process.check()
        with suppress(KafkaException):  # as above
            return self.kafka.flush(timeout_s)
        return len(self.kafka)

    def put(self, record: Encoded, report: Report) -> bool:
        """Queue one record; False: there is no room. Raises `LogError`."""
        if not self.process.is_here:
            self.process.check()
        topic, value, key, partition, headers, timestamp_ms = record
        try:
            self.kafka.produce(
                topic,
                value,
                key,
                partition,
                on_delivery=report,
                timestamp=timestamp_ms,
                headers=headers,
            )
        except BufferError:
            return False
        except KafkaException as error:
            raise log_error(error.args[0], f"sending to topic {topic!r}") from error
        if self._first_topic is None:
            self._first_topic = topic
        return True

    def put_batch(
        self, topic: str, messages: list[dict[str, Any]], report: Report
    ) -> list[dict[str, Any]]:
        """Queue them; returns those that there was no room for. Raises `LogError`."""
        self.process.check()
        try:
            queued = self.kafka.produce_batch(topic, messages, on_delivery=report)
        except KafkaException as error:
            raise log_error(error.args[0], f"sending to topic {topic!r}") from error
        self._first_topic = self._first_topic or topic
        if queued == len(messages):
            return []
        left = [message for message in messages if "_error" in message]
        for message in left:
            refused = message.pop("_error")
            if refused.code() != KafkaError._QUEUE_FULL:
                raise log_error(refused, f"sending to topic {topic!r}")
        return left

    def close(self) -> None:
        """Release the connections. confluent-kafka before 2.13 releases them when it frees the
        producer."""
        if hasattr(self.kafka, "close"):
            self.kafka.close()

    def report_failure(self, error: KafkaError | None, message: Message) -> None:
        """The report of a record whose fate nobody keeps."""
        if error is not None:
            self.failed(error, message, None)

    def failed(self, error: KafkaError, message: Message, fate: object) -> LogError:
        failure = log_error(
            error, f"a record for {message.topic()}[{message.partition()}] was not delivered"
        )
        self.keep(failure, next(self._numbers) if fate is None else fate)
        return failure

    def keep(self, failure: BucketlogError, fate: object) -> None:
        if failure.code not in _GIVEN_UP:
            self.failures[fate] = failure

    def raise_failures(self) -> None:
        """The first that nobody has seen, with how many there are; they count as seen then."""
        failures = list(self.failures.values())
        self.failures.clear()
        if not failures:
            return
        first = failures[0]
        if len(failures) > 1:
            first.add_note(f"{len(failures)} records were not delivered; this is the first")
        raise first


PARTITION_MAX = 2**31 - 1
TIMESTAMP_MS_MIN, TIMESTAMP_MS_MAX = -(2**63), 2**63 - 1


def encoded(
    topic: Topic[K, V],
    value: V | None,
    key: K | None,
    headers: Headers | None,
    partition: int | None,
    timestamp_ms: int | None,
) -> Encoded:
    """Raises `InvalidDataError`, `ConfigurationError`."""
    check_topic(topic)
    if partition is not None and not 0 <= partition <= PARTITION_MAX:
        raise ConfigurationError(
            f"partition {partition} of topic {topic.name!r}",
            remedy=f"partitions are numbered from 0 to at most {PARTITION_MAX}",
        )
    if timestamp_ms is not None and not TIMESTAMP_MS_MIN <= timestamp_ms <= TIMESTAMP_MS_MAX:
        raise ConfigurationError(
            f"timestamp_ms is {timestamp_ms}",
            remedy=f"give milliseconds since 1970, from {TIMESTAMP_MS_MIN} to {TIMESTAMP_MS_MAX}",
        )
    return (
        topic.name,
        None if value is None else topic.value_format.encode(value),
        None if key is None else topic.key_format.encode(key),
        -1 if partition is None else partition,
        _header_list(headers) if headers else None,
        NOW_MS if timestamp_ms is None else timestamp_ms or EPOCH_MS,
    )


def encoded_chunks(
    topic: Topic[K, V], values: Iterable[V], key: Callable[[V], K] | None
) -> Iterator[list[dict[str, Any]]]:
    """As `Outbox.put_batch` takes them. Raises `InvalidDataError`."""
    check_topic(topic)
    encode_value, encode_key = topic.value_format.encode, topic.key_format.encode
    rest = iter(values)
    while chunk := list(islice(rest, SEND_MANY_CHUNK)):
        if key is None:
            yield [{"value": encode_value(value)} for value in chunk]
        else:
            yield [{"value": encode_value(value), "key": encode_key(key(value))} for value in chunk]


def queue_full(waited_s: float) -> LogError:
    return log_error(
        KafkaError(KafkaError._QUEUE_FULL),
        f"waited {waited_s:g} s for room in the producer's queue",
    )


def given_up(records: int) -> str:
    """The note on what stopped a producer."""
    if records == 1:
        return "1 record was given up before it was acknowledged"
    return f"{records} records were given up before they were acknowledged"


def closed() -> ConfigurationError:
    return ConfigurationError("the producer is closed", remedy="open a new one: log.producer()")


def _header_list(headers: Headers) -> list[tuple[str, HeaderValue]]:
    listed = list(headers.items() if isinstance(headers, Mapping) else headers)
    for name, value in listed:
        if not isinstance(value, str | bytes | None):
            raise InvalidDataError(
                f"header {name!r} is {value!r}, of type {type(value).__name__}",
                remedy="give it as str, bytes or None",
            )
    return listed
