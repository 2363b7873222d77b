"""The share-partitions that this broker leads: taken by facts of the log, acquired from in memory.

A broker takes a share-partition when a member fetches from it here, and the broker is the
partition's leader by `owns`. Invariants: an acknowledgement is confirmed only when the log has it
under this leader; a fact of another leader ends the window here, so that the next request reads the
state again; the facts of a window enter the log in the order of its changes. Acquired records are
not written: if the leader changes, they are delivered once more.

Source: KIP-932; Kafka's SharePartitionManager and DefaultStatePersister.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, NamedTuple, Protocol, cast
from uuid import UUID

from kio.schema.errors import ErrorCode

from bucketlog.consumers.share.settings import ShareRules
from bucketlog.consumers.share.window import (
    Acknowledgement,
    AcquiredRange,
    AcquireLimits,
    Extent,
    ShareWindow,
    WindowLimits,
)
from bucketlog.log_format.errors import BucketlogError, SequencerError
from bucketlog.log_format.model import TopicIdPartition
from bucketlog.metadata.sequencer.requests import FactStatus, WantedShareEntry
from bucketlog.metadata.share_facts import (
    ShareBatchRow,
    ShareFact,
    SharePartitionsTaken,
    ShareStateWritten,
    ShareTakenRow,
    ShareWrittenRow,
    StoredState,
)
from bucketlog.metadata.share_groups import ShareBatch, ShareGroups, SharePartition

logger = logging.getLogger(__name__)

CHECK_INTERVAL_S = 0.1
_LOST = ErrorCode.not_leader_or_follower
"""The error after which clients ask for the leader."""


class ShareKey(NamedTuple):
    group: str
    partition: TopicIdPartition


class ShareFactCommitter(Protocol):
    async def commit_fact(self, fact: ShareFact, wanted: WantedShareEntry) -> FactStatus: ...


class Wakes(Protocol):
    """A request that waits for records."""

    def wake(self, row: int) -> None: ...


class HeldPartition:
    """A share-partition under a leader epoch of this broker. `reading` is held from the choice of
    an offset until its records are acquired."""

    def __init__(
        self, key: ShareKey, leader_epoch: int, window: ShareWindow, rules: ShareRules
    ) -> None:
        self.key = key
        self.leader_epoch = leader_epoch
        self.window = window
        self.rules = rules
        self._lost = False
        self.reading = asyncio.Lock()
        self.deadline_ms: int | None = None
        """A time before which no lock ends."""
        self.watches: dict[Wakes, int] = {}

    @property
    def limits(self) -> WindowLimits:
        rules = self.rules
        return WindowLimits(rules.record_locks, rules.deliveries, rules.lock_ms)

    def is_lost(self) -> bool:
        """Whether another broker may lead the share-partition."""
        return self._lost

    def lose(self) -> None:
        self._lost = True
        self.wake()

    def wake(self) -> None:
        """Wake the requests that wait, because records may have become available."""
        for watch, row in list(self.watches.items()):
            watch.wake(row)


class ShareLeader:
    """`incarnation` names this broker in the log. `owns` returns whether the broker leads the
    partition. `start_of` returns where a share-partition without state begins, None if the
    partition is gone. `rules` are a group's. `catch_up` returns False if the view may lag."""

    def __init__(
        self,
        *,
        incarnation: str,
        shares: Callable[[], ShareGroups],
        log: ShareFactCommitter,
        owns: Callable[[TopicIdPartition], bool],
        start_of: Callable[[TopicIdPartition, ShareRules], Awaitable[int | None]],
        rules: Callable[[str], ShareRules],
        catch_up: Callable[[], Awaitable[bool]],
        partitions_max: int,
        write_timeout_ms: int,
        now_ms: Callable[[], int],
        spawn: Callable[[Coroutine[Any, Any, None], str], object],
    ) -> None:
        self._incarnation = incarnation
        self._shares = shares
        self._log = log
        self._owns = owns
        self._start_of = start_of
        self._rules = rules
        self._catch_up = catch_up
        self._partitions_max = partitions_max
        self._timeout_s = write_timeout_ms / 1000
        self._now_ms = now_ms
        self._spawn = spawn
        self._held: dict[ShareKey, HeldPartition] = {}
        self._takings: dict[ShareKey, asyncio.Future[ErrorCode]] = {}

    def state(self, key: ShareKey) -> SharePartition | None:
        """Return the state of a share-partition in the view; None if it has none."""
        return self._shares().by_group.get(key.group, {}).get(key.partition)

    # Taking ----------------------------------------------------------------------------------

    def find(self, key: ShareKey) -> HeldPartition | None:
        """The share-partition, if this broker leads it."""
        held = self._held.get(key)
        if held is not None and not self._is_mine(held):
            self._lose(held)
            return None
        return held

    def _is_mine(self, held: HeldPartition) -> bool:
        state = self.state(held.key)
        return (
            not held.is_lost()
            and state is not None
            and (state.leader, state.leader_epoch) == (self._incarnation, held.leader_epoch)
            and self._owns(held.key.partition)
        )

    async def hold(self, key: ShareKey) -> HeldPartition | ErrorCode:
        """The share-partition, taken if it was not; or an error for the client."""
        while self._owns(key.partition):
            held = self.find(key)
            if held is not None:
                held.rules = self._rules(key.group)
                return held
            taking = self._takings.get(key)
            if taking is None:
                taking = self._takings[key] = asyncio.get_running_loop().create_future()
                self._spawn(self._take(key, taking), f"leading for share group {key.group!r}")
            error = await asyncio.shield(taking)
            if error is not ErrorCode.none:
                return error
        return _LOST

    async def _take(self, key: ShareKey, taking: asyncio.Future[ErrorCode]) -> None:
        error = _LOST
        try:
            async with asyncio.timeout(self._timeout_s):
                error = await self._claim(key)
        except (BucketlogError, TimeoutError) as reason:
            logger.info("share group %r: partition not taken: %s", key.group, reason)
        finally:
            del self._takings[key]
            taking.set_result(error)

    async def _claim(self, key: ShareKey) -> ErrorCode:
        if not await self._catch_up():
            return ErrorCode.offset_not_available
        rules, state = self._rules(key.group), self.state(key)
        if state is None:
            if self._shares().partition_count >= self._partitions_max:
                logger.warning("no share-partition more: BUCKETLOG_SHARE_PARTITIONS_MAX is reached")
                return ErrorCode.unknown_server_error
            start = await self._start_of(key.partition, rules)
            if start is None:
                return ErrorCode.unknown_topic_or_partition
            state = SharePartition(0, 0, "", start)
        epoch = state.leader_epoch + 1
        topic_id, number = key.partition
        row = ShareTakenRow(UUID(bytes=topic_id), number, epoch, state.start_offset)
        fact = SharePartitionsTaken(group=key.group, leader=self._incarnation, rows=(row,))
        await self._log.commit_fact(fact, WantedShareEntry())
        state = self.state(key)
        if state is None or (state.leader, state.leader_epoch) != (self._incarnation, epoch):
            return _LOST  # another broker was first, or the topic is gone
        window = ShareWindow(state.start_offset, state.batches)
        self._held[key] = HeldPartition(key, epoch, window, rules)
        return ErrorCode.none

    def _lose(self, held: HeldPartition) -> None:
        held.lose()
        if self._held.get(held.key) is held:
            del self._held[held.key]

    def resign_all(self) -> None:
        for held in list(self._held.values()):
            self._lose(held)

    def check_ownership(self) -> None:
        """Give up share-partitions that now belong to another broker, because roles have moved."""
        for held in list(self._held.values()):
            if not self._is_mine(held):
                self._lose(held)

    # Records ---------------------------------------------------------------------------------

    def acquire(
        self,
        held: HeldPartition,
        member: str,
        extents: Sequence[Extent],
        wanted: AcquireLimits,
        *,
        read_from: int,
    ) -> list[AcquiredRange]:
        now_ms = self._now_ms()
        found = held.window.acquire(
            member, extents, wanted, held.limits, read_from=read_from, now_ms=now_ms
        )
        if found:
            until_ms = now_ms + held.rules.lock_ms
            held.deadline_ms = min(held.deadline_ms or until_ms, until_ms)
        return found

    async def acknowledge(
        self, key: ShareKey, member: str, batches: Sequence[Acknowledgement]
    ) -> ErrorCode:
        """Acknowledge records. Returns when the log has the change. If a client gets no answer, the
        change may still be made."""
        held = self.find(key)
        if held is None:  # the state is read again; nothing is acquired there
            taken = await self.hold(key)
            if isinstance(taken, ErrorCode):
                return taken
            held = taken
        changes = held.window.acknowledge(member, batches, held.limits, now_ms=self._now_ms())
        if isinstance(changes, ErrorCode):
            return changes
        return await self._write(held, changes)

    async def release(self, key: ShareKey, member: str) -> ErrorCode:
        """Make the records that the member holds available."""
        held = self.find(key)
        if held is None:
            return ErrorCode.none
        return await self._write(held, held.window.release(member, held.limits))

    async def _write(self, held: HeldPartition, changes: Sequence[ShareBatch]) -> ErrorCode:
        if not changes:
            return ErrorCode.none
        outcome: asyncio.Future[ErrorCode] = asyncio.get_running_loop().create_future()
        topic_id, number = held.key.partition
        row = ShareWrittenRow(
            UUID(bytes=topic_id),
            number,
            held.leader_epoch,
            held.window.start,
            tuple(map(_row_of, changes)),
        )
        fact = ShareStateWritten(group=held.key.group, leader=self._incarnation, rows=(row,))
        self._spawn(self._bring(held, fact, outcome), f"state of share group {held.key.group!r}")
        held.wake()
        return await asyncio.shield(outcome)

    async def _bring(
        self, held: HeldPartition, fact: ShareFact, outcome: asyncio.Future[ErrorCode]
    ) -> None:
        error = _LOST
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._log.commit_fact(fact, WantedShareEntry())
            if self._is_mine(held):
                error = ErrorCode.none
        except (SequencerError, TimeoutError) as reason:
            logger.info("share group %r: state not written: %s", held.key.group, reason)
        finally:
            if error is not ErrorCode.none:
                self._lose(held)
            outcome.set_result(error)

    # Time ------------------------------------------------------------------------------------

    def expire(self) -> None:
        """End the locks whose time is over."""
        now_ms = self._now_ms()
        for held in list(self._held.values()):
            if held.deadline_ms is not None and held.deadline_ms <= now_ms:
                changes = held.window.expire(held.limits, now_ms=now_ms)
                held.deadline_ms = held.window.next_deadline_ms()
                if changes:
                    self._spawn(self._write_expired(held, changes), "expired record locks")

    async def _write_expired(self, held: HeldPartition, changes: Sequence[ShareBatch]) -> None:
        await self._write(held, changes)

    async def run(self) -> None:
        """Ends locks in time, for ever."""
        while True:
            await asyncio.sleep(CHECK_INTERVAL_S)
            self.expire()


def _row_of(change: ShareBatch) -> ShareBatchRow:
    state = cast(StoredState, change.state)  # acquired records are never written
    return ShareBatchRow(change.first, change.last, state, change.deliveries)
