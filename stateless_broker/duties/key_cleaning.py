"""Key compaction of a partition's tier: a part of the duty of compaction.

`tiered_storage.key_compaction` decides which records stay. The rows are read up to twice: for their
keys, and to be written again. Invariant: the rows that are written replace all rows from the first
one up to the round's end, and a partition whose batches are damaged stays as it was.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass

from bucketlog.log_format.batch import read_header
from bucketlog.log_format.errors import CorruptObjectError
from bucketlog.log_format.model import Buffer, TierObject, TierRow, TopicIdPartition
from bucketlog.metadata.fold import TopicState
from bucketlog.metadata.partition_log import PartitionLog
from bucketlog.metadata.topic_configs import (
    DELETE_RETENTION_MS,
    MAX_COMPACTION_LAG_MS,
    MIN_CLEANABLE_DIRTY_RATIO,
    MIN_COMPACTION_LAG_MS,
)
from bucketlog.metadata.view import View
from bucketlog.stateless_broker.duties.manifests import Manifests
from bucketlog.stateless_broker.duties.rounds import DutyContext
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.bucket import Bucket, Span
from bucketlog.tiered_storage.cleaning_need import CleaningRules, cleanable, needs_cleaning
from bucketlog.tiered_storage.encryption.partition_seals import PartitionSeals
from bucketlog.tiered_storage.key_compaction import Cleaner, CleaningRound, DirtyPart
from bucketlog.tiered_storage.offset_map import SECRET_BYTES, offset_map
from bucketlog.tiered_storage.partition_segment import HEADER, PartitionSegmentWriter
from bucketlog.tiered_storage.tier_writing import TierChange, TierWriter

logger = logging.getLogger(__name__)

PIECE_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class CleaningLimits:
    """Limits of cleaning. `map_bytes_max` bounds the map of keys."""

    map_bytes_max: int
    segment_bytes_target: int


class KeyCleaner:
    """Cleans partitions. `random_bytes` gives secrets. `seals_at` returns the seals of a partition
    of an encrypted topic, None for all others. `spend` is awaited with the number of bytes before
    they are read."""

    def __init__(
        self,
        *,
        bucket: Bucket,
        manifests: Manifests,
        context: DutyContext,
        seals_at: Callable[[TopicIdPartition], PartitionSeals | None],
        spend: Callable[[int], Awaitable[None]],
        random_bytes: Callable[[int], bytes],
        limits: CleaningLimits,
    ) -> None:
        self._bucket = bucket
        self._manifests = manifests
        self._counts = context.counts
        self._topic_defaults = context.topic_defaults
        self._seals_at = seals_at
        self._spend = spend
        self._random_bytes = random_bytes
        self._limits = limits
        self._now_ms = context.now_ms

    async def clean(
        self,
        partition: TopicIdPartition,
        log: PartitionLog,
        view: View,
        topic: TopicState,
        writer: TierWriter,
    ) -> TierChange | None:
        """Do one round if it is due. Returns None if no round is due, or if there is nothing to
        clean yet. Raises `BucketError`, `CorruptObjectError`, `InvalidDataError`."""
        now_ms, log_start = self._now_ms(), view.log_start(partition)
        named = tuple(log.tier.rows)
        rules = self._rules(topic)
        part = cleanable(
            named,
            cleaned_to=log.tier.cleaned_to,
            log_start=log_start,
            last_stable_offset=log.last_stable_offset,
            rules=rules,
            now_ms=now_ms,
        )
        if not needs_cleaning(part, rules):
            return None
        rows = await self._segments(partition, [row for row in named if row.start < part.end])
        offsets = offset_map(self._limits.map_bytes_max, self._random_bytes(SECRET_BYTES))
        seals = self._seals_at(partition)
        dirty = DirtyPart(offsets, part.start, part.end, seals=seals)
        async for piece in self._pieces(partition, rows, part.start):
            if not await asyncio.to_thread(dirty.feed, piece):
                break
        end = await asyncio.to_thread(dirty.finish)
        if end <= part.start:
            return None
        replaced = [row for row in named if row.start < end]
        delete_retention_ms = int(
            self._topic_defaults.effective(topic.configs, DELETE_RETENTION_MS)
        )
        cleaning = CleaningRound(part.start, end, now_ms, delete_retention_ms, log_start)
        cleaner = Cleaner(offsets, cleaning, seals=seals)
        rows = [row for row in rows if row.start < replaced[-1].end]
        added = await self._rewritten(partition, rows, cleaner, writer)
        stats = cleaner.stats
        self._counts.count_cleaned(stats.bytes_read, stats.bytes_kept)
        logger.info(
            "keys of %s-%d are compacted up to offset %d: %d of %d bytes stay",
            topic.name,
            partition.partition,
            end,
            stats.bytes_kept,
            stats.bytes_read,
        )
        within = {(row.start, row.name) for row in rows} - {(r.start, r.name) for r in replaced}
        return TierChange(
            partition,
            replaced[0].start,
            replaced[-1].end,
            tuple(row.name for row in replaced),
            tuple(added),
            tuple(sorted(within)),
            end,
        )

    def _rules(self, topic: TopicState) -> CleaningRules:
        def config(name: str) -> str:
            return self._topic_defaults.effective(topic.configs, name)

        return CleaningRules(
            float(config(MIN_CLEANABLE_DIRTY_RATIO)),
            int(config(MIN_COMPACTION_LAG_MS)),
            int(config(MAX_COMPACTION_LAG_MS)),
        )

    async def _segments(
        self, partition: TopicIdPartition, rows: Sequence[TierRow]
    ) -> list[TierRow]:
        """Partition segments alone: what manifests list is in their place."""
        found: list[TierRow] = []
        for row in rows:
            there = TierObject.of(partition, row)
            found.extend(await self._manifests.listed(there) if row.manifest else (row,))
        return found

    async def _pieces(
        self, partition: TopicIdPartition, rows: Sequence[TierRow], start: int
    ) -> AsyncIterator[Buffer]:
        """The batches of rows that end above `start`."""
        for row in rows:
            end = len(HEADER) + row.batch_bytes
            for at in range(len(HEADER), end, PIECE_BYTES) if row.end > start else ():
                span = Span(at, min(PIECE_BYTES, end - at))
                await self._spend(span.length)
                key = keys.tier_object(TierObject.of(partition, row))
                data = (await self._bucket.get(key, span)).data
                if len(data) != span.length:
                    raise CorruptObjectError(key, at + len(data), f"it ends before byte {end}")
                yield data

    async def _rewritten(
        self,
        partition: TopicIdPartition,
        rows: Sequence[TierRow],
        cleaner: Cleaner,
        writer: TierWriter,
    ) -> list[TierRow]:
        added: list[TierRow] = []
        out = _Output(partition, rows[0].start)

        async def take(batches: Sequence[Buffer]) -> None:
            for batch in batches:
                if out.bytes >= self._limits.segment_bytes_target:
                    added.append(await out.close(out.next_offset, writer))
                out.append(batch)

        async for piece in self._pieces(partition, rows, -1):
            await take(await asyncio.to_thread(cleaner.feed, piece))
        await take(await asyncio.to_thread(cleaner.finish))
        if out.bytes:
            added.append(await out.close(rows[-1].end, writer))
        return added


class _Output:
    """The partition segment that is being filled."""

    def __init__(self, partition: TopicIdPartition, start: int) -> None:
        self._partition = partition
        self._filling = PartitionSegmentWriter(partition, start)

    @property
    def bytes(self) -> int:
        return self._filling.batch_bytes

    @property
    def next_offset(self) -> int:
        return self._filling.next_offset

    def append(self, batch: Buffer) -> None:
        header = read_header(batch)
        self._filling.describe(
            header.base_offset,
            header.next_offset,
            len(batch),
            0 if header.is_control else header.record_count,
            header.max_timestamp,
        )
        self._filling.append(bytes(batch))

    async def close(self, end: int, writer: TierWriter) -> TierRow:
        row = await writer.write(self._filling, end)
        self._filling = PartitionSegmentWriter(self._partition, end)
        return row
