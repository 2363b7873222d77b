"""The producer for asyncio: the same outbox as `Producer`'s, and a thread that serves its reports.

Invariants: what is queued keeps its fate whoever stops waiting for it: a failure that nobody has
awaited is raised by `flush`, or at the end of the block. The thread sleeps while nothing is on its
way; it hands those that wait to the loop once per round of reports, not once per record. Records
that find no room wait in a line, in order, and the line is bounded.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import nullcontext
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar

from confluent_kafka import KafkaError, Message

from bucketlog.client.deferred_sends import DeferredSends, SendArguments, prepare
from bucketlog.client.kafka_errors import log_error
from bucketlog.client.patience import Patience
from bucketlog.client.report_thread import ReportThread, Waiter
from bucketlog.client.sending import (
    Delivered,
    DeliveryState,
    Encoded,
    Outbox,
    Report,
    closed,
    encoded,
    encoded_chunks,
    given_up,
    queue_full,
)
from bucketlog.client.statistics import Statistics
from bucketlog.client.topic import Headers, Topic, check_topic
from bucketlog.log_format.display import Description, DisplayedObject
from bucketlog.log_format.errors import BucketlogError, LogError

if TYPE_CHECKING:
    from bucketlog.client.traced_sends import SendSpan, TracedSends

K = TypeVar("K")
V = TypeVar("V")

LINE_RECORDS_MAX = 100_000
"""Records that were sent and wait for room in the queue."""


class AsyncDelivery(DeliveryState):
    """Handle of one sent record. Returned by `AsyncProducer.send`.

    `await` it for the place of the record. You may await it later, more than once, or never. If the
    task is cancelled while it waits, the record is still sent.

    Raises:
        LogError: If the record was not delivered.

    Examples:
        >>> async def send():
        ...     async with bucketlog.aconnect("localhost:9092") as log, log.producer() as producer:
        ...         delivery = producer.send(orders, Order(id="3", amount=1.5))
        ...         return (await delivery).offset
        >>> asyncio.run(send())
        2
    """

    __slots__ = ("_producer", "_span", "_waiters")

    def __init__(self, producer: "AsyncProducer", span: "SendSpan | None") -> None:
        super().__init__(producer._outbox)
        self._producer = producer
        self._span = span
        self._waiters: tuple[Waiter, ...] = ()

    def __await__(self) -> Generator[Any, None, Delivered]:
        while (delivered := self._delivered()) is None:
            if self._error is not None:
                self._raise(self._error)
            waiter: Waiter = asyncio.get_running_loop().create_future()
            self._waiters = (*self._waiters, waiter)
            if not self.done:  # else its report came while it was not listed
                yield from waiter
        return delivered

    def _report(self, error: KafkaError | None, message: Message) -> None:
        if self._span is not None:
            self._span.reported(error, message)
        DeliveryState._report(self, error, message)  # faster than super()
        if self._waiters:
            self._producer._reports.woken.extend(self._waiters)

    def _refuse(self, error: BucketlogError) -> None:
        """Fail a record that was never queued."""
        if self._span is not None:
            self._span.failed(error)
        self._error = error
        self._outbox.keep(error, self)
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)


class _WaitingRecord(NamedTuple):
    record: Encoded
    delivery: AsyncDelivery
    until_s: float


class AsyncProducer(DisplayedObject):
    """Producer of typed records for asyncio. Made by `AsyncLog.producer`, and used with `async
    with`.

    Leaving the block waits until all records are delivered. A producer belongs to one event loop.

    Examples:
        >>> async def send():
        ...     async with bucketlog.aconnect("localhost:9092") as log, log.producer() as producer:
        ...         values = [Order(id="3", amount=1.5), Order(id="4", amount=2.5)]
        ...         return await producer.send_many(orders, values, key=lambda order: order.id)
        >>> asyncio.run(send())
        2
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
        self._line: deque[_WaitingRecord] = deque()
        self._loop = asyncio.get_running_loop()
        self._held = DeferredSends(self._queue, AsyncDelivery._refuse)
        self._reports = ReportThread(self._outbox, self._loop, self._line, self._advance)
        self._closed = False

    def _description(self) -> Description:
        return self._outbox.description(is_closed=self._closed)

    @property
    def statistics(self) -> Statistics | None:
        """The last statistics, with `statistics_interval_s`; None before the first ones."""
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
    ) -> AsyncDelivery:
        """Queue one record, without a wait.

        Records are sent in the order of these calls. If the queue is full, the `await` of the
        handle waits for room. If the format must ask a schema registry, the `await` waits for it:
        do not change the value before.

        Args:
            topic: Topic of the record.
            value: Value of the record; None means a tombstone.
            key: Key of the record; None means no key.
            headers: Names and values of headers; None means no headers.
            partition: Number of the partition; None means that the key decides, by murmur2 as in
                Kafka's Java client, or chance if there is no key.
            timestamp_ms: Time of the record, in milliseconds since 1970 UTC; None means now.

        Returns:
            A handle. `await` it for the partition and the offset.

        Raises:
            ConfigurationError: If the producer is closed.
            InvalidDataError: If the value, the key or a header does not have the declared type.
            LogError: With the code QUEUE_FULL if 100,000 records already wait for room.
        """
        if self._closed:
            raise closed()
        check_topic(topic)
        span = None
        if self._traced is not None:
            span = self._traced.one(topic.name, partition, is_tombstone=value is None)
        delivery = AsyncDelivery(self, span)
        try:
            if self._held or topic.value_waits is not None or topic.key_waits is not None:
                given = SendArguments(topic, value, key, headers, partition, timestamp_ms)
                if self._held or not given.encodes_at_once():
                    if len(self._held) >= LINE_RECORDS_MAX:
                        raise _too_many()
                    self._held.add(given, delivery)
                    return delivery
            record = encoded(topic, value, key, headers, partition, timestamp_ms)
            self._queue(record, delivery)
        except BaseException as error:
            if span is not None:
                span.failed(error)
            raise
        return delivery

    def _queue(self, record: Encoded, delivery: AsyncDelivery) -> None:
        if delivery._span is not None:
            record = delivery._span.injected(record)
        if self._line or not self._outbox.put(record, delivery._report):
            if len(self._line) >= LINE_RECORDS_MAX:
                raise _too_many()
            until_s = self._loop.time() + self._delivery_timeout_s
            self._line.append(_WaitingRecord(record, delivery, until_s))
        self._reports.wake()

    async def send_many(
        self, topic: Topic[K, V], values: Iterable[V], *, key: Callable[[V], K] | None = None
    ) -> int:
        """Send many records, and wait until all are delivered.

        Args:
            topic: Topic of the records.
            values: Values of the records.
            key: Function that computes the key of each value; None means records without keys.

        Returns:
            The number of records.

        Raises:
            ConfigurationError: If the producer is closed.
            InvalidDataError: If a value or a key does not have the declared type. Earlier records
                stay queued.
            LogError: If records were not delivered. Raises the first failure, with a note of their
                number.
        """
        if self._closed:
            raise closed()
        tally = _Tally(self)
        await prepare(topic, value=True, key=key)
        await self._held.wait()
        with nullcontext() if self._traced is None else self._traced.many(topic) as batch:
            for chunk in encoded_chunks(topic, values, key):
                tally.sent += len(chunk)
                while self._line:
                    await self._reports.round()
                if batch is None:
                    await self._put_batch(topic.name, chunk, tally.report)
                else:
                    await self._put_each(batch.records(chunk), batch.reporting(tally.report))
                self._reports.wake()
                await asyncio.sleep(0)
        await tally.wait()
        return tally.sent

    async def _put_batch(self, topic: str, messages: list[dict[str, Any]], report: Report) -> None:
        until_s = self._loop.time() + self._delivery_timeout_s
        while messages := self._outbox.put_batch(topic, messages, report):
            await self._wait_for_room(until_s)

    async def _put_each(self, records: Iterable[Encoded], report: Report) -> None:
        until_s = self._loop.time() + self._delivery_timeout_s
        for record in records:
            while not self._outbox.put(record, report):
                await self._wait_for_room(until_s)

    async def _wait_for_room(self, until_s: float) -> None:
        if self._loop.time() > until_s:
            raise queue_full(self._delivery_timeout_s)
        await self._reports.round()

    async def flush(self, timeout_s: float | None = None) -> None:
        """Wait until all records are delivered.

        Args:
            timeout_s: Longest wait, in seconds; None means as long as the producer tries to deliver
                records.

        Raises:
            ConfigurationError: If the producer is closed.
            LogError: If records were not delivered. Raises the first failure that no `await` has
                raised.
            TimeoutError: If records are left after `timeout_s`. They stay queued.
        """
        if self._closed:
            raise closed()
        try:
            async with asyncio.timeout(timeout_s):
                await self._held.wait()
                await self._reports.until_empty()
        except TimeoutError:
            left = len(self)
            message = f"up to {left} records were not delivered within {timeout_s} s"
            raise TimeoutError(message) from None
        self._outbox.raise_failures()

    async def close(self) -> None:
        """Wait until all records are delivered, then close the connections.

        Raises:
            LogError: If records were not delivered. Raises the first failure that no `await` has
                raised.
        """
        if self._closed:
            return
        self._closed = True
        at_most_s = self._delivery_timeout_s * (2 if self._line else 1)
        patience = Patience(at_most_s, self._loop.time())
        try:
            await self._held.wait()
            await self._reports.until_empty(lambda: patience.look(len(self), self._loop.time()))
        except BaseException as stop:  # cancelled
            self._give_up(stop)
            raise
        finally:
            self._reports.stop()
        self._outbox.raise_failures()

    def __len__(self) -> int:
        """Records queued and not yet acknowledged."""
        return len(self._outbox.kafka) + len(self._line) + len(self._held)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if exc is None:
            await self.close()
            return
        if self._closed:
            return
        if not isinstance(exc, Exception):  # cancelled: what is queued is given up, not waited for
            self._give_up(exc)
        try:
            await self.close()
        except BucketlogError as failure:
            exc.add_note(f"and: {failure}")

    def _give_up(self, stop: BaseException) -> None:
        self._outbox.serve_events()
        left = len(self)
        self._held.give_up(_given_up)
        while self._line:
            self._line.popleft().delivery._refuse(_given_up())
        self._outbox.kafka.purge()
        if left:
            stop.add_note(given_up(left))

    def _advance(self) -> None:
        """There may be room for those who wait in line."""
        while self._line:
            record, delivery, until_s = self._line[0]
            try:
                if not self._outbox.put(record, delivery._report):
                    if self._loop.time() < until_s:
                        return
                    delivery._refuse(queue_full(self._delivery_timeout_s))
            except LogError as error:
                delivery._refuse(error)
            self._line.popleft()


