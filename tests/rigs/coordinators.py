"""Coordinators of consumer groups on a real sequencer, each with a clock that is told.

A `Seat` is what one broker has of it: coordinator, offsets, a writer and a way into the log. The
view is one for all: what is published is seen by all at once.
"""

import asyncio
import itertools
from collections.abc import AsyncIterator, Coroutine, Iterable
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

from kio.schema.errors import ErrorCode

from bucketlog.consumers.coordinator import GroupCoordinator
from bucketlog.consumers.group import Group
from bucketlog.consumers.group_forms import GroupForms
from bucketlog.consumers.group_limit import GroupLimit
from bucketlog.consumers.group_memory import GroupMemory
from bucketlog.consumers.group_messages import (
    CallerIdentity,
    JoinResponse,
    SyncRequest,
    SyncResponse,
)
from bucketlog.consumers.group_settings import GroupSettings
from bucketlog.consumers.group_store import BoundedStore
from bucketlog.consumers.modern_settings import ModernSettings
from bucketlog.consumers.offsets import GroupOffsets, OffsetSettings
from bucketlog.log_format.model import TopicIdPartition, WriterId
from bucketlog.metadata.facts import Fact, OffsetRow, TopicCreated
from bucketlog.metadata.sequencer.requests import FactStatus, WantedGroupEntry
from bucketlog.metadata.view import View
from bucketlog.stateless_broker.assembly.known_topics import ViewTopics
from bucketlog.stateless_broker.supervision import Supervisor
from tests.models.groups import asks
from tests.models.indexes import segment
from tests.rigs.broker_rig import until
from tests.rigs.unsure_sequencer import UnsureSequencer
from tests.servers.sequencing import NOW_MS, Sequencing

DAY_MS = 86_400_000
SETTINGS = GroupSettings(initial_rebalance_delay_ms=0)
OFFSETS = OffsetSettings(
    retention_ms=7 * DAY_MS,
    retention_ms_max=365 * DAY_MS,
    check_interval_ms=DAY_MS,
    commit_timeout_ms=20_000,
    rows_in_flight=1000,
    offsets_max=1_000_000,
    ack_when_reserved=False,
)


class SharedView:
    """The view of all brokers, and what makes segments visible in it."""

    def __init__(self) -> None:
        self.view = View()
        self.publishing = 0
        """Segments that may be visible for the sequencer and are not in the view."""
        self._tickets = itertools.count()

    def show(self, *facts: Fact) -> None:
        self.view.apply(segment(next(self._tickets), None, *facts))


class Log:
    """A broker's commits, one segment each; `hold` keeps them from becoming visible."""

    def __init__(self, sequencing: Sequencing, writer: WriterId, shown: SharedView) -> None:
        self.reserved = 0
        self._sequencing = sequencing
        self._writer = writer
        self._shown = shown
        self._turn = asyncio.Lock()
        self._open = asyncio.Event()
        self._open.set()

    def hold(self) -> None:
        self._open.clear()

    def let_go(self) -> None:
        self._open.set()

    async def commit_fact(
        self, fact: Fact, wanted: WantedGroupEntry, *, when_reserved: bool = False
    ) -> FactStatus:
        async with self._turn:
            reservation = await self._sequencing.ask(self._writer, control=[wanted])
            (status,) = reservation.fact_statuses
            if status is not FactStatus.OK:
                return status
            self.reserved += 1
            if not when_reserved:
                await self._open.wait()
                self._shown.publishing += 1
                await self._sequencing.publish(self._writer)
                self._shown.show(fact)
                self._shown.publishing -= 1
            return status


