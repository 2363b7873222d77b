"""Fetch: plan by bisection in the view, long-poll on the view, read ranges, send them as they are.

The size of a read from the tier is known only after the read, so the plan reserves the maximum in
the response. Invariants: a response has no records of a partition whose log start has moved beyond
the requested offset. Nothing is read before the response's memory is granted. A partition that is
named twice is answered once, with the last values (as in Kafka).

Source: KIP-74 (response limits), KIP-227 (sessions, answered as sessionless), KIP-320 (leader
epochs: constantly 0), KIP-516 (topic ids), Kafka's ReplicaManager.fetchMessages.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from kio.schema.errors import ErrorCode

from bucketlog.log_format.batch import LEADER_EPOCH
from bucketlog.log_format.errors import (
    BucketError,
    BucketUnavailableError,
    CorruptObjectError,
    InvalidDataError,
)
from bucketlog.log_format.model import Buffer, TopicIdPartition
from bucketlog.log_format.transactions import READ_COMMITTED
from bucketlog.log_format.wire import fetch
from bucketlog.log_format.wire.error_codes import ApiFamily, kafka_code
from bucketlog.metadata.acl_bindings import AclOperation
from bucketlog.metadata.fold import TopicState
from bucketlog.metadata.partition_log import PartitionLog
from bucketlog.metadata.view import View
from bucketlog.stateless_broker.fetch.feed import Watch, Watchers
from bucketlog.stateless_broker.fetch.read_ahead import ReadAhead
from bucketlog.stateless_broker.fetch.reading import RangeReader
from bucketlog.stateless_broker.fetch.tier_reading import TierReader
from bucketlog.stateless_broker.handlers.fetch_plan import (
    NOTHING,
    FetchedRecords,
    LogOffsets,
    PlannedPartition,
    PlannedPartitions,
    PlannedRead,
    ReadableBytes,
    own_parts,
    result_of,
)
from bucketlog.stateless_broker.membership import Membership
from bucketlog.stateless_broker.network.apis import Request
from bucketlog.stateless_broker.network.turns import Slices, Turns

logger = logging.getLogger(__name__)

TIER_READS_AT_ONCE = 8
"""The limit of concurrent partition reads from the tier, over all fetches."""

Rows: TypeAlias = Iterable[tuple[int, PlannedPartition]]
"""Partitions of a request, with their rows."""


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """`read_ms_max` bounds a partition's wait for a place among tier reads, and for the bucket."""

    bytes_max: int
    wait_ms_max: int
    read_ms_max: int


class BatchSources(NamedTuple):
    """The sources of batches: recent and older log segments, read-ahead data, the tier."""

    reader: RangeReader
    read_ahead: ReadAhead
    tier: TierReader


