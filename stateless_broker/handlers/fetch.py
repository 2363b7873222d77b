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
from bucketlog.log_format.wire import fetch
from bucketlog.log_format.wire.error_codes import ApiFamily, kafka_code
from bucketlog.metadata.fold import TopicState
from bucketlog.metadata.partition_log import PartitionLog
from bucketlog.metadata.view import View
from bucketlog.stateless_broker.fetch.feed import Watchers
from bucketlog.stateless_broker.fetch.read_ahead import ReadAhead
from bucketlog.stateless_broker.fetch.reading import RangeReader
from bucketlog.stateless_broker.fetch.tier_reading import TierReader
from bucketlog.stateless_broker.membership import Membership
from bucketlog.stateless_broker.network.answer_memory import AnswerLease
from bucketlog.stateless_broker.network.dispatch import Request
from bucketlog.stateless_broker.network.turns import Slices, Turns

logger = logging.getLogger(__name__)

TIER_READS_AT_ONCE = 8
"""The limit of concurrent partition reads from the tier, over all fetches."""


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """`read_ms_max` bounds a partition's wait for a place among tier reads, and for the bucket."""

    bytes_max: int
    wait_ms_max: int
    read_ms_max: int


@dataclass(slots=True)
class _PlannedPartition:
    """One partition of a request: an error, or what there is to read."""

    wanted: fetch.FetchPartition
    error: ErrorCode
    partition: TopicIdPartition | None
    log: PartitionLog | None


class BatchSources(NamedTuple):
    """The sources of batches: recent and older log segments, read-ahead data, the tier."""

    reader: RangeReader
    read_ahead: ReadAhead
    tier: TierReader


_OVERTAKEN = (ErrorCode.none, ErrorCode.kafka_storage_error)
_Records: TypeAlias = tuple[ErrorCode, list[Buffer]]
_NOTHING: _Records = (ErrorCode.none, [])


