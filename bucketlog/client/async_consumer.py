"""Consumers for asyncio: a `Consumer`, its waiting done in a thread of its own.

Invariants: consumer and thread take turns: either a call runs in the thread, or the loop hands out
what is ready, never both, so that all of `Consumer`'s promises hold here. What a call prepared
counts as handed out only when the loop takes it: a cancelled wait loses nothing. At most one call's
records wait for the loop; behind them librdkafka's bounded queue holds the broker back.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from bucketlog.client.consumer import BATCH_RECORDS, Consumer
from bucketlog.client.decoding import UnreadableRecordError
from bucketlog.client.group_consumer import GroupConsumer
from bucketlog.client.topic import Record, Topic

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")
C = TypeVar("C", bound="Consumer[Any, Any]")


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
        self.consumer._begin()
        return call(self.consumer)

    def _ended(self, _: "asyncio.Future[Any]") -> None:
        self._running = None

    def _keep_failure(self, ended: "asyncio.Future[Any]") -> None:
        self._unheard = ended.exception()


class AsyncConsumer(Generic[K, V]):
    """Reads a topic; made by `AsyncLog.consumer`. For use by one task at a time."""

    def __init__(self, topic: Topic[K, V], open_consumer: Callable[[], Consumer[K, V]]) -> None:
        self.topic = topic
        self._thread = _Thread(open_consumer)

    @property
    def passed_over(self) -> int:
        """How many records were skipped or set aside because they do not decode (`on_error`)."""
        return 0 if self._thread.consumer is None else self._thread.consumer.passed_over

    async def poll(
        self, max_records: int = BATCH_RECORDS, timeout_s: float = 1.0
    ) -> list[Record[K, V]]:
        """As `Consumer.poll`."""
        try:
            records, count = await self._thread.run(
                lambda consumer: consumer._read_ahead(max_records, timeout_s)
            )
        except UnreadableRecordError:
            self._hand_out(1)
            raise
        self._hand_out(count)
        return records

    async def batches(self, max_records: int = BATCH_RECORDS) -> AsyncIterator[list[Record[K, V]]]:
        """Non-empty lists of records as they come, at most `max_records` each."""
        while batch := await self.poll(max_records, float("inf")):
            yield batch

    async def close(self) -> None:
        """As the consumer's without `await`."""
        await self._thread.close(lambda consumer: consumer.close())

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Record[K, V]:
        thread = self._thread
        while True:
            if thread.is_idle and thread.consumer is not None:
                record = thread.consumer._at_once()
                if record is not None:
                    return record
            if not await thread.run(lambda consumer: consumer._prepare()):
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


class AsyncGroupConsumer(AsyncConsumer[K, V]):
    """Reads what the group gives to this member; `AsyncLog.consumer(topic, group=...)`.

    `on_assigned` and `on_revoked` are called in the consumer's thread.
    """

    def __init__(
        self, topic: Topic[K, V], open_consumer: Callable[[], GroupConsumer[K, V]]
    ) -> None:
        super().__init__(topic, open_consumer)

    @property
    def assignment(self) -> frozenset[int]:
        """The partitions that this member reads now."""
        consumer = self._thread.consumer
        return consumer.assignment if isinstance(consumer, GroupConsumer) else frozenset()

    async def commit(self) -> None:
        """As `GroupConsumer.commit`."""
        await self.call(lambda consumer: consumer.commit())

    async def call(self, what: Callable[[GroupConsumer[K, V]], T]) -> T:
        """Call `what` with the blocking consumer, in the consumer's thread."""

        def with_consumer(consumer: Consumer[K, V]) -> T:
            assert isinstance(consumer, GroupConsumer)
            return what(consumer)

        return await self._thread.run(with_consumer)
