"""The producer: idempotent, batching, with a bounded queue that holds the caller back.

Invariants: every record handed to `send` is delivered once or its failure is raised: by its
`Delivery`, or, if nobody asked that, by `flush` or the end of the `with` block. A full queue waits
for room; memory stays bounded by `queue_bytes` and `queue_records`.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeVar

from confluent_kafka import KafkaError, KafkaException, Message
from confluent_kafka import Producer as KafkaProducer

from bucketlog.client.kafka_errors import log_error
from bucketlog.client.topic import Headers, HeaderValue, Topic
from bucketlog.errors import BucketlogError, LogError

K = TypeVar("K")
V = TypeVar("V")

SEND_MANY_CHUNK = 1000
"""Records encoded and queued at a time by `send_many`."""
_POLL_S = 0.1
_POLL_EVERY = 256
"""Delivery reports are served at least once in so many sends."""


class Delivered(NamedTuple):
    """Where a record stands now."""

    topic: str
    partition: int
    offset: int


class Delivery:
    """The handle of one sent record. Its outcome is known once the producer was polled."""

    __slots__ = ("_delivered", "_error", "_producer")

    def __init__(self, producer: "Producer") -> None:
        self._producer = producer
        self._delivered: Delivered | None = None
        self._error: LogError | None = None

    @property
    def done(self) -> bool:
        return self._delivered is not None or self._error is not None

    @property
    def error(self) -> LogError | None:
        """Why the record was not delivered; None while that is open, or where it was. To look at
        it is not to handle it: `flush` raises it all the same."""
        return self._error

    def result(self, timeout_s: float | None = None) -> Delivered:
        """Wait until the record is in the bucket. Raises `LogError`, or `TimeoutError`."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while self._delivered is None:
            if self._error is not None:
                self._producer._observed(self)
                raise self._error
            if deadline is not None and time.monotonic() >= deadline:
                raise TimeoutError(f"not delivered within {timeout_s} s")
            self._producer.poll(_POLL_S)
        return self._delivered

    def _report(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self._delivered = Delivered(
                message.topic() or "", message.partition() or 0, message.offset() or 0
            )
        else:
            self._error = self._producer._failed(error, message, self)


class Producer:
    """Sends typed records; made by `Log.producer`, used as a context manager.

    Leaving the block flushes. One producer may be used from several threads.
    """

    def __init__(self, config: Mapping[str, Any], *, delivery_timeout_s: float) -> None:
        self._kafka = KafkaProducer(dict(config))
        self._delivery_timeout_s = delivery_timeout_s
        self._failures: dict[int, tuple[LogError, Delivery | None]] = {}
        self._failure_number = 0
        self._sends = 0
        self._closed = False

    def send(
        self,
        topic: Topic[K, V],
        value: V | None,
        *,
        key: K | None = None,
        headers: Headers | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> Delivery:
        """Queue one record; None as the value sends a tombstone.

        Without `partition` the key decides (murmur2, as in Java clients), without a key any. Waits
        while the queue is full. Raises `InvalidDataError` for a value that the topic does not
        take, `LogError` if the queue finds no room within the delivery timeout.
        """
        delivery = Delivery(self)
        self._queue(
            topic.name,
            None if value is None else topic.value_format.encode(value),
            None if key is None else topic.key_format.encode(key),
            _header_list(headers) if headers else None,
            -1 if partition is None else partition,
            0 if timestamp_ms is None else timestamp_ms,
            delivery._report,
        )
        self._sends += 1
        if self._sends % _POLL_EVERY == 0:
            self._kafka.poll(0)
        return delivery

    def send_many(
        self, topic: Topic[K, V], values: Iterable[V], *, key: Callable[[V], K] | None = None
    ) -> int:
        """Queue many records; `key` computes each one's key. Returns how many.

        Faster than `send`, because nothing is kept per record: a failure is raised by `flush` or
        at the end of the block.
        """
        encode_value, encode_key = topic.value_format.encode, topic.key_format.encode
        rest = iter(values)
        count = 0
        while chunk := list(islice(rest, SEND_MANY_CHUNK)):
            if key is None:
                messages: list[dict[str, Any]] = [{"value": encode_value(value)} for value in chunk]
            else:
                messages = [
                    {"value": encode_value(value), "key": encode_key(key(value))} for value in chunk
                ]
            self._queue_batch(topic.name, messages)
            count += len(messages)
            self._kafka.poll(0)
        return count

    def flush(self, timeout_s: float | None = None) -> None:
        """Wait until every record is delivered; raises the first failure that nobody has seen.

        Raises `TimeoutError` where records are left after `timeout_s`; they stay queued.
        """
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while left := self._kafka.flush(_POLL_S):
            if deadline is not None and time.monotonic() >= deadline:
                raise TimeoutError(f"{left} records are not delivered within {timeout_s} s")
        self._raise_failures()

    def poll(self, timeout_s: float = 0.0) -> int:
        """Serve delivery reports; returns how many. `send` and `flush` do it by themselves."""
        return self._kafka.poll(timeout_s)

    def close(self) -> None:
        """Flush, then release the connections. Raises as `flush` does."""
        if self._closed:
            return
        self._closed = True
        try:
            self.flush()
        finally:
            self._kafka.close()

    def __len__(self) -> int:
        """Records queued and not yet acknowledged."""
        return len(self._kafka)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if exc is None:
            self.close()
            return
        if not isinstance(exc, Exception):  # Ctrl-C: what is queued is given up, not waited for
            self._kafka.purge()
        try:
            self.close()
        except BucketlogError as failure:
            exc.add_note(f"and: {failure}")

    def _queue(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        headers: list[tuple[str, HeaderValue]] | None,
        partition: int,
        timestamp_ms: int,
        report: Callable[[KafkaError | None, Message], None],
    ) -> None:
        deadline = 0.0
        while True:
            try:
                self._kafka.produce(
                    topic,
                    value,
                    key,
                    partition,
                    on_delivery=report,
                    timestamp=timestamp_ms,
                    headers=headers,
                )
                return
            except BufferError:
                deadline = self._wait_for_room(deadline)
            except KafkaException as error:
                raise log_error(error.args[0], f"sending to topic {topic!r}") from error

    def _queue_batch(self, topic: str, messages: list[dict[str, Any]]) -> None:
        deadline = 0.0
        while messages:
            try:
                queued = self._kafka.produce_batch(topic, messages, on_delivery=self._report)
            except KafkaException as error:
                raise log_error(error.args[0], f"sending to topic {topic!r}") from error
            if queued == len(messages):
                return
            left = [message for message in messages if "_error" in message]
            for message in left:
                refused = message.pop("_error")
                if refused.code() != KafkaError._QUEUE_FULL:
                    raise log_error(refused, f"sending to topic {topic!r}")
            messages = left
            deadline = self._wait_for_room(deadline)

    def _wait_for_room(self, deadline: float) -> float:
        now = time.monotonic()
        if not deadline:
            deadline = now + self._delivery_timeout_s
        elif now > deadline:
            raise log_error(
                KafkaError(KafkaError._QUEUE_FULL),
                f"waited {self._delivery_timeout_s:g} s for room in the producer's queue",
            )
        self._kafka.poll(_POLL_S)
        return deadline

    def _report(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._failed(error, message, None)

    def _failed(self, error: KafkaError, message: Message, handle: Delivery | None) -> LogError:
        failure = log_error(
            error, f"a record for {message.topic()}[{message.partition()}] was not delivered"
        )
        self._failure_number += 1
        self._failures[self._failure_number] = (failure, handle)
        return failure

    def _observed(self, handle: Delivery) -> None:
        for number, (_, owner) in list(self._failures.items()):
            if owner is handle:
                self._failures.pop(number, None)

    def _raise_failures(self) -> None:
        failures = list(self._failures.values())
        self._failures.clear()
        if not failures:
            return
        first = failures[0][0]
        if len(failures) > 1:
            first.add_note(f"{len(failures)} records were not delivered; this is the first")
        raise first


def _header_list(headers: Headers) -> list[tuple[str, HeaderValue]]:
    return list(headers.items() if isinstance(headers, Mapping) else headers)