class _PlannedRead(NamedTuple):
    """The size in bytes (for the tier, an upper bound), and the function that reads."""

    size: int
    start: Callable[[], Awaitable[_Records]]


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
        named = {(each.topic, each.topic_id, each.partition): each for each in message.partitions}
        planned = await self._look_up_all(named.values(), version)
        if any(_beyond(part) for part in planned):
            planned = await self._look_up_again(planned, version)
        await self._wait(message, planned)
        results = await self._read(request.memory, message, planned)
        return fetch.write_response(version, ErrorCode.none, results)

    async def _look_up_all(
        self, wanted: Iterable[fetch.FetchPartition], version: int
    ) -> list[_PlannedPartition]:
        planned: list[_PlannedPartition] = []
        slices = Slices(self._turns)
        for each in wanted:
            planned.append(self._look_up(each, version))
            await slices.spend(1)
        return planned

    def _look_up(self, wanted: fetch.FetchPartition, version: int) -> _PlannedPartition:
        topic: TopicState | None
        if version >= fetch.TOPIC_IDS_FROM:
            topic = self._view.topic_by_id(wanted.topic_id) if wanted.topic_id else None
            if topic is None:
                return _PlannedPartition(wanted, ErrorCode.unknown_topic_id, None, None)
        else:
            topic = self._view.topic(wanted.topic)
        partition = TopicIdPartition(topic.topic_id, wanted.partition) if topic else None
        log = self._view.log(partition) if partition else None
        if partition is None or log is None:
            return _PlannedPartition(wanted, ErrorCode.unknown_topic_or_partition, None, None)
        error = ErrorCode.none
        if self._membership.has_handed_over:
            error = ErrorCode.not_leader_or_follower
        elif wanted.leader_epoch > LEADER_EPOCH:
            error = ErrorCode.unknown_leader_epoch
        elif not self._view.log_start(partition) <= wanted.fetch_offset <= log.high_watermark:
            error = ErrorCode.offset_out_of_range
        return _PlannedPartition(wanted, error, partition, log)

    async def _look_up_again(
        self, planned: list[_PlannedPartition], version: int
    ) -> list[_PlannedPartition]:
        """An offset beyond this view may be one that another broker has shown: out of range only
        once the view has caught up, else clients would reset."""
        caught_up = await self._catch_up()
        planned = await self._look_up_all([part.wanted for part in planned], version)
        for part in planned:
            if _beyond(part) and not caught_up:
                part.error = ErrorCode.offset_not_available
        return planned

    async def _wait(self, message: fetch.FetchRequest, planned: list[_PlannedPartition]) -> None:
        """Until there are `min_bytes`, or an error to tell, or the time is over."""
        wait_s = min(max(message.max_wait_ms, 0), self._limits.wait_ms_max) / 1000
        if wait_s <= 0 or any(part.error is not ErrorCode.none for part in planned):
            return
        partitions = [part.partition for part in planned if part.partition is not None]
        deadline = asyncio.get_running_loop().time() + wait_s
        grown = asyncio.Event()
        if await self._enough(message, planned):
            return
        self._watchers.add(partitions, grown)
        try:
            while True:
                grown.clear()  # before counting: more batches may arrive meanwhile
                if await self._enough(message, planned):
                    return
                left = deadline - asyncio.get_running_loop().time()
                if left <= 0:
                    return
                try:
                    await asyncio.wait_for(grown.wait(), left)
                except TimeoutError:
                    return
        finally:
            self._watchers.remove(partitions, grown)

    async def _enough(self, message: fetch.FetchRequest, planned: list[_PlannedPartition]) -> bool:
        wanted = min(max(message.min_bytes, 0), self._limits.bytes_max)
        found = 0
        slices = Slices(self._turns)
        for part in planned:
            if found >= wanted:
                return True
            if part.log is not None and part.log.high_watermark > part.wanted.fetch_offset:
                found += self._available_bytes(part, part.log, wanted - found)
            await slices.spend(1)
        return found >= wanted

    def _available_bytes(self, part: _PlannedPartition, log: PartitionLog, limit: int) -> int:
        """Counted up to `limit`, about."""
        offset, found = part.wanted.fetch_offset, 0
        if part.partition is not None:
            found = self._tier.available_bytes(part.partition, log, offset, limit)
        return found + log.available_bytes(offset, limit - found)

    async def _read(
        self,
        memory: AnswerLease,
        message: fetch.FetchRequest,
        planned: list[_PlannedPartition],
    ) -> list[fetch.FetchPartitionData]:
        reads = await self._plan_all(message, planned)
        if await memory.acquire(sum(read.size for read in reads.values())):
            reads = await self._plan_all(message, planned)  # the log has changed
        self._read_ahead.ask()
        found = [_NOTHING] * len(planned)
        for row, records in zip(
            reads, await asyncio.gather(*(read.start() for read in reads.values())), strict=True
        ):
            found[row] = records
        if reads and all(records == _NOTHING for records in found):
            found = await self._find_one(planned)
        return [
            _result(part, error, self._tail(part), records)
            for part, (error, records) in zip(planned, found, strict=True)
        ]

    async def _plan_all(
        self, message: fetch.FetchRequest, planned: list[_PlannedPartition]
    ) -> dict[int, _PlannedRead]:
        """The planned reads, by row."""
        left = min(max(message.max_bytes, 0), self._limits.bytes_max)
        reads: dict[int, _PlannedRead] = {}
        slices = Slices(self._turns)
        for row, part in enumerate(planned):
            share = min(max(part.wanted.max_bytes, 0), left)
            read = self._plan(part, share, len(planned), at_least_one=not reads)
            if read is not None:
                reads[row] = read
                left = max(left - read.size, 0)
            await slices.spend(1)
        return reads

    async def _find_one(self, planned: list[_PlannedPartition]) -> list[_Records]:
        """What the tier was thought to have was not there: the first partition that has a batch
        answers with it."""
        found: list[_Records] = []
        for part in planned:
            read = self._plan(
                part, 0, len(planned), at_least_one=not any(records for _, records in found)
            )
            found.append(_NOTHING if read is None else await read.start())
        return found

    def _plan(
        self, part: _PlannedPartition, max_bytes: int, partitions: int, *, at_least_one: bool
    ) -> _PlannedRead | None:
        """The read of one partition, or None if there is nothing to read. `partitions` is the
        number of partitions in the request."""
        log, offset, partition = part.log, part.wanted.fetch_offset, part.partition
        if part.error is not ErrorCode.none or partition is None or log is None:
            return None
        if self._tier.holds(partition, log, offset):
            size = min(max_bytes, self._available_bytes(part, log, max_bytes))
            size = max(size, int(at_least_one))
            if not size:
                return None
            return _PlannedRead(
                size,
                lambda: self._told(
                    self._read_tier(partition, log, offset, max_bytes, at_least_one=at_least_one)
                ),
            )
        ranges = log.ranges(offset, max_bytes, at_least_one=at_least_one)
        if ranges and not self._read_ahead.is_recent(ranges[0]):
            first = log.ranges(offset, 0, at_least_one=True)[0]
            bounded = self._read_ahead.bounded(first, max_bytes, partitions)
            ranges = log.ranges(offset, bounded, at_least_one=at_least_one)
        self._read_ahead.note(partition, log, offset, ranges)
        if not ranges:
            return None
        return _PlannedRead(
            sum(stored.length for stored in ranges), lambda: self._told(self._reader.read(ranges))
        )

    async def _read_tier(
        self,
        partition: TopicIdPartition,
        log: PartitionLog,
        offset: int,
        max_bytes: int,
        *,
        at_least_one: bool,
    ) -> list[Buffer]:
        """Read the tier and, at its end, the following log segments. Each read holds parts of
        objects that are larger than its result, so the number of concurrent reads is limited."""
        async with self._tier_place():
            found = await self._tier.read(
                partition, log, offset, max_bytes, at_least_one=at_least_one
            )
            parts = _own(found.parts)
        if not found.is_through:
            return parts
        offset = found.next_offset
        ranges = log.ranges(
            offset, max_bytes - found.size, at_least_one=at_least_one and not found.size
        )
        self._read_ahead.note(partition, log, offset, ranges)
        self._read_ahead.ask()
        return parts + await self._reader.read(ranges)

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
    async def _told(reading: Awaitable[list[Buffer]]) -> _Records:
        try:
            return ErrorCode.none, _own(await reading)
        except BucketError as error:  # the reader tells
            return kafka_code(error, ApiFamily.READ), []
        except (CorruptObjectError, InvalidDataError) as error:
            logger.error("a fetch cannot read the bucket: %s", error)
            return kafka_code(error, ApiFamily.READ), []

    def _tail(self, part: _PlannedPartition) -> tuple[int, int]:
        """High watermark and log start, as they are once the records are read."""
        if part.log is None or part.partition is None or self._view.log(part.partition) is None:
            return -1, -1
        return part.log.high_watermark, self._view.log_start(part.partition)


