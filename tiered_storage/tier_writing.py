"""Execution of plans for tiers: reads, writes, and the changes for the entry.

Invariants: objects are only created, under the job's own names. Nothing is read faster than the
limiter allows. What was read is checked before it is written again. The caller commits the
`TierChange`s: until then nobody reads what was written, and a job that ends anywhere leaves objects
that no tier has.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing
from typing import NamedTuple

from bucketlog.log_format.errors import BucketRefusedError, CorruptObjectError, ObjectNotFoundError
from bucketlog.log_format.model import (
    Buffer,
    Ticket,
    TierObject,
    TierRow,
    TopicIdPartition,
    WallClock,
)
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.bucket import Bucket, Span
from bucketlog.tiered_storage.manifest import (
    MANIFEST_SPAN,
    decode_manifest,
    encode_manifest,
    read_bytes,
)
from bucketlog.tiered_storage.partition_segment import PartitionSegmentWriter
from bucketlog.tiered_storage.segment import body_crc32c
from bucketlog.tiered_storage.splitting import Split, SplitPartition, StoredSegment, join_segments
from bucketlog.tiered_storage.tier_plan import ManifestPlan, ManifestTrim, SplitPlan


class TierChange(NamedTuple):
    """A partition's part of a job, with the fields of a swap in docs/format/segment.md, fact 7.
    `removed` are segments that a replaced manifest listed and nothing lists any more."""

    partition: TopicIdPartition
    start: int
    end: int
    replaced: tuple[str, ...]
    added: tuple[TierRow, ...]
    removed: tuple[tuple[int, str], ...] = ()
    cleaned_to: int = -1


class TierWriter:
    """The writer of one job's objects. `bucket` is lent, and retries by itself. `planned` is the
    highest ticket that was visible. `spend` is awaited with the number of bytes before they are
    read. `new_id` returns 16 hexadecimal digits, never the same twice. Methods raise the bucket's
    errors, and `CorruptObjectError` or `InvalidDataError` if what was read is not what was
    planned."""

    def __init__(
        self,
        *,
        bucket: Bucket,
        planned: Ticket,
        spend: Callable[[int], Awaitable[None]],
        new_id: Callable[[], str],
        now_ms: WallClock,
        segment_bytes_target: int,
        requests_in_flight: int,
    ) -> None:
        self.planned = planned
        self._bucket = bucket
        self._spend = spend
        self._new_id = new_id
        self._now_ms = now_ms
        self._segment_bytes_target = segment_bytes_target
        self._requests_in_flight = requests_in_flight

    def _new_name(self) -> str:
        return keys.tier_name(self.planned, self._new_id())

    async def split(self, plan: SplitPlan) -> list[TierChange]:
        split = Split(
            plan,
            new_name=self._new_name,
            segment_bytes_target=self._segment_bytes_target,
            written_ms=self._now_ms(),
        )
        wanted = [(keys.segment(each.segment), each.batch_bytes) for each in plan.segments]
        async with aclosing(self._read(wanted)) as objects:
            segments = iter(plan.segments)
            async for data in objects:
                for _ in split.take(next(segments).segment, data):
                    await asyncio.sleep(0)
        finished = split.finish()
        try:
            async with asyncio.TaskGroup() as group:
                writing = [
                    group.create_task(self._write_split(finished))
                    for _ in range(self._requests_in_flight)
                ]
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from failed
        return sorted(change for task in writing for change in task.result())

    async def _write_split(self, finished: Iterator[SplitPartition]) -> list[TierChange]:
        """Write the parts that others leave."""
        changes = []
        for part in finished:
            for segment in part.segments:
                await self._create(segment.there, segment.parts)
            rows = tuple(segment.row for segment in part.segments)
            changes.append(TierChange(part.partition, part.start, part.end, (), rows))
        return changes

    async def join(self, partition: TopicIdPartition, rows: Sequence[TierRow]) -> TierChange:
        """Neighbours become one."""
        places = [TierObject.of(partition, row) for row in rows]
        wanted = [
            (keys.tier_object(there), row.size_bytes)
            for there, row in zip(places, rows, strict=True)
        ]
        async with aclosing(self._read(wanted)) as objects:
            contents = [data async for data in objects]
        stored = list(map(StoredSegment, places, rows, contents))
        finished = await asyncio.to_thread(join_segments, stored, self._new_name())
        await self._create(finished.there, finished.parts)
        return _replacing(partition, rows, finished.row)

    async def write(self, filled: PartitionSegmentWriter, end: int) -> TierRow:
        """Write a partition segment that the caller has filled, up to offset `end`."""
        finished = filled.finish(end, self._new_name(), self._now_ms())
        await self._create(finished.there, finished.parts)
        return finished.row

    async def list_rows(self, partition: TopicIdPartition, plan: ManifestPlan) -> TierChange:
        """Write a manifest for old rows."""
        listed: list[TierRow] = []
        if plan.joined is not None:
            listed = await self.read_manifest(partition, plan.joined)
        row = await self._create_manifest(partition, [*listed, *plan.rows])
        return _replacing(partition, plan.replaced, row)

    async def trim(
        self, partition: TopicIdPartition, manifest: TierRow, trim: ManifestTrim
    ) -> TierChange:
        """Write a manifest without the rows below the log start."""
        row = await self._create_manifest(partition, trim.kept)
        removed = tuple((each.start, each.name) for each in trim.removed)
        return _replacing(partition, [manifest], row)._replace(removed=removed)

    async def read_manifest(self, partition: TopicIdPartition, row: TierRow) -> list[TierRow]:
        there = TierObject.of(partition, row)
        await self._spend(read_bytes(row))
        return decode_manifest(there, await self._get(keys.tier_object(there), MANIFEST_SPAN))

    async def _create_manifest(
        self, partition: TopicIdPartition, rows: Sequence[TierRow]
    ) -> TierRow:
        manifest = encode_manifest(partition, rows, self._new_name())
        await self._create(manifest.there, [manifest.data])
        return manifest.row

    async def _read(self, wanted: Sequence[tuple[str, int]]) -> AsyncGenerator[Buffer, None]:
        """Return whole objects in that order. Some are read ahead."""
        left = iter(wanted)
        ahead: list[asyncio.Task[Buffer]] = []
        try:
            while True:
                while len(ahead) < self._requests_in_flight:
                    more = next(left, None)
                    if more is None:
                        break
                    await self._spend(more[1])
                    ahead.append(asyncio.create_task(self._get(more[0])))
                if not ahead:
                    return
                yield await ahead.pop(0)
        finally:
            for task in ahead:
                task.cancel()
            await asyncio.gather(*ahead, return_exceptions=True)

    async def _get(self, key: str, span: Span | None = None) -> Buffer:
        try:
            return (await self._bucket.get(key, span)).data
        except ObjectNotFoundError as error:
            raise CorruptObjectError(
                key, 0, "it is gone", remedy="the job was planned on what has changed: plan again"
            ) from error

    async def _create(self, there: TierObject, parts: Sequence[Buffer]) -> None:
        key = keys.tier_object(there)
        if not await self._bucket.create(key, parts, crc32c=body_crc32c(parts)):
            raise BucketRefusedError(
                f"there is an object {key!r} already", remedy="names of jobs must be random"
            )


def _replacing(partition: TopicIdPartition, rows: Sequence[TierRow], row: TierRow) -> TierChange:
    return TierChange(
        partition, rows[0].start, rows[-1].end, tuple(each.name for each in rows), (row,)
    )
