"""Reading ranges of batches for fetches, from memory or from the bucket.

Invariants: a range that is being read is not requested again: fetches that want parts of one range
at the same time share one request. Reads of history have their own requests, so that they never
delay reads at the tail. Nobody waits for longer than `read_ms_max`, whatever the bucket does. After
a failed read, `recover` retries a read of one byte until the bucket answers. So the broker becomes
ready again even if no client reads.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from itertools import islice, takewhile
from typing import Self

from bucketlog.log_format.backoff import Backoff
from bucketlog.log_format.errors import (
    BucketError,
    BucketUnavailableError,
    CorruptObjectError,
    ObjectNotFoundError,
)
from bucketlog.log_format.model import Buffer
from bucketlog.metadata.partition_log import StoredRange
from bucketlog.stateless_broker.fetch.range_set import RangeSet
from bucketlog.stateless_broker.fetch.segment_cache import SegmentCache
from bucketlog.stateless_broker.health import BrokerPart, Health
from bucketlog.stateless_broker.settings.broker import BrokerSettings
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.bucket import Body, Bucket, Span

RANGES_AT_ONCE = 64
"""Maximum number of requests that a fetch leaves behind when it is given up."""

RECOVERY = Backoff(first_pause_ms=500, longest_pause_ms=10_000)
"""The pauses before each check whether the bucket answers again."""


@dataclass(frozen=True, slots=True)
class ReadLimits:
    """Limits of reads: the requests in flight for recent segments and for history, and the time of
    a read."""

    recent_in_flight: int
    history_in_flight: int
    read_ms_max: int


@dataclass(slots=True)
class ReadCounts:
    """Bytes of batches that were handed out, and the requests to the bucket for them."""

    bytes_from_memory: int = 0
    bytes_from_bucket: int = 0
    requests: int = 0
    requested_bytes: int = 0


class RangeReader:
    def __init__(
        self,
        bucket: Bucket,
        cache: SegmentCache,
        health: Health,
        *,
        history: Bucket | None = None,
        limits: ReadLimits,
        counts: ReadCounts | None = None,
    ) -> None:
        self.cache = cache
        self.counts = counts or ReadCounts()
        self._bucket = bucket
        self._history = history or bucket
        self._health = health
        self._read_ms_max = limits.read_ms_max
        self._running: dict[StoredRange, asyncio.Task[Buffer]] = {}
        self._places = RangeSet()
        """The ranges that are being read."""
        self._expected: dict[StoredRange, None] = {}
        """Ranges that will be wanted soon and are not being read yet, in that order."""
        self._expected_places = RangeSet()
        self._recent_slots = asyncio.Semaphore(limits.recent_in_flight)
        self._history_slots = asyncio.Semaphore(limits.history_in_flight)
        self._history_in_flight = limits.history_in_flight
        self._history_running = 0
        self._failed: asyncio.Queue[StoredRange] = asyncio.Queue(maxsize=1)
        """A range whose read failed and that `recover` has not taken yet."""

    @classmethod
    def of(
        cls,
        bucket: Bucket,
        health: Health,
        settings: BrokerSettings,
        *,
        history: Bucket | None = None,
        counts: ReadCounts | None = None,
    ) -> Self:
        return cls(
            bucket,
            SegmentCache(
                recent_bytes_max=settings.cache_recent_bytes_max,
                history_bytes_max=settings.cache_history_bytes_max,
            ),
            health,
            history=history,
            limits=ReadLimits(
                settings.fetch_ranges_in_flight,
                settings.history_ranges_in_flight,
                settings.fetch_read_ms_max,
            ),
            counts=counts,
        )

    async def read(self, ranges: Sequence[StoredRange]) -> list[Buffer]:
        """Return the parts of all ranges in one list. Raises as `read_each`."""
        return [part for parts in await self.read_each(ranges) for part in parts]

    async def read_each(self, ranges: Sequence[StoredRange]) -> list[Sequence[Buffer]]:
        """Return the parts of each range. If the bucket fails or takes too long, return only the
        ranges before the first missing range. Raises `BucketError`, `CorruptObjectError` if the
        first range is missing."""
        found = [self.cache.find(wanted) for wanted in ranges]
        missing = [wanted for wanted, parts in zip(ranges, found, strict=True) if parts is None]
        self.counts.bytes_from_memory += sum(wanted.length for wanted in ranges)
        if missing:
            self.counts.bytes_from_memory -= sum(wanted.length for wanted in missing)
            self.counts.bytes_from_bucket += sum(wanted.length for wanted in missing)
            read = iter(await self._read(missing, or_less=found[0] is not None))
            found = [parts if parts is not None else _one(next(read, None)) for parts in found]
        there = takewhile(lambda parts: parts is not None, found)
        return [parts for parts in there if parts is not None]

    async def read_aside(self, wanted: StoredRange) -> Buffer:
        """Read bytes that locate batches and are not sent to clients. Raises as `read`."""
        found = self.cache.find(wanted)
        return b"".join(found) if found is not None else (await self._read([wanted]))[0]

    async def _read(self, ranges: Sequence[StoredRange], *, or_less: bool = False) -> list[Buffer]:
        """Return the ranges that are there in time, up to the first one that is not. Raises if
        there is none, unless `or_less`."""
        found: list[Buffer] = []
        try:
            async with (
                asyncio.timeout(self._read_ms_max / 1000),
                aclosing(self._in_order(ranges)) as parts,
            ):
                async for part in parts:
                    found.append(part)  # noqa: PERF401 what came before a failure counts
        except TimeoutError:
            reason = f"the bucket did not answer in {self._read_ms_max} ms"
            self._degrade(ranges[len(found)], reason)
            if not (found or or_less):
                raise BucketUnavailableError(reason) from None
        except (BucketError, CorruptObjectError):  # who wants the next one is told
            if not (found or or_less):
                raise
        return found

    async def _in_order(self, ranges: Sequence[StoredRange]) -> AsyncGenerator[Buffer, None]:
        """Read the ranges in their order, only a few at once. A reader that gives up leaves only a
        few requests behind, for which others would wait."""
        left = iter(ranges)
        ahead: deque[asyncio.Task[Buffer]] = deque()
        try:
            while True:
                for wanted in islice(left, RANGES_AT_ONCE - len(ahead)):
                    ahead.append(asyncio.create_task(self._read_one(wanted)))
                if not ahead:
                    return
                yield await ahead[0]
                ahead.popleft()
        finally:
            for task in ahead:
                task.cancel()
            await asyncio.gather(*ahead, return_exceptions=True)

    async def _read_one(self, wanted: StoredRange) -> Buffer:
        holder, task = self._task(wanted)
        data = await asyncio.shield(task)
        start = wanted.position - holder.position
        part = memoryview(data)[start : start + wanted.length]
        if len(part) != wanted.length:
            raise CorruptObjectError(
                keys.object_key(wanted.object),
                holder.position + len(data),
                f"it ends before byte {wanted.position + wanted.length}",
            )
        return part

    def expect(self, ranges: Sequence[StoredRange]) -> None:
        """Prepare for ranges that will be wanted soon. They are read as far as nobody else waits
        for history. The rest are read when there is room, or when somebody wants a part of them."""
        for wanted in ranges:
            if not self.has(wanted):
                self._expected[wanted] = None
                self._expected_places.add(wanted)
        self._begin_expected()

    def has(self, stored: StoredRange) -> bool:
        """Return whether the range is in memory, or will be soon."""
        return (
            self._places.covering(stored) is not None
            or self._expected_places.covering(stored) is not None
            or self.cache.find(stored) is not None
        )

    def _begin_expected(self) -> None:
        while self._expected and self.history_is_idle:
            first = next(iter(self._expected))
            self._expect_no_more(first)
            self._task(first)

    def _take_expected(self, wanted: StoredRange) -> StoredRange | None:
        """Return an expected range that contains all of `wanted`, or None. The range is then no
        longer expected."""
        expected = self._expected_places.covering(wanted)
        if expected is not None:
            self._expect_no_more(expected)
        return expected

    def _expect_no_more(self, expected: StoredRange) -> None:
        del self._expected[expected]
        self._expected_places.remove(expected)

    @property
    def history_is_idle(self) -> bool:
        """Whether reads of history have room for reading ahead."""
        return self._history_running < self._history_in_flight

    def begin(self, wanted: StoredRange) -> None:
        """Begin to read all of the range in one request: all of it is needed now, though others
        wait."""
        if self.cache.find(wanted) is None:
            self._task(wanted)

    def _task(self, wanted: StoredRange) -> tuple[StoredRange, "asyncio.Task[Buffer]"]:
        """Return the range that contains all of `wanted`, and the task that reads it. Begins the
        task if there is none."""
        holder = self._places.covering(wanted)
        if holder is None:
            holder = self._take_expected(wanted) or wanted
            if self.cache.is_recent(wanted.object):  # others will want the rest of it
                holder = StoredRange(wanted.object, 0, self.cache.size_bytes(wanted.object))
            task = asyncio.get_running_loop().create_task(self._get(holder))
            self._running[holder] = task
            self._places.add(holder)
            is_history = not self.cache.is_recent(holder.object)
            self._history_running += is_history
            task.add_done_callback(self._forget(holder, is_history=is_history))
        return holder, self._running[holder]

    def _forget(
        self, stored: StoredRange, *, is_history: bool
    ) -> Callable[["asyncio.Task[Buffer]"], None]:
        def forget(task: "asyncio.Task[Buffer]") -> None:
            del self._running[stored]
            self._places.remove(stored)
            self._history_running -= is_history
            if not task.cancelled():
                task.exception()  # whoever wanted it may have gone before it failed
                self._begin_expected()

        return forget

    async def _get(self, stored: StoredRange) -> Buffer:
        is_recent = self.cache.is_recent(stored.object)
        async with self._recent_slots if is_recent else self._history_slots:
            try:
                body = await self._get_span(stored, stored.length)
            except ObjectNotFoundError:
                self._health.recover(BrokerPart.READING)  # it answers
                raise
            except BucketError as error:
                self._degrade(stored, str(error))
                raise
        self._health.recover(BrokerPart.READING)
        self.counts.requests += 1
        self.counts.requested_bytes += len(body.data)
        if len(body.data) == stored.length:
            self.cache.keep(stored, body.data)
        return body.data

    async def _get_span(self, stored: StoredRange, length: int) -> Body:
        bucket = self._bucket if self.cache.is_recent(stored.object) else self._history
        return await bucket.get(keys.object_key(stored.object), Span(stored.position, length))

    def _degrade(self, stored: StoredRange, reason: str) -> None:
        self._health.degrade(BrokerPart.READING, reason)
        if self._failed.empty():
            self._failed.put_nowait(stored)

    async def recover(self) -> None:
        """After each failed read, check the bucket until the bucket answers. Never returns."""
        while True:
            pauses_s = RECOVERY.pauses_s()
            stored = await self._failed.get()
            while self._health.is_degraded(BrokerPart.READING):
                await asyncio.sleep(next(pauses_s))
                await self._look(stored)

    async def _look(self, stored: StoredRange) -> None:
        """Read one byte of the range. An answer of the bucket ends the failure of reads."""
        try:
            async with asyncio.timeout(self._read_ms_max / 1000):
                await self._get_span(stored, 1)
        except (ObjectNotFoundError, CorruptObjectError):  # the bucket answers
            pass
        except (TimeoutError, BucketError):
            return
        self._health.recover(BrokerPart.READING)


def _one(part: Buffer | None) -> list[Buffer] | None:
    return None if part is None else [part]
