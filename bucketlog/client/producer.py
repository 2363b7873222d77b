"""The producer: idempotent, batching, with a bounded queue that holds the caller back.

Invariants: every record handed to `send` is delivered once or its failure is raised: by its
`Delivery`, or, if nobody asked that, by `flush` or the end of the `with` block. A full queue waits
for room; memory stays bounded by `queue_bytes` and `queue_records`. Ctrl-C gives up what is left,
at the end of the block, too, and says how many records that is.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from bucketlog.client.patience import Patience
from bucketlog.client.sending import (
    Delivered,
    DeliveryState,
    Outbox,
    closed,
    encoded,
    encoded_chunks,
    given_up,
)
from bucketlog.client.statistics import Statistics
from bucketlog.client.topic import Headers, Topic
from bucketlog.client.waiting_sends import WaitingSends
from bucketlog.log_format.display import Description, DisplayedObject
from bucketlog.log_format.errors import BucketlogError

if TYPE_CHECKING:
    from bucketlog.client.traced_sends import TracedSends

K = TypeVar("K")
V = TypeVar("V")

_POLL_S = 0.1
_PURGE_S = 1.0
"""Longest wait for the reports of records that are given up, which librdkafka reports at once."""


class Delivery(DeliveryState):
    """Handle of one sent record. Returned by `Producer.send`.

    Examples:
        >>> with log.producer() as producer:
        ...     delivery = producer.send(orders, Order(id="3", amount=1.5))
        ...     print(delivery.result().offset, delivery.done)
        2 True
    """

    __slots__ = ()

    def result(self, timeout_s: float | None = None) -> Delivered:
        """Wait until the record is in the bucket.

        Args:
            timeout_s: Longest wait, in seconds; None means as long as the producer tries to deliver
                the record.

        Returns:
            Topic, partition and offset of the record.

        Raises:
            LogError: If the record was not delivered.
            TimeoutError: If the outcome is not known after `timeout_s`.
        """
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        if not self.done:
            self._outbox.hasten(timeout_s)
        while (delivered := self._delivered()) is None:
            if self._error is not None:
                self._raise(self._error)
            if deadline is not None and time.monotonic() >= deadline:
                raise TimeoutError(f"not delivered within {timeout_s} s")
            self._outbox.poll(_POLL_S)
        return delivered


class Producer(DisplayedObject):
    """Producer of typed records. Made by `Log.producer`, and used as a context manager.

    Leaving the block waits until all records are delivered. Several threads may use a producer, but
    only in the process that opened it. In a forked process, calls raise `ConfigurationError`.

    Examples:
        >>> with log.producer(linger_ms=20) as producer:
        ...     for number in range(3, 6):
        ...         delivery = producer.send(orders, Order(id=str(number), amount=1.5), key="ann")
        ...     producer.flush()
        ...     len(producer)
        0
    """

    def __init__(
        self,
        config: Mapping[str, Any],
        *,
        delivery_timeout_s: float,
        traced: "TracedSends | None" = None,
    ) -> None:
        self._outbox = Outbox(config)
        self._traced = traced
        self._delivery_timeout_s = delivery_timeout_s
        self._waiting = WaitingSends(self._outbox, timeout_s=delivery_timeout_s)
        self._closed = False

    def _description(self) -> Description:
        return self._outbox.description(is_closed=self._closed)

    @property
    def statistics(self) -> Statistics | None:
        """The last statistics, with `statistics_interval_s`; None before the first ones. Reading
        this property also handles delivery reports."""
        if not self._closed and self._outbox.process.is_here:
            self._outbox.poll(0)
        return self._outbox.statistics.latest

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
        """Queue one record, and wait while the queue is full.

        Args:
            topic: Topic of the record.
            value: Value of the record; None means a tombstone.
            key: Key of the record; None means no key.
            headers: Names and values of headers; None means no headers.
            partition: Number of the partition; None means that the key decides, by murmur2 as in
                Kafka's Java client, or chance if there is no key.
            timestamp_ms: Time of the record, in milliseconds since 1970 UTC; None means now.

        Returns:
            A handle, whose `result()` waits for the partition and the offset.

        Raises:
            ConfigurationError: If the producer is closed, or was opened in another process.
            InvalidDataError: If the value, the key or a header does not have the declared type.
            LogError: If the queue stays full for the delivery timeout.
        """
        if self._closed:
            raise closed()
        record = encoded(topic, value, key, headers, partition, timestamp_ms)
        delivery = Delivery(self._outbox)
        if self._traced is None:
            self._waiting.put(record, delivery._report)
            return delivery
        with self._traced.sending(record, delivery._report) as (with_context, report):
            self._waiting.put(with_context, report)
        return delivery

    def send_many(
        self, topic: Topic[K, V], values: Iterable[V], *, key: Callable[[V], K] | None = None
    ) -> int:
        """Queue many records. This is faster than `send`, because no handle is made for each
        record.

        Args:
            topic: Topic of the records.
            values: Values of the records.
            key: Function that computes the key of each value; None means records without keys.

        Returns:
            The number of records.

        Raises:
            ConfigurationError: If the producer is closed, or was opened in another process.
            InvalidDataError: If a value or a key does not have the declared type. Earlier records
                stay queued.
            LogError: If the queue stays full for the delivery timeout. `flush`, or the end of the
                block, raises the failures of single records.
        """
        if self._closed:
            raise closed()
        if self._traced is not None:
            report = self._outbox.report_failure
            return self._traced.send_many(self._waiting, report, topic, values, key)
        count = 0
        for messages in encoded_chunks(topic, values, key):
            count += len(messages)
            self._waiting.put_all(topic.name, messages)
        return count

    def flush(self, timeout_s: float | None = None) -> None:
        """Wait until all records are delivered.

        Args:
            timeout_s: Longest wait, in seconds; None means as long as the producer tries to deliver
                records.

        Raises:
            ConfigurationError: If the producer is closed, or was opened in another process.
            LogError: If records were not delivered. Raises the first failure that `Delivery.result`
                has not raised.
            TimeoutError: If records are left after `timeout_s`. They stay queued.
        """
        if self._closed:
            raise closed()
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        if len(self):
            self._outbox.hasten(timeout_s)
        while left := self._outbox.flush(_POLL_S):
            if deadline is not None and time.monotonic() >= deadline:
                raise TimeoutError(f"up to {left} records were not delivered within {timeout_s} s")
        self._outbox.raise_failures()

    def poll(self, timeout_s: float = 0.0) -> int:
        """Handle delivery reports. `send` and `flush` do this, too.

        Args:
            timeout_s: Longest wait for a first report, in seconds. Default: 0.

        Returns:
            The number of reports.

        Raises:
            ConfigurationError: If the producer is closed, or was opened in another process.
        """
        if self._closed:
            raise closed()
        return self._outbox.poll(timeout_s)

    def close(self) -> None:
        """Wait until all records are delivered, then close the connections.

        In a forked process, `close` does nothing: the records and connections are in the other
        process.

        Raises:
            LogError: If records were not delivered. Raises the first failure that `Delivery.result`
                has not raised.
        """
        if self._closed or not self._outbox.process.is_here:
            return
        self._closed = True
        patience = Patience(self._delivery_timeout_s, time.monotonic())
        try:
            if len(self):
                self._outbox.hasten()
            while left := self._outbox.flush(_POLL_S):
                patience.look(left, time.monotonic())
        except BaseException as stop:  # Ctrl-C
            self._give_up(stop)
            raise
        finally:
            self._outbox.close()
        self._outbox.raise_failures()

    def __len__(self) -> int:
        """Records queued and not yet acknowledged."""
        return len(self._outbox.kafka)

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
        is_open = not self._closed and self._outbox.process.is_here
        if is_open and not isinstance(exc, Exception):  # Ctrl-C: nothing is waited for
            self._give_up(exc)
        try:
            self.close()
        except BucketlogError as failure:
            exc.add_note(f"and: {failure}")

    def _give_up(self, stop: BaseException) -> None:
        self._outbox.serve_events()
        if left := len(self._outbox.kafka):
            self._outbox.kafka.purge()
            self._outbox.flush(_PURGE_S)
            stop.add_note(given_up(left))
