"""The interface through which the coordinator stores and reads groups."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple, Protocol

from bucketlog.consumers.group_forms import CLASSIC, AnyState
from bucketlog.consumers.group_limit import GroupLimit
from bucketlog.consumers.group_messages import GroupState
from bucketlog.log_format.errors import SequencerUnavailableError, TooManyGroupsError
from bucketlog.metadata.sequencer.requests import Position
from bucketlog.metadata.sequencer.stored_groups import GroupRow, GroupTakeover


class GroupStore(Protocol):
    """The sequencer's verbs for groups (metadata/sequencer/group_verbs.py), and its position."""

    async def take_group(self, epoch: int, group: str, incarnation: str) -> GroupTakeover: ...

    async def store_group(
        self,
        epoch: int,
        group: str,
        term: int,
        revision: int,
        state: str,
        protocol_type: str,
        snapshot: bytes,
    ) -> bool: ...

    async def forget_group(self, epoch: int, group: str, term: int) -> bool: ...

    async def list_groups(self, epoch: int) -> list[GroupRow]: ...

    async def position(self, epoch: int) -> Position: ...


class SequencerGroups(GroupStore, Protocol):
    """The store below `BoundedStore`, which passes the limit of groups in."""

    async def take_group(
        self, epoch: int, group: str, incarnation: str, *, groups_max: int | None = None
    ) -> GroupTakeover: ...


class GroupSummary(NamedTuple):
    """A group in a listing. `protocol_type` is '' for a group that only keeps offsets; `group_type`
    is as in ListGroups."""

    group_id: str
    protocol_type: str
    state: AnyState
    group_type: str = CLASSIC

    @property
    def is_empty(self) -> bool:
        return str(self.state) == GroupState.EMPTY.value


class BoundedStore:
    """Bounds the number of groups in the sequencer, and the concurrent calls for groups.

    `calls_in_flight` leaves connections to Redis to the commit path. A call that has no turn after
    `wait_ms` fails with `SequencerUnavailableError`."""

    def __init__(
        self, store: SequencerGroups, *, limit: GroupLimit, calls_in_flight: int, wait_ms: int
    ) -> None:
        self._store = store
        self._limit = limit
        self._turns = asyncio.Semaphore(calls_in_flight)
        self._wait_ms = wait_ms

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(self._wait_ms / 1000):
                await self._turns.acquire()
        except TimeoutError:
            raise SequencerUnavailableError(
                f"Redis did not come to a call in {self._wait_ms} ms", remedy="it is repeated"
            ) from None
        try:
            yield
        finally:
            self._turns.release()

    async def take_group(self, epoch: int, group: str, incarnation: str) -> GroupTakeover:
        """Raises `TooManyGroupsError` for a new group at the limit."""
        groups_max = self._limit.groups_max(group)
        async with self._turn():
            try:
                return await self._store.take_group(
                    epoch, group, incarnation, groups_max=groups_max
                )
            except TooManyGroupsError as error:
                self._limit.log_refusal(error)
                raise

    async def store_group(
        self,
        epoch: int,
        group: str,
        term: int,
        revision: int,
        state: str,
        protocol_type: str,
        snapshot: bytes,
    ) -> bool:
        async with self._turn():
            return await self._store.store_group(
                epoch, group, term, revision, state, protocol_type, snapshot
            )

    async def forget_group(self, epoch: int, group: str, term: int) -> bool:
        async with self._turn():
            return await self._store.forget_group(epoch, group, term)

    async def list_groups(self, epoch: int) -> list[GroupRow]:
        async with self._turn():
            return await self._store.list_groups(epoch)

    async def position(self, epoch: int) -> Position:
        async with self._turn():
            return await self._store.position(epoch)
