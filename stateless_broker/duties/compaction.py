"""The duty of compaction: log segments into partition segments, small ones into large ones, old
rows into manifests, keys of compacted topics; one broker at a time.

What is worth it is decided in `tiered_storage.tier_plan` and `tiered_storage.cleaning_need`; it is
carried out by `tiered_storage.tier_writing` and `stateless_broker.duties.key_cleaning`, and counts
by an entry of the log alone. Invariants: what was written once is never offered twice: a job that
fails is planned anew, under new names. So two brokers may do this at once, and one may die
anywhere. What is damaged holds up its own partition, and of a log segment the splitting, alone.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple
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
from stateless_broker.duties.set_aside import SetAside
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
SPLIT = "split"
SWAPS_AN_ENTRY = 500


class _Of(NamedTuple):
    """What a job is about."""

    partition: TopicPartition
    log: PartitionLog
    topic: Topic


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
        self._aside = SetAside(lambda: asyncio.get_running_loop().time())

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
        offered = 0
        for work in (self._split, self._merge, self._clean, self._list, self._trim):
            offered += await work()
        there = self._view.logs().keys()
        self._aside.forget(lambda work: isinstance(work, tuple) and work[1] not in there)
        self._aside.tell()
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
        while not self._aside.waits(SPLIT):
            window = 0
            with self._aside.damage_of(SPLIT):
                window = await self._split_window()
            if not window:
                break
            offered += window
        return offered

    async def _split_window(self) -> int:
        """0: none is due."""
        writer = self._writer()
        logs = {partition: log.batches for partition, log in self._view.logs().items()}
        plan = plan_split(
            self._view.waiting, logs, settings=self._limits.plan, now_ms=self._now_ms()
        )
        if plan is None:
            return 0
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
        return len(changes)

    async def _merge(self) -> int:
        """Of compacted topics, what is clean and what is dirty stay apart."""

        async def merge(writer: TierWriter, of: _Of) -> AsyncIterator[TierChange]:
            tier = of.log.tier
            clean = (
                sum(row.end <= tier.cleaned_to for row in tier.rows)
                if has_policy(of.topic.configs, "compact")
                else 0
            )
            for rows in (tier.rows[:clean], tier.rows[clean:]):
                for group in plan_merge(
                    rows, quiet=not of.log.batches.segments, settings=self._limits.plan
                ):
                    change = await writer.join(of.partition, group)
                    self._counts.count_merge(len(group), change.added[0].batch_bytes)
                    yield change

        return await self._rewrite("merge", merge)

    async def _clean(self) -> int:
        async def clean(writer: TierWriter, of: _Of) -> AsyncIterator[TierChange]:
            if has_policy(of.topic.configs, "compact"):
                change = await self._cleaning.clean(
                    of.partition, of.log, self._view, of.topic, writer
                )
                if change is not None:
                    yield change

        return await self._rewrite("clean", clean)

    async def _list(self) -> int:
        async def list_rows(writer: TierWriter, of: _Of) -> AsyncIterator[TierChange]:
            plan = plan_manifest(of.log.tier.rows, settings=self._limits.plan)
            if plan is not None and not has_policy(of.topic.configs, "compact"):
                yield await writer.list_rows(of.partition, plan)

        return await self._rewrite("list", list_rows)

    async def _trim(self) -> int:
        async def trim(writer: TierWriter, of: _Of) -> AsyncIterator[TierChange]:
            first = next(iter(of.log.tier.rows), None)
            start = self._view.log_start(of.partition)
            if first is not None and first.manifest and first.start < start:
                listed = await self._manifests.listed(TierObject.of(of.partition, first))
                plan = plan_trim(listed, start)
                if plan is not None:
                    yield await writer.trim(of.partition, first, plan)

        return await self._rewrite("trim", trim)

    async def _rewrite(
        self, work: str, changes_of: Callable[[TierWriter, _Of], AsyncIterator[TierChange]]
    ) -> int:
        """One job over all partitions, but for those whose objects are damaged."""
        writer = self._writer()
        changes = []
        async for of in self._partitions():
            if not self._aside.waits((work, of.partition)):
                with self._aside.damage_of((work, of.partition)):
                    async for change in changes_of(writer, of):
                        changes.append(change)  # noqa: PERF401 damage may follow
        return await self._commit(writer, changes)

    async def _partitions(self) -> AsyncIterator[_Of]:
        async for each in each_partition(self._view, self._view.topics()):
            yield _Of(*each)

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