class FetchHandler:
    def __init__(
        self,
        *,
        view: View,
        sources: BatchSources,
        watchers: Watchers,
        catch_up: Callable[[], Awaitable[bool]],
        membership: Membership,
        limits: FetchLimits,
        turns: Turns,
    ) -> None:
        self._view = view
        self._reader, self._read_ahead, self._tier = sources
        self._watchers = watchers
        self._catch_up = catch_up
        self._membership = membership
        self._limits = limits
        self._turns = turns
        self._tier_places = asyncio.Semaphore(TIER_READS_AT_ONCE)

    async def __call__(self, request: Request, message: fetch.FetchRequest) -> list[Buffer]:
        version = request.header.api_version
        if message.session_id and message.session_epoch > 0:
            return fetch.write_response(version, ErrorCode.fetch_session_id_not_found, [])
        committed_only = message.isolation_level == READ_COMMITTED
        planned = await self._look_up_all(message.partitions, request, committed_only)
        if any(part.is_beyond for part in planned):
            planned = await self._look_up_again(message.partitions, request, committed_only)
        await self._wait(message, planned)
        results = await self._read(request, message, planned)
        throttle_ms = request.throttle_ms()
        return fetch.write_response(version, ErrorCode.none, results, throttle_ms=throttle_ms)

    async def _look_up_all(
        self, wanted: fetch.FetchPartitions, request: Request, committed_only: bool
    ) -> PlannedPartitions:
        planned = PlannedPartitions(wanted, committed_only=committed_only)
        slices = Slices(self._turns)
        for each in wanted:
            planned.add(*self._look_up(each, request))
            await slices.spend(1)
        return planned

    def _look_up(
        self, wanted: fetch.FetchPartition, request: Request
    ) -> tuple[ErrorCode, PartitionLog | None]:
        topic: TopicState | None
        name = wanted.topic
        if request.header.api_version >= fetch.TOPIC_IDS_FROM:
            topic = self._view.topic_by_id(wanted.topic_id) if wanted.topic_id else None
            if topic is None:
                return ErrorCode.unknown_topic_id, None
            name = topic.name
        else:
            topic = self._view.topic(name)
        if not request.access.may_topic(AclOperation.READ, name):
            return ErrorCode.topic_authorization_failed, None
        partition = TopicIdPartition(topic.topic_id, wanted.partition) if topic else None
        log = self._view.log(partition) if partition else None
        if partition is None or log is None:
            return ErrorCode.unknown_topic_or_partition, None
        error = ErrorCode.none
        if self._membership.has_handed_over:
            error = ErrorCode.not_leader_or_follower
        elif wanted.leader_epoch > LEADER_EPOCH:
            error = ErrorCode.unknown_leader_epoch
        elif not self._view.log_start(partition) <= wanted.fetch_offset <= log.high_watermark:
            error = ErrorCode.offset_out_of_range
        return error, log

    async def _look_up_again(
        self, wanted: fetch.FetchPartitions, request: Request, committed_only: bool
    ) -> PlannedPartitions:
        """An offset beyond this view may be one that another broker has shown: out of range only
        once the view has caught up, else clients would reset."""
        caught_up = await self._catch_up()
        planned = await self._look_up_all(wanted, request, committed_only)
        for row, part in enumerate(planned):
            if part.is_beyond and not caught_up:
                planned.fail(row, ErrorCode.offset_not_available)
        return planned

    async def _wait(self, message: fetch.FetchRequest, planned: PlannedPartitions) -> None:
        """Until there are `min_bytes`, or an error to tell, or the time is over."""
        wait_s = min(max(message.max_wait_ms, 0), self._limits.wait_ms_max) / 1000
        if wait_s <= 0 or planned.has_errors:
            return
        deadline = asyncio.get_running_loop().time() + wait_s
        wanted = min(max(message.min_bytes, 0), self._limits.bytes_max)
        readable = ReadableBytes()
        if await self._count(enumerate(planned), readable, wanted):
            return
        watch = Watch()
        self._watchers.add(planned.with_logs(), watch)
        try:
            # Count all again: more batches may have arrived before the watch began.
            rows: Rows = enumerate(planned)
            while not await self._enough(planned, rows, readable, wanted):
                left = deadline - asyncio.get_running_loop().time()
                if left <= 0:
                    return
                try:
                    rows = planned.rows(await asyncio.wait_for(watch.grown_rows(), left))
                except TimeoutError:
                    return
        finally:
            self._watchers.remove(planned.with_logs(), watch)

    async def _enough(
        self, planned: PlannedPartitions, rows: Rows, readable: ReadableBytes, wanted: int
    ) -> bool:
        """Whether the bytes suffice after `rows` have grown. At first, only these rows are counted.
        Others may have fewer bytes than before (DeleteRecords), so a sufficient sum is checked by
        counting again."""
        if not await self._count(rows, readable, wanted):
            return False
        if await self._count(planned.rows(readable.take_rows()), readable, wanted):
            return True
        return await self._count(enumerate(planned), readable, wanted)

    async def _count(self, rows: Rows, readable: ReadableBytes, wanted: int) -> bool:
        """Count the bytes of `rows`, and stop at a total of `wanted`. Returns whether the total
        reaches it."""
        slices = Slices(self._turns)
        for row, part in rows:
            if readable.total >= wanted:
                return True
            if part.log is not None and part.end > part.fetch_offset:
                readable.put(row, self._available_bytes(part, part.log, wanted))
            await slices.spend(1)
        return readable.total >= wanted

    def _available_bytes(self, part: PlannedPartition, log: PartitionLog, limit: int) -> int:
        """Counted up to `limit`, about."""
        offset = part.fetch_offset
        found = self._tier.available_bytes(log.partition, log, offset, limit)
        return found + log.available_bytes(offset, limit - found, end=part.end)

    async def _read(
        self, request: Request, message: fetch.FetchRequest, planned: PlannedPartitions
    ) -> list[fetch.FetchPartitionData]:
        """Nothing, and nothing is read, if the client is over its quota (KIP-13)."""
        limits, bytes_max = request.limits, min(max(message.max_bytes, 0), self._limits.bytes_max)
        if limits is not None and limits.fetch_bytes_max is not None:
            bytes_max = min(bytes_max, limits.fetch_bytes_max)
        reads = await self._plan_all(bytes_max, planned)
        promised = sum(read.size for read in reads.values())
        if limits is not None and (wait_ms := limits.fetching(promised)):
            request.connection.mute(wait_ms)
            return []
        if await request.memory.acquire(sum(read.answer_bytes for read in reads.values())):
            reads = await self._plan_all(bytes_max, planned)  # the log has changed
        self._read_ahead.ask()
        found = [NOTHING] * len(planned)
        for row, records in zip(
            reads, await asyncio.gather(*(read.start() for read in reads.values())), strict=True
        ):
            found[row] = records
        if reads and all(records.is_nothing for records in found):
            found = await self._find_one(planned)
        if limits is not None:
            more = sum(records.size_bytes for records in found) - promised
            request.connection.mute(limits.fetched(more))
        return [
            result_of(part, self._offsets_of(part), records)
            for part, records in zip(planned, found, strict=True)
        ]

    async def _plan_all(self, bytes_max: int, planned: PlannedPartitions) -> dict[int, PlannedRead]:
        """The planned reads, by row."""
        left = bytes_max
        reads: dict[int, PlannedRead] = {}
        slices = Slices(self._turns)
        for row, part in enumerate(planned):
            share = min(max(part.max_bytes, 0), left)
            read = self._plan(part, share, len(planned), at_least_one=not reads)
            if read is not None:
                reads[row] = read
                left = max(left - read.size, 0)
            await slices.spend(1)
        return reads

    async def _find_one(self, planned: PlannedPartitions) -> list[FetchedRecords]:
        """What the tier was thought to have was not there: the first partition that has a batch
        answers with it."""
        found: list[FetchedRecords] = []
        for part in planned:
            read = self._plan(
                part, 0, len(planned), at_least_one=not any(records.parts for records in found)
            )
            found.append(NOTHING if read is None else await read.start())
        return found

    def _plan(
        self, part: PlannedPartition, max_bytes: int, partitions: int, *, at_least_one: bool
    ) -> PlannedRead | None:
        """The read of one partition, or None if there is nothing to read. `partitions` is the
        number of partitions in the request."""
        log, offset = part.log, part.fetch_offset
        if part.error is not ErrorCode.none or log is None:
            return None
        partition = log.partition
        if self._tier.holds(partition, log, offset):
            size = min(max_bytes, self._available_bytes(part, log, max_bytes))
            size = max(size, int(at_least_one))
            if not size:
                return None
            return PlannedRead(
                size,
                lambda: self._told(
                    self._read_tier(part, log, max_bytes, at_least_one=at_least_one)
                ),
            )
        stretch = log.stretch(offset, max_bytes, at_least_one=at_least_one, end=part.end)
        if stretch.ranges and not self._read_ahead.is_recent(stretch.ranges[0]):
            first = log.ranges(offset, 0, at_least_one=True)[0]
            bounded = self._read_ahead.bounded(first, max_bytes, partitions)
            stretch = log.stretch(offset, bounded, at_least_one=at_least_one, end=part.end)
        ranges, aborted = stretch.ranges, part.aborted_in(offset, stretch)
        self._read_ahead.note(partition, log, offset, ranges)
        if not ranges:
            return None

        async def read() -> FetchedRecords:
            return FetchedRecords(ErrorCode.none, await self._reader.read(ranges), aborted)

        size = sum(stored.length for stored in ranges)
        return PlannedRead(size, lambda: self._told(read()), len(aborted))

    async def _read_tier(
        self, part: PlannedPartition, log: PartitionLog, max_bytes: int, *, at_least_one: bool
    ) -> FetchedRecords:
        """Read the tier and, at its end, the following log segments. Each read holds parts of
        objects that are larger than its result, so the number of concurrent reads is limited."""
        partition = log.partition
        async with self._tier_place():
            found = await self._tier.read(
                partition, log, part.fetch_offset, max_bytes, at_least_one=at_least_one
            )
            parts = own_parts(found.parts)
        if not found.is_through:
            return FetchedRecords(ErrorCode.none, parts)
        offset = found.next_offset
        stretch = log.stretch(
            offset,
            max_bytes - found.size,
            at_least_one=at_least_one and not found.size,
            end=part.end,
        )
        aborted = part.aborted_in(offset, stretch)
        self._read_ahead.note(partition, log, offset, stretch.ranges)
        self._read_ahead.ask()
        parts += await self._reader.read(stretch.ranges)
        return FetchedRecords(ErrorCode.none, parts, aborted)

    @asynccontextmanager
    async def _tier_place(self) -> AsyncIterator[None]:
        """Hold one of `TIER_READS_AT_ONCE` places. Raises `BucketUnavailableError`."""
        limit_ms = self._limits.read_ms_max
        try:
            async with asyncio.timeout(limit_ms / 1000):
                await self._tier_places.acquire()
        except TimeoutError:
            reason = f"no read of old segments finished within {limit_ms} ms"
            raise BucketUnavailableError(reason) from None
        try:
            yield
        finally:
            self._tier_places.release()

    @staticmethod
    async def _told(reading: Awaitable[FetchedRecords]) -> FetchedRecords:
        try:
            found = await reading
        except BucketError as error:  # the reader tells
            return FetchedRecords(kafka_code(error, ApiFamily.READ), [])
        except (CorruptObjectError, InvalidDataError) as error:
            logger.error("a fetch cannot read the bucket: %s", error)
            return FetchedRecords(kafka_code(error, ApiFamily.READ), [])
        return found._replace(parts=own_parts(found.parts))

    def _offsets_of(self, part: PlannedPartition) -> LogOffsets:
        if part.log is None or self._view.log(part.log.partition) is None:
            return LogOffsets(-1, -1, -1)
        return LogOffsets(
            part.log.high_watermark,
            part.log.last_stable_offset,
            self._view.log_start(part.log.partition),
        )