class _Tally:
    """The fates of many records, counted. `report` runs in the thread of reports."""

    def __init__(self, producer: AsyncProducer) -> None:
        self.sent = 0
        self._producer = producer
        self._reported = 0
        self._failed = 0
        self._failure: LogError | None = None
        self._target = -1
        self._waiter: Waiter | None = None

    def report(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._failed += 1
            if self._failed == 1:
                self._failure = self._producer._outbox.failed(error, message, self)
        self._reported += 1
        if self._reported == self._target and self._waiter is not None:
            self._producer._reports.woken.append(self._waiter)

    async def wait(self) -> None:
        self._waiter = asyncio.get_running_loop().create_future()
        self._target = self.sent
        if self._reported < self._target:
            await self._waiter
        self._producer._outbox.failures.pop(self, None)
        failure = self._failure
        if failure is not None:
            if self._failed > 1:
                failure.add_note(f"{self._failed} records were not delivered; this is the first")
            raise failure


def _too_many() -> LogError:
    return log_error(
        KafkaError(KafkaError._QUEUE_FULL),
        f"{LINE_RECORDS_MAX} records wait for room already: await some of them first",
    )


def _given_up() -> LogError:
    return log_error(KafkaError(KafkaError._PURGE_QUEUE), "a record was not delivered")
