"""The duty of retention: log starts move as topics' configs say, one broker at a time.

Where a log begins is decided in `tiered_storage.retention`. Invariant: records are old by the
earlier of two clocks, this broker's and the sequencer's, so that one that runs ahead deletes
nothing; objects go later, below a floor (`stateless_broker.duties.deletion`).
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

from bucketlog.model import TierObject, TierRow, TopicPartition, WallClock
from metadata.fold import Topic
from metadata.partition_log import PartitionLog
from metadata.topic_configs import (
    RETENTION_BYTES,
    RETENTION_MS,
    effective_config,
    has_policy,
)
from metadata.view import View
from stateless_broker.duties.manifests import Manifests
from stateless_broker.duties.partitions import each_partition
from stateless_broker.duties.rounds import CATCH_UP_MS, run_rounds
from stateless_broker.duties.set_aside import SetAside
from stateless_broker.health import Health
from stateless_broker.log_starts import move_log_starts
from stateless_broker.tier_committer import TierCommitter
from tiered_storage.retention import RetentionLimits, UnmovedBatches, plan_retention

logger = logging.getLogger(__name__)

DUTY = "retention"


class Retention:
    """`catch_up` waits, for so many ms, until the view shows all that was visible before;
    `topic_defaults` are what brokers were told of topics' configs."""

    def __init__(
        self,
        *,
        view: View,
        manifests: Manifests,
        committer: TierCommitter,
        catch_up: Callable[[int], Awaitable[bool]],
        place_in_line: Callable[[str], int],
        health: Health,
        topic_defaults: dict[str, str],
        interval_ms: int,
        clocks: Sequence[WallClock],
    ) -> None:
        self._view = view
        self._manifests = manifests
        self._committer = committer
        self._catch_up = catch_up
        self._place_in_line = place_in_line
        self._health = health
        self._topic_defaults = topic_defaults
        self._interval_ms = interval_ms
        self._clocks = clocks
        self._aside = SetAside(lambda: asyncio.get_running_loop().time())

    async def run(self) -> None:
        """For the epoch's life."""
        await run_rounds(
            DUTY,
            self.round,
            interval_ms=self._interval_ms,
            place_in_line=self._place_in_line,
            health=self._health,
        )

    async def round(self) -> dict[TopicPartition, int]:
        """Move what is to be moved; says which log starts. Raises `BucketError`, `SequencerError`,
        `CorruptObjectError`, `InvalidDataError`."""
        if not await self._catch_up(CATCH_UP_MS):
            return {}
        now_ms = min(clock() for clock in self._clocks)
        starts: dict[TopicPartition, int] = {}
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
        self._aside.tell()
        return starts

    def _limits(self, topic: Topic) -> RetentionLimits | None:
        def config(name: str) -> str:
            return effective_config(topic.configs, name, self._topic_defaults)

        if not has_policy(topic.configs, "delete"):
            return None
        limits = RetentionLimits(int(config(RETENTION_MS)), int(config(RETENTION_BYTES)))
        return None if limits == RetentionLimits(-1, -1) else limits

    async def _start(
        self, partition: TopicPartition, limits: RetentionLimits, now_ms: int
    ) -> int | None:
        """None where it stays, or the partition is gone."""
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
