"""The producer: idempotent, batching, with a bounded queue that holds the caller back.

Invariants: every record handed to `send` is delivered once or its failure is raised: by its
`Delivery`, or, if nobody asked that, by `flush` or the end of the `with` block. A full queue waits
for room; memory stays bounded by `queue_bytes` and `queue_records`. Ctrl-C gives up what is left,
at the end of the block, too, and says how many records that is.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Any, Self, TypeVar

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
from bucketlog.client.topic import Headers, Topic
from bucketlog.client.waiting_sends import WaitingSends
from bucketlog.log_format.errors import BucketlogError

K = TypeVar("K")
V = TypeVar("V")

_POLL_S = 0.1
_PURGE_S = 1.0
"""What is given up is reported at once."""


class Delivery(DeliveryState):
    """The handle of one sent record. Its outcome is known once the producer was polled."""

    __slots__ = ()

    def result(self, timeout_s: float | None = None) -> Delivered:
        """Wait until the record is in the bucket. Raises `LogError`, or `TimeoutError`."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        if not self.done:
            self._outbox.hasten(timeout_s)
        while self._delivered is None:
            if self._error is not None:
                self._raise(self._error)
            if deadline is not None and time.monotonic() >= deadline:
                raise TimeoutError(f"not delivered within {timeout_s} s")
            self._outbox.poll(_POLL_S)
        return self._delivered


class Producer:
    """Sends typed records; made by `Log.producer`, used as a context manager.

    Leaving the block flushes. One producer may be used from several threads.
    """

    def __init__(self, config: Mapping[str, Any], *, delivery_timeout_s: float) -> None:
        self._outbox = Outbox(config)
        self._delivery_timeout_s = delivery_timeout_s
        self._waiting = WaitingSends(self._outbox, timeout_s=delivery_timeout_s)
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
        if self._closed:
            raise closed()
        record = encoded(topic, value, key, headers, partition, timestamp_ms)
        delivery = Delivery(self._outbox)
        self._waiting.put(record, delivery._report)
        return delivery

    def send_many(
        self, topic: Topic[K, V], values: Iterable[V], *, key: Callable[[V], K] | None = None
    ) -> int:
        """Queue many records; `key` computes each one's key. Returns how many.

        Faster than `send`, because nothing is kept per record: a failure is raised by `flush` or
        at the end of the block.
        """
        if self._closed:
            raise closed()
        count = 0
        for messages in encoded_chunks(topic, values, key):
            count += len(messages)
            self._waiting.put_all(topic.name, messages)
        return count

    def flush(self, timeout_s: float | None = None) -> None:
        """Wait until every record is delivered; raises the first failure that nobody has seen.

        Raises `TimeoutError` where records are left after `timeout_s`; they stay queued.
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
        """Serve delivery reports; returns how many. `send` and `flush` do it by themselves."""
        if self._closed:
            raise closed()
        return self._outbox.poll(timeout_s)

    def close(self) -> None:
        """Flush, then release the connections. Raises as `flush` does."""
        if self._closed:
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
            self._outbox.kafka.close()
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
        if not self._closed and not isinstance(exc, Exception):  # Ctrl-C: nothing is waited for
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
