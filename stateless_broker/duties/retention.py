"""The duty of retention: log starts move as topics' configs say, one broker at a time.

`tiered_storage.retention` decides where a log begins. Invariant: records are old only by both
clocks, this broker's and the sequencer's, so that a clock that runs ahead deletes nothing. Objects
are deleted later, below a floor (`stateless_broker.duties.deletion`).
"""

import asyncio
import logging
from collections.abc import Sequence

from bucketlog.log_format.model import TierObject, TierRow, TopicIdPartition, WallClock
from bucketlog.metadata.fold import TopicState
from bucketlog.metadata.partition_log import PartitionLog
from bucketlog.metadata.topic_configs import (
    RETENTION_BYTES,
    RETENTION_MS,
)
from bucketlog.stateless_broker.duties.current_view import CurrentView
from bucketlog.stateless_broker.duties.damaged_work import DamagedWork
from bucketlog.stateless_broker.duties.manifests import Manifests
from bucketlog.stateless_broker.duties.partitions import each_partition
from bucketlog.stateless_broker.duties.rounds import CATCH_UP_MS, DutyContext, run_rounds
from bucketlog.stateless_broker.health import BrokerPart
from bucketlog.stateless_broker.produce.log_starts import move_log_starts
from bucketlog.stateless_broker.produce.tier_committer import TierCommitter
from bucketlog.tiered_storage.retention import RetentionLimits, UnmovedBatches, plan_retention

logger = logging.getLogger(__name__)


class Retention:
    def __init__(
        self,
        *,
        current: CurrentView,
        manifests: Manifests,
        committer: TierCommitter,
        context: DutyContext,
        interval_ms: int,
        clocks: Sequence[WallClock],
    ) -> None:
        self._view = current.view
        self._manifests = manifests
        self._committer = committer
        self._catch_up = current.catch_up
        self._context = context
        self._topic_defaults = context.topic_defaults
        self._interval_ms = interval_ms
        self._clocks = clocks
        self._aside = DamagedWork(lambda: asyncio.get_running_loop().time())

    async def run(self) -> None:
        """Run the duty's rounds until the epoch ends."""
        await run_rounds(
            BrokerPart.RETENTION,
            self.round,
            interval_ms=self._interval_ms,
            context=self._context,
        )

    async def round(self) -> dict[TopicIdPartition, int]:
        """Move the log starts that have to move, and return which ones. Raises `BucketError`,
        `SequencerError`, `CorruptObjectError`, `InvalidDataError`."""
        if not await self._catch_up(CATCH_UP_MS):
            return {}
        now_ms = min(clock() for clock in self._clocks)
        starts: dict[TopicIdPartition, int] = {}
        limits = {
            topic.topic_id: found
            for topic in self._view.topics()
            if (found := self._limits(topic)) is not None
        }
        limited = [topic for topic in self._view.topics() if topic.topic_id in limits]
        async for partition, _, topic in each_partition(self._view, limited):
            if not self._aside.waits(partition):
                with self._aside.damage_of(partition):
                    start = await self._start(partition, limits[topic.topic_id], now_ms)
                    if start is not None:
                        starts[partition] = start
        if starts:
            await move_log_starts(starts, view=self._view, committer=self._committer)
            logger.info("%d log starts were moved by retention", len(starts))
        there = self._view.logs().keys()
        self._aside.forget(lambda partition: partition not in there)
        self._aside.raise_if_any()
        return starts

    def _limits(self, topic: TopicState) -> RetentionLimits | None:
        def config(name: str) -> str:
            return self._topic_defaults.effective(topic.configs, name)

        if not self._topic_defaults.has_policy(topic.configs, "delete"):
            return None
        limits = RetentionLimits(int(config(RETENTION_MS)), int(config(RETENTION_BYTES)))
        return None if limits == RetentionLimits(-1, -1) else limits

    async def _start(
        self, partition: TopicIdPartition, limits: RetentionLimits, now_ms: int
    ) -> int | None:
        """Return the new log start; None if it does not change, or if the partition is deleted."""
        listed: dict[str, Sequence[TierRow]] = {}
        while True:
            log = self._view.log(partition)
            if log is None:
                return None
            log_start = self._view.log_start(partition)
            plan = plan_retention(
                log.tier.rows,
                listed,
                _unmoved(log),
                limits=limits,
                log_start=log_start,
                high_watermark=log.high_watermark,
                now_ms=now_ms,
            )
            if plan.manifest is None:
                return plan.log_start if plan.log_start > log_start else None
            there = TierObject.of(partition, plan.manifest)
            listed[plan.manifest.name] = await self._manifests.listed(there)


def _unmoved(log: PartitionLog) -> UnmovedBatches:
    batches = log.batches
    return UnmovedBatches(
        batches.base_offsets, batches.next_offsets, batches.lengths, batches.timestamps
    )
