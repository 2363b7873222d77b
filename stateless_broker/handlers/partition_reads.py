"""Reading the planned partitions of a Fetch: from log segments, read-ahead data and the tier.

Invariants: nothing is read before the response's memory is granted; a response has no records of a
partition whose log start has moved beyond the requested offset. Source: KIP-74 (response limits),
Kafka's ReplicaManager.readFromLog.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import NamedTuple

from kio.schema.errors import ErrorCode

from bucketlog.log_format.encryption_errors import (
    BrokenSealError,
    KeyRefusedError,
    KeyUnavailableError,
)
from bucketlog.log_format.errors import (
    BucketError,
    BucketUnavailableError,
    CorruptObjectError,
    InvalidDataError,
)
from bucketlog.log_format.model import Buffer, StoredObject, TopicIdPartition
from bucketlog.log_format.wire import fetch
from bucketlog.log_format.wire.error_codes import ApiFamily, kafka_code
from bucketlog.metadata.partition_log import PartitionLog
from bucketlog.metadata.view import View
from bucketlog.stateless_broker.encryption.topic_keys import TopicKeys
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
    result_of,
)
from bucketlog.stateless_broker.handlers.owned_parts import own_parts, own_records, taken_bytes
from bucketlog.stateless_broker.network.answer_memory import SMALL_ANSWER_BYTES
from bucketlog.stateless_broker.network.apis import Request
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


class BatchSources(NamedTuple):
    """The sources of batches: recent and older log segments, read-ahead data, the tier."""

    reader: RangeReader
    read_ahead: ReadAhead
    tier: TierReader


class PartitionReads:
    """Reads partitions for Fetch and ShareFetch requests."""

    def __init__(
        self,
        *,
        view: View,
        sources: BatchSources,
        keys: TopicKeys,
        limits: FetchLimits,
        turns: Turns,
    ) -> None:
        self._view = view
        self._reader, self._read_ahead, self._tier = sources
        self._keys = keys
        self._limits = limits
        self._turns = turns
        self._tier_places = asyncio.Semaphore(TIER_READS_AT_ONCE)

    def is_deleted(self, log: PartitionLog) -> bool:
        """Return whether the partition was deleted since `log` was looked up."""
        return self._view.has_dropped(log)

    def available_bytes(self, part: PlannedPartition, log: PartitionLog, limit: int) -> int:
        """The bytes that the partition could give now. Counted up to `limit`, about."""
        offset = part.fetch_offset
        found = self._tier.available_bytes(log.partition, log, offset, limit)
        return found + log.available_bytes(offset, limit - found, end=part.end)

    async def read(
        self, request: Request, message: fetch.FetchRequest, planned: PlannedPartitions
    ) -> list[fetch.FetchPartitionData] | None:
        """The results, in the order of the plan. None, and nothing is read, if the client is over
        its quota (KIP-13)."""
        limits, bytes_max = request.limits, min(max(message.max_bytes, 0), self._limits.bytes_max)
        if limits is not None and limits.fetch_bytes_max is not None:
            bytes_max = min(bytes_max, limits.fetch_bytes_max)
        reads = await self._plan_all(bytes_max, planned)
        promised = sum(read.size for read in reads.values())
        if limits is not None and (wait_ms := limits.fetching(promised)):
            request.connection.mute(wait_ms)
            return None
        answer_bytes = planned.answer_bytes
        if not reads:
            if answer_bytes >= SMALL_ANSWER_BYTES:
                await request.memory.acquire(answer_bytes)
            return [result_of(part, self._offsets_of(part), NOTHING) for part in planned]
        answer_bytes += sum(read.answer_bytes for read in reads.values())
        if await request.memory.acquire(answer_bytes):
            reads = await self._plan_all(bytes_max, planned)  # the log has changed
        self._read_ahead.ask()
        found = [NOTHING] * len(planned)
        taken = taken_bytes(reads.values())
        records = own_records(await asyncio.gather(*(read.start(taken) for read in reads.values())))
        for row, each in zip(reads, records, strict=True):
            found[row] = each
        if all(records.is_nothing for records in found):
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
        """Read one batch: the next one of the first partition that has any. This is needed if a
        tier lacked the batches that were planned."""
        found: list[FetchedRecords] = []
        for part in planned:
            read = self._plan(
                part, 0, len(planned), at_least_one=not any(records.parts for records in found)
            )
            found.append(NOTHING if read is None else await read.start({}))
        return found

    def _plan(
        self, part: PlannedPartition, max_bytes: int, partitions: int, *, at_least_one: bool
    ) -> PlannedRead | None:
        """The read of one partition, or None if there is nothing to read. `partitions` is the
        number of partitions in the request."""
        log, offset = part.log, part.fetch_offset
        if part.error is not ErrorCode.none or log is None or part.end <= offset:
            return None
        partition = log.partition
        if self._tier.holds(partition, log, offset):
            size = min(max_bytes, self.available_bytes(part, log, max_bytes))
            size = max(size, int(at_least_one))
            if not size:
                return None
            return PlannedRead(
                size,
                lambda _: self._told(
                    partition, self._read_tier(part, log, max_bytes, at_least_one=at_least_one)
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

        async def read(taken: Mapping[StoredObject, int]) -> FetchedRecords:
            found = await self._reader.read_each(ranges)
            parts: list[Buffer] = []
            for wanted, each in zip(ranges, found, strict=False):
                parts += own_parts(each, taken.get(wanted.object, 0))
            return FetchedRecords(ErrorCode.none, parts, aborted)

        size = sum(stored.length for stored in ranges)
        return PlannedRead(
            size, lambda taken: self._told(partition, read(taken)), len(aborted), ranges
        )

    async def read_one(
        self, log: PartitionLog, offset: int, max_bytes: int, *, committed_only: bool
    ) -> FetchedRecords:
        """Read a partition outside of a Fetch: one batch at least, if there is one."""
        number, none = log.partition.partition, ErrorCode.none
        part = PlannedPartition("", None, number, offset, max_bytes, none, log, committed_only)
        read = self._plan(part, max_bytes, 1, at_least_one=True)
        self._read_ahead.ask()
        return NOTHING if read is None else await read.start({})

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
        parts += own_parts(await self._reader.read(stretch.ranges))
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

    async def _told(
        self, partition: TopicIdPartition, reading: Awaitable[FetchedRecords]
    ) -> FetchedRecords:
        try:
            found = await reading
            if self._keys.seals_of(partition.topic_id) is not None:
                parts = await self._keys.opened(partition, found.parts)
                return found._replace(parts=parts)
        except (KeyRefusedError, KeyUnavailableError, BrokenSealError) as error:
            return FetchedRecords(kafka_code(error, ApiFamily.READ), [])  # the keys tell
        except BucketError as error:  # the reader tells
            return FetchedRecords(kafka_code(error, ApiFamily.READ), [])
        except (CorruptObjectError, InvalidDataError) as error:
            logger.error("a fetch cannot read the bucket: %s", error)
            return FetchedRecords(kafka_code(error, ApiFamily.READ), [])
        return found

    def _offsets_of(self, part: PlannedPartition) -> LogOffsets:
        if part.log is None or self._view.log(part.log.partition) is None:
            return LogOffsets(-1, -1, -1)
        return LogOffsets(
            part.log.high_watermark,
            part.log.last_stable_offset,
            self._view.log_start(part.log.partition),
        )
