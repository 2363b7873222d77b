"""Committed offsets of this broker's groups: facts of the log, under the coordinator's term.

Invariants: a commit is let in by the group's machine, and by the sequencer only while nobody else
has taken the group; commits of a group come into the log in the order in which they were let in; a
fetch that wants stable offsets answers when all that was let in before, here or by an earlier
coordinator, is visible or void.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from kio.schema.errors import ErrorCode

from bucketlog.consumers.coordinated_group import CoordinatedGroup
from bucketlog.consumers.coordinator import GroupCoordinator, Spawn
from bucketlog.consumers.group_forms import (
    ADMINISTRATOR,
    FetchingMember,
    commit_refusal,
    fetch_refusal,
)
from bucketlog.consumers.group_messages import CallerIdentity, FetchedOffsets
from bucketlog.consumers.offset_expiry import expired_offsets, may_expire
from bucketlog.consumers.offset_rows import OffsetRows, named, weight_of
from bucketlog.log_format.errors import SequencerError
from bucketlog.log_format.model import TopicId, TopicIdPartition, WallClock
from bucketlog.log_format.wire.error_codes import ApiFamily, kafka_code
from bucketlog.metadata.committed_offset import CommittedOffset
from bucketlog.metadata.facts import (
    GroupFact,
    OffsetRow,
    OffsetsCommitted,
    OffsetsForgotten,
    PartitionRow,
)
from bucketlog.metadata.sequencer.requests import FactStatus, Position, WantedGroupEntry

logger = logging.getLogger(__name__)

LOOK_AGAIN_S = 0.02


class OffsetView(Protocol):
    """The visible offsets, groups and topics (metadata/view.py)."""

    def groups(self) -> list[str]: ...

    def offsets(self, group: str) -> Mapping[TopicIdPartition, CommittedOffset]: ...

    def has_offsets(self, group: str) -> bool: ...

    def pending_offsets(self, group: str) -> set[TopicIdPartition]: ...

    @property
    def offset_weight(self) -> int: ...

    def topic_name(self, topic_id: TopicId) -> str | None: ...


class GroupFactCommitter(Protocol):
    async def commit_fact(
        self, fact: GroupFact, wanted: WantedGroupEntry, *, when_reserved: bool = False
    ) -> FactStatus: ...


@dataclass(frozen=True, slots=True)
class OffsetSettings:
    """`ack_when_reserved`: a commit is acknowledged before it is in the bucket. `commit_timeout_ms`
    bounds the wait for a commit, by its own request or by a fetch. `rows_in_flight` bounds the
    offsets of all unfinished commits. `offsets_max` bounds the committed offsets of the cluster."""

    retention_ms: int
    retention_ms_max: int
    check_interval_ms: int
    commit_timeout_ms: int
    rows_in_flight: int
    offsets_max: int
    ack_when_reserved: bool


class GroupOffsets:
    """`catch_up` returns when the view shows all that was visible at the call, or False if this is
    unknown. `position` is the sequencer's. The clocks are the coordinator's, and `own_ms`, this
    broker's time of day: expired offsets are gone for good, so a Redis whose clock is ahead must
    not decide alone."""

    def __init__(
        self,
        *,
        coordinator: GroupCoordinator,
        view: OffsetView,
        log: GroupFactCommitter,
        position: Callable[[], Awaitable[Position]],
        catch_up: Callable[[], Awaitable[bool]],
        settings: OffsetSettings,
        known_since_ms: int,
        now_ms: Callable[[], int],
        wall_ms: WallClock,
        own_ms: WallClock,
        spawn: Spawn,
    ) -> None:
        self._known_since_ms = known_since_ms
        self._coordinator = coordinator
        self._view = view
        self._log = log
        self._position = position
        self._catch_up = catch_up
        self._settings = settings
        self._now_ms = now_ms
        self._wall_ms = wall_ms
        self._own_ms = own_ms
        self._spawn = spawn
        self.rows = OffsetRows(
            view,
            in_flight_max=settings.rows_in_flight,
            offsets_max=settings.offsets_max,
            now_ms=now_ms,
        )

    # Commit and fetch ------------------------------------------------------------------------

    async def commit(
        self,
        group_id: str,
        identity: CallerIdentity,
        rows: Sequence[OffsetRow],
        *,
        retention_ms: int | None = None,
        knows_epochs: bool = True,
    ) -> ErrorCode:
        """Commit offsets. `retention_ms`: the client's own time. `knows_epochs`: OffsetCommit 9 and
        up. GROUP_ID_NOT_FOUND if a member commits to an unknown group."""
        async with self._coordinator.holding(group_id) as held:
            if isinstance(held, ErrorCode):
                return held
            if identity.generation >= 0 and not self._coordinator.exists(held):
                return ErrorCode.group_id_not_found
            error = commit_refusal(
                held.group, identity, named(rows), self._now_ms(), knows_epochs=knows_epochs
            )
            if error is not ErrorCode.none:
                return error if await held.stored() else ErrorCode.not_coordinator
            error = self.rows.refusal(group_id, rows)
            if error is not ErrorCode.none:
                return error
            now_ms = self._wall_ms()
            fact = OffsetsCommitted(
                group=group_id,
                committed_ms=now_ms,
                expires_ms=self._expires_ms(now_ms, retention_ms),
                offsets=tuple(rows),
            )
            return await self._write(held, fact)

    def _expires_ms(self, now_ms: int, retention_ms: int | None) -> int | None:
        """Return when the offset expires; None: by the broker's settings. The requested time is
        capped."""
        if retention_ms is None:
            return None
        return now_ms + min(retention_ms, self._settings.retention_ms_max)

    async def fetch(
        self, group_id: str, *, require_stable: bool, by: FetchingMember = ADMINISTRATOR
    ) -> FetchedOffsets | ErrorCode:
        """Return all offsets of the group; none if there is no such group. `by`: a group of the
        consumer protocol refuses members of another epoch."""
        if not require_stable and by == ADMINISTRATOR:
            error = self._coordinator.refusal(group_id)
            if error is not ErrorCode.none:
                return error
            if not await self._catch_up():
                return ErrorCode.coordinator_load_in_progress
            return FetchedOffsets(self._shown(group_id))
        async with self._coordinator.holding(group_id) as held:
            if isinstance(held, ErrorCode):
                return held
            error = fetch_refusal(held.group, by)
            if error is ErrorCode.none:
                error = await self._settle(held)
            if error is not ErrorCode.none:
                return error
            pending = frozenset(self._view.pending_offsets(group_id))
            return FetchedOffsets(self._shown(group_id), pending)

    def _shown(self, group_id: str) -> Mapping[TopicIdPartition, CommittedOffset]:
        offsets, held = self._view.offsets(group_id), self._coordinator.find(group_id)
        return dict(offsets if held is None else held.show_promised(offsets))

    async def _settle(self, held: CoordinatedGroup) -> ErrorCode:
        """Wait until the view has everything that was let in so far."""
        try:
            async with asyncio.timeout(self._settings.commit_timeout_ms / 1000):
                if held.on_their_way:
                    await asyncio.wait(set(held.on_their_way))
                while held.unsettled:
                    held.unsettled &= (await self._position()).open_tickets
                    if held.unsettled:
                        await asyncio.sleep(LOOK_AGAIN_S)
        except (TimeoutError, SequencerError) as error:
            return kafka_code(error, ApiFamily.COMMITTED_OFFSETS)
        if held.lost:
            return ErrorCode.not_coordinator
        if not await self._catch_up():
            return ErrorCode.coordinator_load_in_progress
        return ErrorCode.none

    async def _settle_known(self, held: CoordinatedGroup) -> ErrorCode:
        """Settle as `_settle` does. Returns GROUP_ID_NOT_FOUND if there is no such group
        afterwards."""
        error = await self._settle(held)
        if error is ErrorCode.none and not self._coordinator.exists(held):
            return ErrorCode.group_id_not_found
        return error

    # Deleting --------------------------------------------------------------------------------

    async def delete(
        self,
        group_id: str,
        partitions: Sequence[TopicIdPartition],
        *,
        by: str | None = None,
    ) -> Sequence[ErrorCode] | ErrorCode:
        """An answer for each, or one for all. `by`: the principal that asks, which the fact
        names."""
        async with self._coordinator.holding(group_id) as held:
            if isinstance(held, ErrorCode):
                return held
            error = await self._settle_known(held)
            if error is ErrorCode.none:
                error = held.group.check_offset_delete()
            if error is not ErrorCode.none:
                return error
            subscribed = [
                held.group.is_subscribed(self._view.topic_name(each.topic_id) or "")
                for each in partitions
            ]
            known = self._shown(group_id).keys() | self._view.pending_offsets(group_id)
            free = [
                each
                for each, is_kept in zip(partitions, subscribed, strict=True)
                if not is_kept and each in known
            ]
            if free and not await self._coordinator.keep(held):
                return ErrorCode.not_coordinator
            error = await self._forget(held, free, by)
            if error is not ErrorCode.none:
                return error
            return [
                ErrorCode.group_subscribed_to_topic if is_kept else ErrorCode.none
                for is_kept in subscribed
            ]

    async def delete_group(self, group_id: str, *, by: str | None = None) -> ErrorCode:
        async with self._coordinator.holding(group_id) as held:
            if isinstance(held, ErrorCode):
                return held
            error = await self._settle_known(held)
            return error if error is not ErrorCode.none else await self._end(held, by)

    async def _end(self, held: CoordinatedGroup, by: str | None = None) -> ErrorCode:
        error = held.group.delete()
        if error is not ErrorCode.none:
            return error
        try:
            if self._shown(held.group_id) or self._view.has_offsets(held.group_id):
                error = await self._write(held, OffsetsForgotten(group=held.group_id, by=by))
                if error is not ErrorCode.none:
                    return error
            return await self._coordinator.forget(held)
        finally:  # the next coordinator restores what is stored, also if this call is cancelled
            self._coordinator.resign(held)

    # Expiry ----------------------------------------------------------------------------------

    async def run(self) -> None:
        """Looks for expired offsets, for ever."""
        while True:
            await asyncio.sleep(self._settings.check_interval_ms / 1000)
            await self.expire()

    async def expire(self) -> None:
        """Forget expired offsets, and groups that are empty and keep no offsets. Take groups with
        members that nobody has asked for."""
        if not await self._catch_up():
            return
        now_ms, retention_ms = self._agreed_ms(), self._settings.retention_ms
        listed = await self._coordinator.list(self._view.groups())
        if isinstance(listed, ErrorCode):
            return
        for row in listed:
            if not row.is_empty:
                await self._watch(row.group_id)
            offsets = self._view.offsets(row.group_id)
            is_over = row.is_empty and not offsets
            if is_over or may_expire(offsets, now_ms, retention_ms):
                await self._expire_group(row.group_id)

    def _agreed_ms(self) -> int:
        """A time that has come by both clocks."""
        return min(self._wall_ms(), self._own_ms())

    async def _watch(self, group_id: str) -> None:
        """Take the group, so that its members' sessions may end. Members that went with their
        coordinator ask nobody."""
        async with self._coordinator.holding(group_id):
            pass

    async def _expire_group(self, group_id: str) -> None:
        async with self._coordinator.holding(group_id) as held:
            if isinstance(held, ErrorCode) or await self._settle(held) is not ErrorCode.none:
                return
            if held.on_their_way or held.promised:
                return
            gone = expired_offsets(
                held.group,
                self._view.offsets(group_id),
                self._view.topic_name,
                self._agreed_ms(),
                self._settings.retention_ms,
                known_since_ms=self._known_since_ms,
            )
            pending = self._view.pending_offsets(group_id)
            gone = [each for each in gone if each not in pending]
            if gone:
                logger.info("%d offsets of group %r have expired", len(gone), group_id)
            is_over = len(gone) == len(self._shown(group_id)) and not pending
            if held.group.is_empty and is_over:
                await self._end(held)
            elif gone:
                await self._forget(held, gone)

    # Into the log ----------------------------------------------------------------------------

    async def _forget(
        self,
        held: CoordinatedGroup,
        partitions: Iterable[TopicIdPartition],
        by: str | None = None,
    ) -> ErrorCode:
        rows = tuple(PartitionRow(UUID(bytes=each.topic_id), each.partition) for each in partitions)
        if not rows:
            return ErrorCode.none
        fact = OffsetsForgotten(group=held.group_id, partitions=rows, by=by)
        return await self._write(held, fact)

    async def _write(self, held: CoordinatedGroup, fact: GroupFact) -> ErrorCode:
        """Write the fact. COORDINATOR_NOT_AVAILABLE if its outcome is unknown: it may still come
        into the log, and what is committed later comes after it."""
        outcome: asyncio.Future[ErrorCode] = asyncio.get_running_loop().create_future()
        held.on_their_way.add(outcome)
        if isinstance(fact, OffsetsCommitted):
            self.rows.in_flight += weight_of(fact.offsets)
        self._spawn(self._bring(held, fact, outcome), f"offsets of group {held.group_id!r}")
        await asyncio.wait([outcome], timeout=self._settings.commit_timeout_ms / 1000)
        return outcome.result() if outcome.done() else ErrorCode.coordinator_not_available

    async def _bring(
        self, held: CoordinatedGroup, fact: GroupFact, outcome: asyncio.Future[ErrorCode]
    ) -> None:
        early = self._settings.ack_when_reserved and isinstance(fact, OffsetsCommitted)
        error = ErrorCode.coordinator_not_available
        wanted = WantedGroupEntry(held.group_id, held.term)
        if isinstance(fact, OffsetsForgotten):
            for each in [*held.promised] if fact.partitions is None else _partitions(fact):
                held.promised.pop(each, None)
        try:
            status = await self._log.commit_fact(fact, wanted, when_reserved=early)
            is_in = status is FactStatus.OK
            error = ErrorCode.none if is_in else ErrorCode.not_coordinator
            if is_in and isinstance(fact, OffsetsCommitted) and early:
                held.promised |= _rows(fact)
        except SequencerError as reason:
            logger.info("offsets of group %r are not committed: %s", held.group_id, reason)
        finally:
            if isinstance(fact, OffsetsCommitted):
                self.rows.in_flight -= weight_of(fact.offsets)
            held.on_their_way.discard(outcome)
            outcome.set_result(error)
        if error is ErrorCode.not_coordinator:
            self._coordinator.resign(held)


def _partitions(fact: OffsetsForgotten) -> list[TopicIdPartition]:
    rows = fact.partitions or ()
    return [TopicIdPartition(TopicId(row.topic_id.bytes), row.partition) for row in rows]


def _rows(fact: OffsetsCommitted) -> dict[TopicIdPartition, CommittedOffset]:
    """Return the rows as the fold makes them."""
    return {
        TopicIdPartition(TopicId(row.topic_id.bytes), row.partition): CommittedOffset(
            row.offset, row.leader_epoch, row.metadata, fact.committed_ms, fact.expires_ms
        )
        for row in fact.offsets
    }
