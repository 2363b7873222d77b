"""Acquires records for a ShareFetch: takes share-partitions, reads them in turn, and waits.

Invariant: a request waits only while it has nothing to answer, and never beyond `max_wait`. Source:
KIP-932, KIP-1206; Kafka's DelayedShareFetch.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kio.schema.errors import ErrorCode

from bucketlog.consumers.share.leader import HeldPartition, ShareKey, ShareLeader
from bucketlog.consumers.share.sessions import SessionKey, ShareSession, ShareSessions
from bucketlog.consumers.share.settings import ShareRules
from bucketlog.consumers.share.window import AcquireLimits
from bucketlog.log_format.model import TopicIdPartition
from bucketlog.log_format.wire.messages.share_fetch import ShareFetchRequest
from bucketlog.stateless_broker.fetch.watching import ChangedRows, Watchers
from bucketlog.stateless_broker.handlers.share_acknowledgements import ShareAcknowledgements
from bucketlog.stateless_broker.handlers.share_leaders import ShareLeaders
from bucketlog.stateless_broker.handlers.share_records import (
    NOTHING_ACQUIRED,
    AcquiredData,
    ShareReader,
)
from bucketlog.stateless_broker.network.apis import Request

RECORD_LIMIT_MODE = 1
"""share.acquire.mode=record_limit (KIP-1206)."""
LOOK_AGAIN_S = 1.0
"""A waiting request looks at its partitions again at the latest after this time: roles move."""


@dataclass(frozen=True, slots=True)
class ShareFetchLimits:
    bytes_max: int
    read_bytes_max: int
    wait_ms_max: int


@dataclass(frozen=True, slots=True)
class ShareParts:
    """The parts of the broker that ShareFetch uses. `spawn` runs a task of the broker."""

    leader: ShareLeader
    leaders: ShareLeaders
    sessions: ShareSessions
    reader: ShareReader
    acknowledgements: ShareAcknowledgements
    watchers: Watchers
    rules: Callable[[str], ShareRules]
    spawn: Callable[[Coroutine[Any, Any, None], str], object]


@dataclass(slots=True)
class WantedRecords:
    """The rest of a request's limits, and the records that were found so far."""

    records: int
    bytes: int
    batch_size: int
    is_strict: bool
    found: dict[TopicIdPartition, AcquiredData] = field(default_factory=dict)

    def is_met(self) -> bool:
        """Whether there is something to answer with."""
        return any(each is not NOTHING_ACQUIRED for each in self.found.values())


class ShareAcquirer:
    def __init__(self, parts: ShareParts, limits: ShareFetchLimits) -> None:
        self._parts = parts
        self._limits = limits

    async def acquire(
        self, request: Request, message: ShareFetchRequest, session: ShareSession, key: SessionKey
    ) -> Mapping[TopicIdPartition, AcquiredData]:
        wait_s = min(message.max_wait.total_seconds(), self._limits.wait_ms_max / 1000)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + max(wait_s, 0)
        wanted = WantedRecords(
            message.max_records,
            min(max(message.max_bytes, 0), self._limits.bytes_max),
            max(message.batch_size, 1),
            message.share_acquire_mode == RECORD_LIMIT_MODE,
        )
        limits = request.limits
        if limits is not None and (wait_ms := limits.fetching(1)):
            request.connection.mute(wait_ms)
            return {}
        partitions = session.rotate()
        watch, rows = self._parts.watchers.new_rows(), list(enumerate(partitions))
        watched: list[HeldPartition] = []
        self._parts.watchers.add(rows, watch)
        try:
            held = await self._hold_all(request, key, partitions, wanted)
            for row, each in held.items():
                each.watches[watch] = row
                watched.append(each)
            woken: Iterable[int] = range(len(partitions))
            while not wanted.is_met():
                ready = [held[row] for row in woken if row in held and self._is_ready(held[row])]
                if ready:
                    await self._take(request, key.member, ready, wanted)
                left_s = deadline - loop.time()
                if wanted.is_met() or left_s <= 0:
                    break
                woken = await _woken(watch, min(left_s, LOOK_AGAIN_S), len(partitions))
        finally:
            self._parts.watchers.remove(rows, watch)
            for each in watched:
                each.watches.pop(watch, None)
        if limits is not None:
            size = sum(len(each.data) for each in wanted.found.values())
            request.connection.mute(limits.fetched(size - 1))
        return wanted.found

    async def _hold_all(
        self,
        request: Request,
        key: SessionKey,
        partitions: Sequence[TopicIdPartition],
        wanted: WantedRecords,
    ) -> dict[int, HeldPartition]:
        """Return the share-partitions that this broker leads, by row; errors go into `wanted`."""
        rows: list[int] = []
        for row, partition in enumerate(partitions):
            error = self._parts.acknowledgements.refusal(partition, request.access)
            if error is ErrorCode.none:
                rows.append(row)
            else:
                wanted.found[partition] = AcquiredData(error)
        hold = self._parts.leader.hold
        found = await asyncio.gather(*(hold(ShareKey(key.group, partitions[row])) for row in rows))
        held: dict[int, HeldPartition] = {}
        for row, each in zip(rows, found, strict=True):
            if isinstance(each, ErrorCode):
                wanted.found[partitions[row]] = AcquiredData(each)
            else:
                held[row] = each
        return held

    def _is_ready(self, held: HeldPartition) -> bool:
        return held.is_lost() or self._parts.reader.may_have(held)

    async def _take(
        self, request: Request, member: str, ready: Sequence[HeldPartition], wanted: WantedRecords
    ) -> None:
        """Read what is ready, after the memory for it is granted."""
        left = min(wanted.bytes, self._limits.read_bytes_max * len(ready))
        await request.memory.acquire(left)
        for each in ready:
            if wanted.records <= 0 or left <= 0:
                break
            limits = AcquireLimits(wanted.records, wanted.batch_size, wanted.is_strict)
            size = min(left, self._limits.read_bytes_max)
            got = await self._parts.reader.acquire(each, member, limits, size)
            wanted.found[each.key.partition] = got
            wanted.records -= sum(last - first + 1 for first, last, _ in got.ranges)
            left -= len(got.data)
        if not wanted.is_met():
            request.memory.release()


async def _woken(watch: ChangedRows, wait_s: float, rows: int) -> Iterable[int]:
    """Return the rows that may have records now; all rows after `wait_s`."""
    return watch.take() if await watch.wait(wait_s) else range(rows)
