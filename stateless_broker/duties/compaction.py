"""The duty of compaction, done by one broker at a time: log segments become partition segments,
small ones become large ones, old rows become manifests, and keys of compacted topics are cleaned.

`tiered_storage.tier_plan` and `tiered_storage.cleaning_need` decide what is worth doing.
`tiered_storage.tier_writing` and `stateless_broker.duties.key_cleaning` do it. It counts only by an
entry of the log. Invariants: written objects are never offered twice: a job that fails is planned
anew, under new names. So two brokers may do this at once, and one may die anywhere. Damage stops
only the work of that partition, and in a log segment only the splitting.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from bucketlog.log_format.model import TierObject, TopicIdPartition
from bucketlog.metadata.facts import SwapPayload, TierRowPayload, TiersSwapped
from bucketlog.metadata.fold import TopicState
from bucketlog.metadata.partition_log import PartitionLog
from bucketlog.metadata.sequencer.requests import WantedTierEntry
from bucketlog.stateless_broker.duties.current_view import CurrentView
from bucketlog.stateless_broker.duties.damaged_work import DamagedWork
from bucketlog.stateless_broker.duties.key_cleaning import KeyCleaner
from bucketlog.stateless_broker.duties.manifests import Manifests
from bucketlog.stateless_broker.duties.pace import Pace
from bucketlog.stateless_broker.duties.partitions import each_partition
from bucketlog.stateless_broker.duties.rounds import CATCH_UP_MS, DutyContext, run_rounds
from bucketlog.stateless_broker.health import BrokerPart
from bucketlog.stateless_broker.produce.tier_committer import TierCommitter
from bucketlog.tiered_storage.bucket import Bucket
from bucketlog.tiered_storage.tier_plan import (
    CompactionSettings,
    plan_manifest,
    plan_merge,
    plan_split,
    plan_trim,
)
from bucketlog.tiered_storage.tier_writing import TierChange, TierWriter

logger = logging.getLogger(__name__)

SPLIT = "split"
SWAPS_AN_ENTRY = 500


class _CompactionSubject(NamedTuple):
    """The partition that a job works on, with its log and topic."""

    partition: TopicIdPartition
    log: PartitionLog
    topic: TopicState


@dataclass(frozen=True, slots=True)
class CompactionLimits:
    """Limits of compaction. `interval_ms`: how often this broker looks whether there is something
    to do."""

    interval_ms: int
    plan: CompactionSettings
    requests_in_flight: int


class Compactor:
    def __init__(
        self,
        *,
        bucket: Bucket,
        current: CurrentView,
        manifests: Manifests,
        cleaning: KeyCleaner,
        committer: TierCommitter,
        context: DutyContext,
        pace: Pace,
        limits: CompactionLimits,
    ) -> None:
        self._bucket = bucket
        self._view = current.view
        self._manifests = manifests
        self._cleaning = cleaning
        self._committer = committer
        self._newest_ticket = current.newest_ticket
        self._catch_up = current.catch_up
        self._context = context
        self._counts = context.counts
        self._now_ms = context.now_ms
        self._new_uuid = context.new_uuid
        self._topic_defaults = context.topic_defaults
        self._pace = pace
        self._limits = limits
        self._aside = DamagedWork(lambda: asyncio.get_running_loop().time())

    async def run(self) -> None:
        """Run the duty's rounds until the epoch ends."""
        await run_rounds(
            BrokerPart.COMPACTION,
            self.round,
            interval_ms=self._limits.interval_ms,
            context=self._context,
        )

    async def round(self) -> int:
        """Do what is due. Returns how many swaps were offered. Raises `BucketError`,
        `SequencerError`, `CorruptObjectError`, `InvalidDataError`."""
        if not await self._catch_up(CATCH_UP_MS):
            return 0
        offered = 0
        for work in (self._split, self._merge, self._clean, self._list, self._trim):
            offered += await work()
        there = self._view.logs().keys()
        self._aside.forget(lambda work: isinstance(work, tuple) and work[1] not in there)
        self._aside.raise_if_any()
        return offered

    def _is_compacted(self, topic: TopicState) -> bool:
        return self._topic_defaults.has_policy(topic.configs, "compact")

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
        """Split the next window of log segments by partition. Returns the number of changed
        partitions, 0 if no window is due."""
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
        """Merge small partition segments. In compacted topics, clean and dirty segments stay
        apart."""

        async def merge(writer: TierWriter, of: _CompactionSubject) -> AsyncIterator[TierChange]:
            tier = of.log.tier
            clean = (
                sum(row.end <= tier.cleaned_to for row in tier.rows)
                if self._is_compacted(of.topic)
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
        async def clean(writer: TierWriter, of: _CompactionSubject) -> AsyncIterator[TierChange]:
            if self._is_compacted(of.topic):
                change = await self._cleaning.clean(
                    of.partition, of.log, self._view, of.topic, writer
                )
                if change is not None:
                    yield change

        return await self._rewrite("clean", clean)

    async def _list(self) -> int:
        async def list_rows(
            writer: TierWriter, of: _CompactionSubject
        ) -> AsyncIterator[TierChange]:
            plan = plan_manifest(of.log.tier.rows, settings=self._limits.plan)
            if plan is not None and not self._is_compacted(of.topic):
                yield await writer.list_rows(of.partition, plan)

        return await self._rewrite("list", list_rows)

    async def _trim(self) -> int:
        async def trim(writer: TierWriter, of: _CompactionSubject) -> AsyncIterator[TierChange]:
            first = next(iter(of.log.tier.rows), None)
            start = self._view.log_start(of.partition)
            if first is not None and first.manifest and first.start < start:
                listed = await self._manifests.listed(TierObject.of(of.partition, first))
                plan = plan_trim(listed, start)
                if plan is not None:
                    yield await writer.trim(of.partition, first, plan)

        return await self._rewrite("trim", trim)

    async def _rewrite(
        self,
        work: str,
        changes_of: Callable[[TierWriter, _CompactionSubject], AsyncIterator[TierChange]],
    ) -> int:
        """Do one job over all partitions, except for those whose objects are damaged."""
        writer = self._writer()
        changes = []
        async for of in self._partitions():
            if not self._aside.waits((work, of.partition)):
                with self._aside.damage_of((work, of.partition)):
                    async for change in changes_of(writer, of):
                        changes.append(change)  # noqa: PERF401 damage may follow
        return await self._commit(writer, changes)

    async def _partitions(self) -> AsyncIterator[_CompactionSubject]:
        async for each in each_partition(self._view, self._view.topics()):
            yield _CompactionSubject(*each)

    async def _commit(self, writer: TierWriter, changes: Sequence[TierChange]) -> int:
        for some in _chunks(changes):
            fact = TiersSwapped(planned=tuple(writer.planned), swaps=tuple(map(_swap, some)))
            await self._committer.commit_fact(fact, WantedTierEntry())
        return len(changes)


def _chunks(changes: Sequence[TierChange]) -> Iterator[Sequence[TierChange]]:
    for first in range(0, len(changes), SWAPS_AN_ENTRY):
        yield changes[first : first + SWAPS_AN_ENTRY]


def _swap(change: TierChange) -> SwapPayload:
    return SwapPayload(
        UUID(bytes=change.partition.topic_id),
        change.partition.partition,
        change.start,
        change.end,
        change.replaced,
        tuple(TierRowPayload(*row) for row in change.added),
        change.removed,
        change.cleaned_to,
    )