class Seat:
    """`refusal` is what `owns` says."""

    def __init__(
        self,
        sequencing: Sequencing,
        writer: WriterId,
        shown: SharedView,
        *,
        settings: GroupSettings = SETTINGS,
        offset_settings: OffsetSettings = OFFSETS,
        groups_max: int = 1_000,
        bytes_max: int = 1 << 30,
    ) -> None:
        self.now_ms = 1_000_000
        self.wall_ms = NOW_MS
        self.own_clock_differs_ms = 0
        self.refusal = ErrorCode.none
        self.store_lost: list[str] = []
        self.failed: list[Exception] = []
        self.supervisor = Supervisor()
        self.tasks: set[asyncio.Task[None]] = set()
        self.log = Log(sequencing, writer, shown)
        self.shown = shown
        self.view = shown.view
        self.sequencer = UnsureSequencer(
            sequencing.redis,
            cluster_id=sequencing.cluster_id,
            stream_segments_max=100,
            stream_bytes_max=1 << 20,
        )
        ids = itertools.count()
        limit = GroupLimit(
            groups_max,
            has_offsets=self.view.has_offsets,
            groups_with_offsets=self.view.group_count,
            now_ms=lambda: self.now_ms,
        )
        self.memory = GroupMemory(bytes_max, lambda: self.now_ms)
        self.coordinator = GroupCoordinator(
            epoch=sequencing.epoch,
            incarnation=writer,
            store=BoundedStore(self.sequencer, limit=limit, calls_in_flight=2, wait_ms=10_000),
            owns=lambda _: self.refusal,
            has_offsets=self.view.has_offsets,
            forms=GroupForms(
                ModernSettings(settings),
                ViewTopics(self.view),
                lambda: f"{writer[-4:]}-{next(ids)}",
                lambda _: {},
            ),
            memory=self.memory,
            now_ms=lambda: self.now_ms,
            wall_ms=lambda: self.wall_ms,
            spawn=self._spawn,
            on_store_lost=lambda error: self.store_lost.append(str(error)),
        )
        self.offsets = GroupOffsets(
            coordinator=self.coordinator,
            view=self.view,
            log=self.log,
            position=lambda: self.sequencer.position(sequencing.epoch),
            catch_up=self._catch_up,
            settings=offset_settings,
            known_since_ms=0,
            now_ms=lambda: self.now_ms,
            wall_ms=lambda: self.wall_ms,
            own_ms=lambda: self.wall_ms + self.own_clock_differs_ms,
            spawn=self._spawn,
        )

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        task = self.supervisor.spawn(work, name, on_failure=self.failed.append)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return task

    async def _catch_up(self) -> bool:
        await until(lambda: not self.shown.publishing)
        return True

    # Members

    def joins(self, name: str, member_id: str = "", **wanted: Any) -> "asyncio.Task[JoinResponse]":
        request = asks(name, member_id, **wanted)
        return asyncio.create_task(self.coordinator.join("g", request))

    async def form(self, *names: str, topics: Iterable[str] = ("t",)) -> dict[str, CallerIdentity]:
        """Group `g` comes to a stable generation of these; each is assigned its name."""
        joining = {name: self.joins(name) for name in names}
        await until(lambda: self.joined == len(names))
        self.coordinator.expire()
        found = {name: await task for name, task in joining.items()}
        members = {
            name: CallerIdentity(each.member_id, each.generation) for name, each in found.items()
        }
        leader = next(each.leader for each in found.values())
        wishes = tuple((members[name].member_id, name.encode()) for name in names)
        syncs = [
            self.sync(member, wishes if member.member_id == leader else ())
            for member in members.values()
        ]
        answers = await asyncio.gather(*syncs)
        assert [each.assignment for each in answers] == [name.encode() for name in names]
        return members

    @property
    def joined(self) -> int:
        held = self.coordinator.find("g")
        if held is None:
            return 0
        assert isinstance(held.group, Group)
        return held.group.machine.roster.joins_waiting

    async def sync(
        self, member: CallerIdentity, wishes: tuple[tuple[str, bytes], ...] = ()
    ) -> SyncResponse:
        return await self.coordinator.sync("g", SyncRequest(member, wishes))

    async def beat(self, member: CallerIdentity) -> ErrorCode:
        return await self.coordinator.heartbeat("g", member)

    def pass_ms(self, duration_ms: int) -> None:
        self.now_ms += duration_ms
        self.wall_ms += duration_ms
        self.coordinator.expire()

    # Offsets

    def partition(self, number: int = 0, topic: str = "t") -> TopicIdPartition:
        found = self.view.topic(topic)
        assert found is not None
        return TopicIdPartition(found.topic_id, number)

    async def commit(
        self,
        offset: int,
        member: CallerIdentity,
        number: int = 0,
        *,
        topic: str = "t",
        group: str = "g",
    ) -> ErrorCode:
        topic_id = UUID(bytes=self.partition(number, topic).topic_id)
        row = OffsetRow(topic_id, number, offset, -1, "")
        return await self.offsets.commit(group, member, [row])

    async def committed(self, *, group: str = "g", stable: bool = True) -> dict[int, int]:
        """Offsets of `t` by partition."""
        found = await self.offsets.fetch(group, require_stable=stable)
        assert not isinstance(found, ErrorCode), found
        return {number: row.offset for (_, number), row in found.committed.items()}

    async def stop(self) -> None:
        self.log.let_go()
        self.sequencer.let_go()
        await self.supervisor.cancel_all()
        assert not self.failed


@asynccontextmanager
async def seats(sequencing: Sequencing, **wanted: Any) -> AsyncIterator[tuple[Seat, Seat]]:
    """Two brokers that both believe every group to be theirs. Topic `t` has 2 partitions; so has
    `u`, of which the sequencer has not heard."""
    shown = SharedView()
    topic_id = UUID(bytes=sequencing.topic_ids["t"])
    shown.show(TopicCreated(topic_id=topic_id, name="t", partitions=2))
    shown.show(TopicCreated(topic_id=UUID(int=77), name="u", partitions=2))
    first = Seat(sequencing, sequencing.a, shown, **wanted)
    second = Seat(sequencing, sequencing.b, shown, **wanted)
    try:
        yield first, second
    finally:
        await first.stop()
        await second.stop()
