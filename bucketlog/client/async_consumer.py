"""Consumers for asyncio: a `Consumer`, its waiting done in its own thread.

Invariants: consumer and thread take turns: either a call runs in the thread, or the loop hands out
what is ready, never both, so that all of `Consumer`'s promises hold here. What a call prepared
counts as handed out only when the loop takes it: a cancelled wait loses nothing. At most one call's
records wait for the loop; behind them librdkafka's bounded queue holds the broker back.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from bucketlog.client.async_processing import AsyncProcessing
from bucketlog.client.consumer import BATCH_RECORDS, Consumer
from bucketlog.client.decoding import UnreadableRecordError
from bucketlog.client.failures import OnFailure
from bucketlog.client.group_consumer import GroupConsumer
from bucketlog.client.processing import RETRYING, OrderedBy, Retrying
from bucketlog.client.reading_range import StartOf
from bucketlog.client.signatures import documented_as
from bucketlog.client.sources import P, Sources, the_topic
from bucketlog.client.statistics import Statistics
from bucketlog.client.topic import Record, Topic
from bucketlog.log_format.errors import BucketlogError

if TYPE_CHECKING:
    from bucketlog.client.traced_reads import TracedReads

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")
C = TypeVar("C", bound="Consumer[Any, Any, Any]")


class _Thread(Generic[C]):
    """Opens the consumer when it is first needed, and runs calls on it, one after another."""

    def __init__(self, open_consumer: Callable[[], C]) -> None:
        self.consumer: C | None = None
        """To be touched by the loop only while the thread `is_idle`."""
        self._open = open_consumer
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="bucketlog consumer")
        self._running: asyncio.Future[Any] | None = None
        self._unheard: BaseException | None = None
        self.closed = False
        self.stopped = False

    def stop(self) -> None:
        self.stopped = True
        if self.consumer is not None:
            self.consumer.stop()

    @property
    def is_idle(self) -> bool:
        return self._running is None

    async def run(self, call: Callable[[C], T]) -> T:
        """To stop waiting lets the call end soon; what it raises then is raised by the next."""
        while self._running is not None:
            await asyncio.wait([self._running])
        if self._unheard is not None:
            unheard, self._unheard = self._unheard, None
            raise unheard
        running = asyncio.get_running_loop().run_in_executor(self._executor, self._call, call)
        self._running = running
        running.add_done_callback(self._ended)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            if self.consumer is not None:
                self.consumer._wake()
            running.add_done_callback(self._keep_failure)
            raise

    async def close(self, call: Callable[[C], T]) -> None:
        if self.closed:
            return
        self.closed = True
        self._unheard = None
        try:
            while self._running is not None:
                await asyncio.wait([self._running])
            if self.consumer is not None:
                await self.run(call)
        finally:
            self._executor.shutdown(wait=False)

    def _call(self, call: Callable[[C], T]) -> T:
        if self.consumer is None:
            self.consumer = self._open()
        if self.stopped:
            self.consumer.stop()
        self.consumer._begin()
        return call(self.consumer)

    def _ended(self, _: "asyncio.Future[Any]") -> None:
        self._running = None

    def _keep_failure(self, ended: "asyncio.Future[Any]") -> None:
        self._unheard = ended.exception()


class AsyncConsumer(Generic[K, V, P]):
    """Consumer of a topic for asyncio. Made by `AsyncLog.consumer`, and used by one task at a time.

    Use it with `async with` or close it. The consumer connects when it is first awaited.

    Attributes:
        topic: Topic that is read.

    Examples:
        >>> async def read():
        ...     async with bucketlog.aconnect("localhost:9092") as log:
        ...         consumer = log.consumer(orders, start="earliest", until="end")
        ...         return [record.value.id async for record in consumer]
        >>> asyncio.run(read())
        ['1', '2']
    """

    def __init__(
        self,
        sources: Sources[K, V, P],
        open_consumer: Callable[[], Consumer[K, V, P]],
        traced: "TracedReads | None" = None,
    ) -> None:
        self._sources = sources
        self._traced = traced
        self._thread = _Thread(open_consumer)
        self._reading = asyncio.Lock()
        """No call moves the consumer between reading records and returning them."""

    @property
    @documented_as(Consumer.topic)
    def topic(self: "AsyncConsumer[K, V, int]") -> Topic[K, V]:
        return the_topic(self._sources)

    @property
    @documented_as(Consumer.topics)
    def topics(self) -> tuple[str, ...]:
        """Topics that match a pattern are found when the consumer connects."""
        return tuple(sorted(self._sources.topics))

    @documented_as(Consumer.partitions_of)
    async def partitions_of(self, topic: str | Topic[Any, Any]) -> list[P]:
        return await self._control(lambda consumer: consumer.partitions_of(topic))

    @property
    @documented_as(Consumer.passed_over)
    def passed_over(self) -> int:
        return 0 if self._thread.consumer is None else self._thread.consumer.passed_over

    @property
    @documented_as(Consumer.statistics)
    def statistics(self) -> Statistics | None:
        return None if self._thread.consumer is None else self._thread.consumer.statistics

    @documented_as(Consumer.poll)
    async def poll(
        self, max_records: int = BATCH_RECORDS, timeout_s: float = 1.0
    ) -> list[Record[K, V]]:
        if self._traced is None:
            return await self._poll(max_records, timeout_s)
        receiving = self._traced.receiving()
        try:
            records = await self._poll(max_records, timeout_s)
        except BucketlogError as error:
            receiving.fail(error)
            raise
        receiving.end(records)
        return records

    async def _poll(self, max_records: int, timeout_s: float) -> list[Record[K, V]]:
        """`poll` without a span."""
        if self._thread.stopped:
            return []
        async with self._reading:
            try:
                records, count = await self._thread.run(
                    lambda consumer: consumer._read_ahead(max_records, timeout_s)
                )
            except UnreadableRecordError:
                if self._thread.consumer is not None:
                    self._thread.consumer._give_up_first()
                raise
            self._hand_out(count)
            return records

    @documented_as(Consumer.batches)
    async def batches(self, max_records: int = BATCH_RECORDS) -> AsyncIterator[list[Record[K, V]]]:
        while batch := await self.poll(max_records, float("inf")):
            yield batch

    @property
    @documented_as(Consumer.finished)
    def finished(self) -> bool:
        """While the consumer is not connected, this is False."""
        return self._thread.consumer is not None and self._thread.consumer.finished

    @property
    @documented_as(Consumer.is_stopped)
    def is_stopped(self) -> bool:
        return self._thread.stopped

    @documented_as(Consumer.stop)
    def stop(self, signal_number: int | None = None, frame: FrameType | None = None) -> None:
        """This also works before the consumer has connected."""
        self._thread.stop()

    @documented_as(Consumer.seek)
    async def seek(self, to: StartOf[P], partitions: Iterable[P] | None = None) -> None:
        await self._control(lambda consumer: consumer.seek(to, partitions))

    @documented_as(Consumer.pause)
    async def pause(self, partitions: Iterable[P] | None = None) -> None:
        await self._control(lambda consumer: consumer.pause(partitions))

    @documented_as(Consumer.resume)
    async def resume(self, partitions: Iterable[P] | None = None) -> None:
        await self._control(lambda consumer: consumer.resume(partitions))

    @property
    @documented_as(Consumer.paused)
    def paused(self) -> frozenset[P]:
        consumer = self._thread.consumer
        return frozenset() if consumer is None else consumer.paused

    @documented_as(Consumer.position)
    async def position(self) -> dict[P, int]:
        return await self._control(lambda consumer: consumer.position())

    @documented_as(Consumer.committed)
    async def committed(self) -> dict[P, int | None]:
        return await self._control(lambda consumer: consumer.committed())

    @documented_as(Consumer.lag)
    async def lag(self) -> dict[P, int]:
        return await self._control(lambda consumer: consumer.lag())

    async def _control(self, call: Callable[[Consumer[K, V, P]], T]) -> T:
        async with self._reading:
            return await self._thread.run(call)

    @documented_as(Consumer.close)
    async def close(self) -> None:
        await self._thread.close(lambda consumer: consumer.close())

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Record[K, V]:
        receiving = None if self._traced is None else self._traced.receiving()
        thread = self._thread
        try:
            while not thread.stopped:
                if thread.is_idle and thread.consumer is not None:
                    record = thread.consumer._at_once()
                    if record is not None:
                        if receiving is not None:
                            receiving.end_one(record)
                        return record
                if not await thread.run(lambda consumer: consumer._prepare()):
                    break
        except BucketlogError as error:
            if receiving is not None:
                receiving.fail(error)
            raise
        raise StopAsyncIteration

    async def __aenter__(self) -> Self:
        await self._thread.run(lambda _: None)
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._thread.close(lambda consumer: consumer.__exit__(exc_type, exc, traceback))

    def _hand_out(self, count: int) -> None:
        if self._thread.consumer is not None:
            self._thread.consumer._hand_out(count)


class AsyncGroupConsumer(AsyncConsumer[K, V, P]):
    """Member of a consumer group for asyncio. Made by `AsyncLog.consumer` with a group.

    The functions `on_assigned` and `on_revoked` run in the consumer's thread, not in the event
    loop.

    Examples:
        >>> async def read():
        ...     async with bucketlog.aconnect("localhost:9092") as log:
        ...         consumer = log.consumer(orders, group="billing", start="earliest", until="end")
        ...         ids = [record.value.id async for record in consumer]
        ...         await consumer.commit()
        ...         return ids
        >>> asyncio.run(read())
        ['1', '2']
    """

    def __init__(
        self,
        sources: Sources[K, V, P],
        open_consumer: Callable[[], GroupConsumer[K, V, P]],
        traced: "TracedReads | None" = None,
    ) -> None:
        super().__init__(sources, open_consumer, traced)

    @property
    @documented_as(GroupConsumer.assignment)
    def assignment(self) -> frozenset[P]:
        consumer = self._thread.consumer
        return consumer.assignment if isinstance(consumer, GroupConsumer) else frozenset()

    @documented_as(GroupConsumer.done)
    def done(self, record: Record[K, V]) -> bool:
        consumer = self._thread.consumer
        return isinstance(consumer, GroupConsumer) and consumer.done(record)

    @documented_as(GroupConsumer.is_in_flight)
    def is_in_flight(self, record: Record[K, V]) -> bool:
        consumer = self._thread.consumer
        return isinstance(consumer, GroupConsumer) and consumer.is_in_flight(record)

    async def process(
        self,
        handler: Callable[[Record[K, V]], Awaitable[object]],
        *,
        concurrency: int = 1,
        ordered_by: OrderedBy = "key",
        attempts: int = 1,
        on_failure: OnFailure = "raise",
        retrying: Retrying = RETRYING,
    ) -> int:
        """Await a handler for each record, for several records at a time, with `auto_commit="ack"`.

        A record is committed only after its handler has returned, and after all earlier records. If
        a handler raises an exception, it is awaited again after a pause, up to `attempts` times.
        Then `on_failure` decides.

        Args:
            handler: Asynchronous function that is awaited with each record.
            concurrency: Number of records that are handled at a time. Default: 1.
            ordered_by: Records that are handled in order: "key" those of a key, "partition" those
                of a partition, None no records. Default: "key".
            attempts: Number of calls for a record, at least 1. Default: 1.
            on_failure: What happens after the last attempt. "raise": `process` ends with the
                handler's exception. "skip": the record is logged and acknowledged. A `DeadLetter`:
                the record is copied to another topic, then acknowledged. Default: "raise".
            retrying: Pauses between attempts. Default: from 0.1 to 10 seconds.

        Returns:
            The number of handled records, after `stop()`, or, with `until`, once all records are
            handled.

        Raises:
            ConfigurationError: If an option is not valid, or if the consumer was opened with
                another `auto_commit`.
            Exception: The exception of a handler, with `on_failure="raise"`.
            LogError: If the consumer cannot read, or cannot commit.
        """
        rules = await self.call(
            lambda consumer: consumer.rules(concurrency, ordered_by, attempts, on_failure, retrying)
        )
        return await AsyncProcessing(self, handler, rules).run()

    @documented_as(GroupConsumer.commit)
    async def commit(self) -> None:
        await self.call(lambda consumer: consumer.commit())

    async def call(self, what: Callable[[GroupConsumer[K, V, P]], T]) -> T:
        """Call a function with the blocking consumer, in the consumer's thread.

        Args:
            what: Function that is called with a `GroupConsumer`.

        Returns:
            The result of the function.

        Raises:
            BucketlogError: If the consumer cannot connect. Exceptions of the function are raised,
                too.
        """

        def with_consumer(consumer: Consumer[K, V, P]) -> T:
            assert isinstance(consumer, GroupConsumer)
            return what(consumer)

        return await self._thread.run(with_consumer)
