"""`AsyncGroupConsumer.process`: an `async` function is called for each record, in many tasks.

The invariants are those of `processing`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from bucketlog.client.lanes import Lanes
from bucketlog.client.processing import (
    IDLE_S,
    POLL_RECORDS,
    POLL_S,
    ProcessingRules,
    lane_of,
)
from bucketlog.client.topic import Record
from bucketlog.log_format.errors import BucketlogError

if TYPE_CHECKING:
    from bucketlog.client.async_consumer import AsyncGroupConsumer

K = TypeVar("K")
V = TypeVar("V")


class AsyncProcessing(Generic[K, V]):
    """Run of `process` in the running event loop."""

    def __init__(
        self,
        consumer: "AsyncGroupConsumer[K, V, Any]",
        handler: Callable[[Record[K, V]], Awaitable[object]],
        rules: ProcessingRules,
    ) -> None:
        self._consumer = consumer
        self._handler = handler
        self._rules = rules
        self._failures = rules.failures
        self._random = Random()
        self._lanes = Lanes[Record[K, V]]()
        self._slots = asyncio.Semaphore(rules.concurrency)
        self._ending = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._failure: BaseException | None = None
        self._count = 0

    async def run(self) -> int:
        """As `Processing.run`. A cancelled run also waits for running handlers."""
        consumer = self._consumer
        try:
            while not (self._ending.is_set() or consumer.finished or consumer.is_stopped):
                for record in await consumer._poll(POLL_RECORDS, POLL_S):
                    lane = lane_of(record, self._rules.ordered_by)
                    if self._lanes.put(lane, record):
                        task = asyncio.create_task(self._work(lane, record))
                        self._tasks.add(task)
                        task.add_done_callback(self._ended)
            while self._tasks and not (self._ending.is_set() or consumer.is_stopped):
                await asyncio.wait(self._tasks, timeout=IDLE_S)
                await consumer._poll(0, 0)  # the group hears from this member
        finally:
            self._end()
            if self._tasks:
                await asyncio.wait(self._tasks)
            await asyncio.to_thread(self._failures.close)
        if self._failure is not None:
            raise self._failure
        return self._count

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._failure = self._failure or error
            self._end()

    def _end(self) -> None:
        self._ending.set()
        self._lanes.clear()

    async def _work(self, lane: Hashable, first: Record[K, V]) -> None:
        """Handle the records of a lane that are there."""
        record: Record[K, V] | None = first
        while record is not None:
            async with self._slots:
                is_handled = await self._is_handled(record)
            if is_handled:
                self._consumer.done(record)
                self._count += 1
            record = self._lanes.next_of(lane)

    async def _is_handled(self, record: Record[K, V]) -> bool:
        """Call the handler until it returns. False: the record is left to its next reader."""
        attempt = 0
        while not self._ending.is_set() and self._consumer.is_in_flight(record):
            attempt += 1
            called = await self._called(record, attempt)
            if called.cancelled():
                return False
            error = called.exception()
            if error is None:
                return True
            if not isinstance(error, Exception) or attempt >= self._failures.attempts:
                return await self._has_passed_over(record, error)
            self._failures.note_retry(record, attempt, error)
            await self._pause(self._rules.retrying.pause_s(attempt, self._random))
        return False

    async def _called(self, record: Record[K, V], attempt: int) -> "asyncio.Future[object]":
        """The ended call of the handler."""
        if self._rules.traced is None:
            called = asyncio.ensure_future(self._handler(record))
            await asyncio.wait([called])
            return called
        with self._rules.traced.processing(record, attempt=attempt) as processing:
            called = asyncio.ensure_future(self._handler(record))
            await asyncio.wait([called])
            is_cancelled = called.cancelled()
            processing.fail(asyncio.CancelledError() if is_cancelled else called.exception())
        return called

    async def _has_passed_over(self, record: Record[K, V], error: BaseException) -> bool:
        """False: `run` raises an error."""
        if isinstance(error, Exception) and not self._failures.raises:
            try:
                await asyncio.to_thread(self._failures.pass_over, record, error)
            except BucketlogError as failure:
                error = failure
            else:
                return True
        self._failure = self._failure or error
        self._end()
        return False

    async def _pause(self, pause_s: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._ending.wait(), pause_s)
