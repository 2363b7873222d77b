"""The producer for asyncio: the same outbox as `Producer`'s, and a thread that serves its reports.

Invariants: what is queued keeps its fate whoever stops waiting for it: a failure that nobody has
awaited is raised by `flush`, or at the end of the block. The thread sleeps while nothing is on its
way; it hands those that wait to the loop once per round of reports, not once per record. Records
that find no room wait in a line, in order, and the line is bounded.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Mapping
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeVar

from confluent_kafka import KafkaError, Message

from bucketlog.client.deferred_sends import DeferredSends, SendArguments, prepare
from bucketlog.client.kafka_errors import log_error
from bucketlog.client.patience import Patience
from bucketlog.client.sending import (
    Delivered,
    DeliveryState,
    Encoded,
    Outbox,
    closed,
    encoded,
    encoded_chunks,
    given_up,
    queue_full,
)
from bucketlog.client.topic import Headers, Topic, check_topic
from bucketlog.log_format.display import Description, DisplayedObject
from bucketlog.log_format.errors import BucketlogError, LogError

K = TypeVar("K")
V = TypeVar("V")
Waiter = asyncio.Future[None]

LINE_RECORDS_MAX = 100_000
"""Records that were sent and wait for room in the queue."""
_POLL_S = 0.1
_IDLE_S = 1.0


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

    __slots__ = ("_producer", "_waiters")

    def __init__(self, producer: "AsyncProducer") -> None:
        super().__init__(producer._outbox)
        self._producer = producer
        self._waiters: tuple[Waiter, ...] = ()

    def __await__(self) -> Generator[Any, None, Delivered]:
        while self._delivered is None:
            if self._error is not None:
                self._raise(self._error)
            waiter: Waiter = asyncio.get_running_loop().create_future()
            self._waiters = (*self._waiters, waiter)
            if not self.done:  # else its report came while it was not listed
                yield from waiter
        return self._delivered

    def _report(self, error: KafkaError | None, message: Message) -> None:
        super()._report(error, message)
        if self._waiters:
            self._producer._reports.woken.extend(self._waiters)

    def _refuse(self, error: BucketlogError) -> None:
        """Fail a record that was never queued."""
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

    def __init__(self, config: Mapping[str, Any], *, delivery_timeout_s: float) -> None:
        self._outbox = Outbox(config)
        self._delivery_timeout_s = delivery_timeout_s
        self._line: deque[_WaitingRecord] = deque()
        self._loop = asyncio.get_running_loop()
        self._held = DeferredSends(self._queue, AsyncDelivery._refuse)
        self._reports = _Reports(self._outbox, self._loop, self._line, self._advance)
        self._closed = False

    def _description(self) -> Description:
        return self._outbox.description(is_closed=self._closed)

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
        delivery = AsyncDelivery(self)
        if self._held or topic.value_waits is not None or topic.key_waits is not None:
            given = SendArguments(topic, value, key, headers, partition, timestamp_ms)
            if self._held or not given.encodes_at_once():
                if len(self._held) >= LINE_RECORDS_MAX:
                    raise _too_many()
                self._held.add(given, delivery)
                return delivery
        record = encoded(topic, value, key, headers, partition, timestamp_ms)
        self._queue(record, delivery)
        return delivery

    def _queue(self, record: Encoded, delivery: AsyncDelivery) -> None:
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
        for chunk in encoded_chunks(topic, values, key):
            messages = chunk
            tally.sent += len(messages)
            while self._line:
                await self._reports.round()
            until_s = self._loop.time() + self._delivery_timeout_s
            while messages := self._outbox.put_batch(topic.name, messages, tally.report):
                if self._loop.time() > until_s:
                    raise queue_full(self._delivery_timeout_s)
                await self._reports.round()
            self._reports.wake()
            await asyncio.sleep(0)
        await tally.wait()
        return tally.sent

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


class _Reports:
    """The thread that serves librdkafka's delivery reports."""

    def __init__(
        self,
        outbox: Outbox,
        loop: asyncio.AbstractEventLoop,
        line: "deque[_WaitingRecord]",
        advance: Callable[[], None],
    ) -> None:
        self.woken: list[Waiter] = []
        """By reports of this round; only the thread adds to it."""
        self._rounds: list[Waiter] = []
        self._outbox = outbox
        self._kafka = outbox.kafka
        self._loop = loop
        self._line = line
        self._advance = advance
        self._resuming = False
        """The loop was notified, and has not handled it yet."""
        self._news = threading.Event()
        self._hurried = 0
        self._stopped = False
        threading.Thread(target=self._run, daemon=True, name="bucketlog reports").start()

    def wake(self) -> None:
        """Something was queued."""
        if not self._news.is_set():
            self._news.set()

    def stop(self) -> None:
        self._stopped = True
        self._news.set()

    async def round(self) -> None:
        """Until the reports that are there have been served."""
        waiter: Waiter = self._loop.create_future()
        self._rounds.append(waiter)
        self.wake()
        await waiter

    async def until_empty(self, look: Callable[[], None] = lambda: None) -> None:
        self._hurried += 1
        try:
            while len(self._kafka) or self._line:
                look()
                await self.round()
            await self.round()  # the last report may be on its way still
        finally:
            self._hurried -= 1

    def _run(self) -> None:
        kafka = self._kafka
        while not self._stopped:
            self._news.clear()
            if not len(kafka) and not self._is_loop_wanted([]) and not self._stopped:
                self._news.wait(_IDLE_S)
            wait_s = _POLL_S if len(kafka) else 0.0
            if self._hurried:
                self._outbox.flush(wait_s)
            else:
                self._outbox.poll(wait_s)
            if not self._hand_over():
                break
        self._outbox.close()
        self._hand_over()

    def _hand_over(self) -> bool:
        """False: the loop is closed."""
        woken, self.woken = self.woken, []
        try:
            if self._is_loop_wanted(woken):
                rounds, self._rounds = self._rounds, []
                self._resuming = True
                self._loop.call_soon_threadsafe(self._resume, woken, rounds)
        except RuntimeError:
            return False
        return True

    def _is_loop_wanted(self, woken: list[Waiter]) -> bool:
        return bool(woken or self._rounds or (self._line and not self._resuming))

    def _resume(self, woken: list[Waiter], rounds: list[Waiter]) -> None:
        self._resuming = False
        self._advance()
        self.wake()
        for waiters in (woken, rounds):
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_result(None)


def _too_many() -> LogError:
    return log_error(
        KafkaError(KafkaError._QUEUE_FULL),
        f"{LINE_RECORDS_MAX} records wait for room already: await some of them first",
    )


def _given_up() -> LogError:
    return log_error(KafkaError(KafkaError._PURGE_QUEUE), "a record was not delivered")