def _own(parts: list[Buffer]) -> list[Buffer]:
    """Copy small parts of large objects, so that the objects can be freed. A response then holds at
    most twice its own size in memory."""
    return [
        bytes(part)
        if isinstance(part, memoryview) and 2 * part.nbytes < memoryview(part.obj).nbytes
        else part
        for part in parts
    ]


def _beyond(part: _PlannedPartition) -> bool:
    return part.log is not None and part.wanted.fetch_offset > part.log.high_watermark


def _result(
    part: _PlannedPartition, error: ErrorCode, tail: tuple[int, int], records: list[Buffer]
) -> fetch.FetchPartitionData:
    high_watermark, log_start = tail
    failed = part.error if part.error is not ErrorCode.none else error
    if failed is ErrorCode.none and high_watermark < 0:
        failed = ErrorCode.unknown_topic_or_partition  # deleted while the fetch waited
    elif failed in _OVERTAKEN and part.wanted.fetch_offset < log_start:
        failed = ErrorCode.offset_out_of_range  # the log start came by while the fetch waited
    return fetch.FetchPartitionData(
        part.wanted.topic,
        part.wanted.topic_id,
        part.wanted.partition,
        failed,
        high_watermark,
        high_watermark,
        log_start,
        records if failed is ErrorCode.none else [],
    )
