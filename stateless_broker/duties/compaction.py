"""The duty of compaction: log segments into partition segments, small ones into large ones, old
rows into manifests, keys of compacted topics; one broker at a time.

What is worth it is decided in `tiered_storage.tier_plan` and `tiered_storage.cleaning_need`; it is
carried out by `tiered_storage.tier_writing` and `stateless_broker.duties.key_cleaning`, and counts
by an entry of the log alone. Invariant: what was written once is never offered twice: a job that
fails is planned anew, under new names. So two brokers may do this at once, and one may die
anywhere.
"""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from uuid import UUID

from bucketlog.model import Ticket, TierObject, TopicPartition, WallClock
from metadata.facts import SwapOf, TierRowOf, TiersSwapped
from metadata.fold import Topic
from metadata.partition_log import PartitionLog
from metadata.sequencer.requests import WantedTierEntry
from metadata.topic_configs import has_policy
from metadata.view import View
from stateless_broker.duties.key_cleaning import KeyCleaning
from stateless_broker.duties.manifests import Manifests
from stateless_broker.duties.pace import Pace
from stateless_broker.duties.partitions import each_partition
from stateless_broker.duties.rounds import CATCH_UP_MS, run_rounds
from stateless_broker.duties.upkeep import UpkeepCounts
from stateless_broker.health import Health
from stateless_broker.tier_committer import TierCommitter
from tiered_storage.bucket import Bucket
from tiered_storage.tier_plan import (
    CompactionSettings,
    plan_manifest,
    plan_merge,
    plan_split,
    plan_trim,
)
from tiered_storage.tier_writing import TierChange, TierWriter

logger = logging.getLogger(__name__)

DUTY = "compaction"
SWAPS_AN_ENTRY = 500


@dataclass(frozen=True, slots=True)
class CompactionLimits:
    """`interval_ms`: how often this broker looks whether there is something to do."""

    interval_ms: int
    plan: CompactionSettings
    requests_in_flight: int


class Compactor:
    """`catch_up` waits, for so many ms, until the view shows all that was visible before;
    `newest_ticket` is the highest that it shows. `new_uuid` gives what names are made of."""

    def __init__(
        self,
        *,
        bucket: Bucket,
        view: View,
        manifests: Manifests,
        cleaning: KeyCleaning,
        committer: TierCommitter,
        newest_ticket: Callable[[], Ticket],
        catch_up: Callable[[int], Awaitable[bool]],
        place_in_line: Callable[[str], int],
        health: Health,
        counts: UpkeepCounts,
        pace: Pace,
        limits: CompactionLimits,
        now_ms: WallClock,
        new_uuid: Callable[[], UUID],
    ) -> None:
        self._bucket = bucket
        self._view = view
        self._manifests = manifests
        self._cleaning = cleaning
        self._committer = committer
        self._newest_ticket = newest_ticket
        self._catch_up = catch_up
        self._place_in_line = place_in_line
        self._health = health
        self._counts = counts
        self._pace = pace
        self._limits = limits
        self._now_ms = now_ms
        self._new_uuid = new_uuid

    async def run(self) -> None:
        """For the epoch's life."""
        await run_rounds(
            DUTY,
            self.round,
            interval_ms=self._limits.interval_ms,
            place_in_line=self._place_in_line,
            health=self._health,
        )

    async def round(self) -> int:
        """Do what is due; says how many swaps were offered. Raises `BucketError`, `SequencerError`,
        `CorruptObjectError`, `InvalidDataError`."""
        if not await self._catch_up(CATCH_UP_MS):
            return 0
        offered = await self._split()
        for work in (self._merge, self._clean, self._list, self._trim):
            offered += await work()
        return offered

    def _writer(self) -> TierWriter:
        return TierWriter(
            bucket=self._bucket,
            planned=self._newest_ticket(),
            spend=self._pace.spend,
            new_id=lambda: self._new_uuid().hex[:16],
            now_ms=self._now_ms,
            segment_bytes_target=self._limits.plan.segment_bytes_target,
            requests_in_flight=self._limits.requests_in_flight,
        )

    async def _split(self) -> int:
        offered = 0
        while True:
            writer = self._writer()
            logs = {partition: log.batches for partition, log in self._view.logs().items()}
            plan = plan_split(
                self._view.waiting, logs, settings=self._limits.plan, now_ms=self._now_ms()
            )
            if plan is None:
                return offered
            changes = await writer.split(plan)
            await self._commit(writer, changes)
            size = sum(each.batch_bytes for each in plan.segments)
            self._counts.count_split(len(plan.segments), size)
            logger.info(
                "%d log segments, %d bytes, are split into those of %d partitions",
                len(plan.segments),
                size,
                len(changes),
            )
            offered += len(changes)

    async def _merge(self) -> int:
        """Of compacted topics, what is clean and what is dirty stay apart."""
        writer = self._writer()
        changes = []
        async for partition, log, topic in self._partitions():
            tier = log.tier
            clean = (
                sum(row.end <= tier.cleaned_to for row in tier.rows)
                if has_policy(topic.configs, "compact")
                else 0
            )
            for rows in (tier.rows[:clean], tier.rows[clean:]):
                for group in plan_merge(
                    rows, quiet=not log.batches.segments, settings=self._limits.plan
                ):
                    changes.append(await writer.join(partition, group))
                    self._counts.count_merge(len(group), changes[-1].added[0].batch_bytes)
        return await self._commit(writer, changes)

    async def _clean(self) -> int:
        writer = self._writer()
        changes = []
        async for partition, log, topic in self._partitions():
            if has_policy(topic.configs, "compact"):
                change = await self._cleaning.clean(partition, log, self._view, topic, writer)
                if change is not None:
                    changes.append(change)
        return await self._commit(writer, changes)

    async def _list(self) -> int:
        writer = self._writer()
        changes = []
        async for partition, log, topic in self._partitions():
            plan = plan_manifest(log.tier.rows, settings=self._limits.plan)
            if plan is not None and not has_policy(topic.configs, "compact"):
                changes.append(await writer.list_rows(partition, plan))
        return await self._commit(writer, changes)

    async def _trim(self) -> int:
        writer = self._writer()
        changes = []
        async for partition, log, _ in self._partitions():
            first = next(iter(log.tier.rows), None)
            start = self._view.log_start(partition)
            if first is not None and first.manifest and first.start < start:
                listed = await self._manifests.listed(TierObject.of(partition, first))
                trim = plan_trim(listed, start)
                if trim is not None:
                    changes.append(await writer.trim(partition, first, trim))
        return await self._commit(writer, changes)

    def _partitions(self) -> AsyncIterator[tuple[TopicPartition, PartitionLog, Topic]]:
        return each_partition(self._view, self._view.topics())

    async def _commit(self, writer: TierWriter, changes: Sequence[TierChange]) -> int:
        for some in _chunks(changes):
            fact = TiersSwapped(planned=tuple(writer.planned), swaps=tuple(map(_swap, some)))
            await self._committer.commit_fact(fact, WantedTierEntry())
        return len(changes)


def _chunks(changes: Sequence[TierChange]) -> Iterator[Sequence[TierChange]]:
    for first in range(0, len(changes), SWAPS_AN_ENTRY):
        yield changes[first : first + SWAPS_AN_ENTRY]


def _swap(change: TierChange) -> SwapOf:
    return SwapOf(
        UUID(bytes=change.partition.topic_id),
        change.partition.partition,
        change.start,
        change.end,
        change.replaced,
        tuple(TierRowOf(*row) for row in change.added),
        change.removed,
        change.cleaned_to,
    )
