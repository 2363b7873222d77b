"""The long poll of a Fetch: until there are enough bytes, or a partition was deleted, or the time
is over.

Invariant: a wake-up counts only the bytes of partitions that have changed. The request waits for
its partitions and for its deadline, and is not looked at meanwhile.
Source: Kafka's DelayedFetch and ReplicaManager.fetchMessages.
"""

import asyncio
from collections.abc import Iterable
from typing import Protocol, TypeAlias

from bucketlog.log_format.wire import fetch
from bucketlog.stateless_broker.fetch.watching import ChangedRows, Watchers
from bucketlog.stateless_broker.handlers.fetch_plan import (
    PlannedPartition,
    PlannedPartitions,
    ReadableBytes,
)
from bucketlog.stateless_broker.handlers.partition_reads import FetchLimits, PartitionReads
from bucketlog.stateless_broker.network.turns import SLICE_UNITS, Slices, Turns

Rows: TypeAlias = Iterable[tuple[int, PlannedPartition]]
"""Partitions of a plan, with their rows."""


class GrowingPlan(Protocol):
    """A plan, and its partitions that change while a request waits."""

    @property
    def planned(self) -> PlannedPartitions: ...

    @property
    def is_due(self) -> bool:
        """Whether the response must not wait for more bytes."""

    async def next_rows(self, wait_s: float) -> Iterable[int] | None:
        """Wait until partitions have changed. Returns their rows of the plan; None after `wait_s`
        seconds, and if nothing more is to be waited for."""


class WatchedPlan:
    """A plan of a request without a session, whose partitions are watched while it waits."""

    def __init__(self, planned: PlannedPartitions, changes: ChangedRows) -> None:
        self.planned = planned
        self.changes = changes

    @property
    def is_due(self) -> bool:
        return self.planned.is_due

    async def next_rows(self, wait_s: float) -> Iterable[int] | None:
        return self.changes.take() if await self.changes.wait(wait_s) else None


class FetchWaiting:
    def __init__(
        self, *, reads: PartitionReads, watchers: Watchers, limits: FetchLimits, turns: Turns
    ) -> None:
        self._reads = reads
        self._watchers = watchers
        self._limits = limits
        self._turns = turns

    def _wait_s(self, message: fetch.FetchRequest) -> float:
        return min(max(message.max_wait_ms, 0), self._limits.wait_ms_max) / 1000

    def _wanted(self, message: fetch.FetchRequest) -> int:
        return min(max(message.min_bytes, 0), self._limits.bytes_max)

    async def wait_watched(self, message: fetch.FetchRequest, planned: PlannedPartitions) -> None:
        """Wait for a request without a session."""
        wait_s, wanted = self._wait_s(message), self._wanted(message)
        if wait_s <= 0 or planned.is_due:
            return
        deadline = asyncio.get_running_loop().time() + wait_s
        readable = ReadableBytes()
        if await self._count(enumerate(planned), readable, wanted):
            return
        plan = WatchedPlan(planned, self._watchers.new_rows())
        self._watchers.add(planned.with_logs(), plan.changes)
        try:
            # Count many again: more batches may have arrived before the watch began. Few are
            # counted without a pause.
            is_many = len(planned) >= SLICE_UNITS
            if is_many and await self._is_enough(planned, enumerate(planned), readable, wanted):
                return
            await self._wait(plan, readable, wanted, deadline)
        finally:
            self._watchers.remove(planned.with_logs(), plan.changes)

    async def wait(self, message: fetch.FetchRequest, plan: GrowingPlan) -> None:
        """Wait for a request whose partitions are watched already."""
        wait_s, wanted = self._wait_s(message), self._wanted(message)
        if wait_s <= 0 or plan.is_due:
            return
        deadline = asyncio.get_running_loop().time() + wait_s
        readable = ReadableBytes()
        if not await self._count(enumerate(plan.planned), readable, wanted):
            await self._wait(plan, readable, wanted, deadline)

    async def _wait(
        self, plan: GrowingPlan, readable: ReadableBytes, wanted: int, deadline: float
    ) -> None:
        loop = asyncio.get_running_loop()
        while (left_s := deadline - loop.time()) > 0:
            grown = await plan.next_rows(left_s)
            if grown is None or plan.is_due:
                return
            if await self._is_enough(plan.planned, plan.planned.rows(grown), readable, wanted):
                return

    async def _is_enough(
        self, planned: PlannedPartitions, rows: Rows, readable: ReadableBytes, wanted: int
    ) -> bool:
        """Return whether the bytes suffice after `rows` have grown, or one of them was deleted. At
        first, only these rows are counted. Others may have fewer bytes than before (DeleteRecords),
        so a sufficient sum is checked by counting again."""
        if not await self._count(rows, readable, wanted):
            return False
        if await self._count(planned.rows(readable.take_rows()), readable, wanted):
            return True
        return await self._count(enumerate(planned), readable, wanted)

    async def _count(self, rows: Rows, readable: ReadableBytes, wanted: int) -> bool:
        """Count the bytes of `rows`, and stop at a total of `wanted`. Returns whether the total
        reaches it, or a partition was deleted."""
        slices = Slices(self._turns)
        for row, part in rows:
            if readable.total >= wanted:
                return True
            if part.log is not None:
                if self._reads.is_deleted(part.log):
                    return True
                if part.end > part.fetch_offset:
                    readable.put(row, self._reads.available_bytes(part, part.log, wanted))
            await slices.spend(1)
        return readable.total >= wanted
