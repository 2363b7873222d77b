"""The coordinator of this broker's consumer groups: the pure machine's thin edge to time and Redis.

If a group is asked for here, and is this broker's by `owns`, the coordinator *takes* the group. The
sequencer gives a new term and the stored state, and refuses the earlier coordinator from then on.
Invariants:

- A group is taken by one request at a time; all that ask meanwhile share the result.
- Answers leave in the machine's order, each after its change is stored. Many joins share a store.
- If a store or a commit is refused, or `owns` no longer names this broker, the group is resigned.
  All that wait get NOT_COORDINATOR, and nothing else is ever answered for the group.
- A group in which there never was anything is given up, with its term.
"""

import asyncio
import itertools
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from kio.schema.errors import ErrorCode

from bucketlog.consumers.coordinated_group import CoordinatedGroup
from bucketlog.consumers.group import Group
from bucketlog.consumers.group_forms import (
    AnyGroup,
    GroupForms,
    converted,
    stored,
    stored_state,
)
from bucketlog.consumers.group_listing import GroupListing
from bucketlog.consumers.group_memory import GroupMemory
from bucketlog.consumers.group_messages import (
    CallerIdentity,
    GroupDescription,
    GroupResponse,
    JoinRequest,
    JoinResponse,
    LeaveOutcome,
    LeavingMember,
    Response,
    SyncRequest,
    SyncResponse,
    Token,
    refused_as,
)
from bucketlog.consumers.group_store import GroupStore, GroupSummary
from bucketlog.consumers.group_timer import GroupTimer
from bucketlog.consumers.modern_messages import ModernDescription
from bucketlog.log_format.errors import InvalidDataError, SequencerError, SequencerUnavailableError
from bucketlog.log_format.model import WallClock
from bucketlog.log_format.wire.error_codes import ApiFamily, kafka_code
from bucketlog.metadata.sequencer.stored_groups import GroupTakeover

logger = logging.getLogger(__name__)

ASK_AGAIN_S = 0.05

Owns = Callable[[str], ErrorCode]
"""Returns `none` if this broker coordinates the group, otherwise the answer to clients."""

Spawn = Callable[[Coroutine[Any, Any, None], str], object]
"""Runs a coroutine as a task of the broker, under a name."""


class GroupCoordinator:
    """`now_ms` is a clock that never goes back, `wall_ms` the time of day. `on_store_lost` gets the
    reason why the sequencer will answer nothing more in this epoch."""

    def __init__(
        self,
        *,
        epoch: int,
        incarnation: str,
        store: GroupStore,
        owns: Owns,
        has_offsets: Callable[[str], bool],
        forms: GroupForms,
        memory: GroupMemory,
        now_ms: Callable[[], int],
        wall_ms: WallClock,
        spawn: Spawn,
        on_store_lost: Callable[[SequencerError], None],
    ) -> None:
        self._epoch = epoch
        self._incarnation = incarnation
        self._store = store
        self._owns = owns
        self._has_offsets = has_offsets
        self.forms = forms
        self.memory = memory
        self.now_ms = now_ms
        self._wall_ms = wall_ms
        self.spawn = spawn
        self._on_store_lost = on_store_lost
        self._held: dict[str, CoordinatedGroup] = {}
        self._takings: dict[str, asyncio.Future[ErrorCode]] = {}
        self._waiting: dict[Token, asyncio.Future[Response]] = {}
        self._tokens = itertools.count()
        self._timer = GroupTimer(now_ms)
        self._listing = GroupListing(store, epoch, self._held, owns)

    # What members ask ------------------------------------------------------------------------

    async def join(self, group_id: str, request: JoinRequest) -> JoinResponse:
        """Returns when the join phase is over. A call that is cancelled leaves the member joining:
        it may come back, or its time runs out."""

        def ask(held: CoordinatedGroup, token: Token) -> list[GroupResponse]:
            held.group = self.forms.to_join(held.group)
            return self.memory.join(held.group, request, token, self.now_ms())

        response = await self._ask(group_id, ask, JoinResponse(ErrorCode.none, request.member_id))
        assert isinstance(response, JoinResponse)
        return response

    async def sync(self, group_id: str, request: SyncRequest) -> SyncResponse:
        def ask(held: CoordinatedGroup, token: Token) -> list[GroupResponse]:
            return self.memory.sync(held.group, request, token, self.now_ms())

        response = await self._ask(group_id, ask, SyncResponse(ErrorCode.none))
        assert isinstance(response, SyncResponse)
        return response

    async def _ask(
        self,
        group_id: str,
        ask: Callable[[CoordinatedGroup, Token], list[GroupResponse]],
        refused: Response,
    ) -> Response:
        async with self.holding(group_id) as held:
            if isinstance(held, ErrorCode):
                return refused_as(refused, held)
            token = Token(next(self._tokens))
            answered: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
            self._waiting[token] = answered
            try:
                self.answer_when_stored(held, ask(held, token))
                return await answered
            finally:
                del self._waiting[token]

    async def heartbeat(self, group_id: str, identity: CallerIdentity) -> ErrorCode:
        async with self.holding(group_id) as held:
            if isinstance(held, ErrorCode):
                return held
            error = held.group.heartbeat(identity, self.now_ms())
            return error if await held.stored() else ErrorCode.not_coordinator

    async def leave(self, group_id: str, leaving: Sequence[LeavingMember]) -> LeaveOutcome:
        async with self.holding(group_id) as held:
            if isinstance(held, ErrorCode):
                return LeaveOutcome(held, (), [])
            outcome = held.group.leave(leaving, self.now_ms())
            self.answer_when_stored(held, outcome.answers)
            if not await held.stored():
                return LeaveOutcome(ErrorCode.not_coordinator, (), [])
            return outcome._replace(answers=[])

    # What administrators ask -----------------------------------------------------------------

    async def describe(self, group_id: str) -> GroupDescription | ModernDescription | ErrorCode:
        """Describe the group. Returns GROUP_ID_NOT_FOUND if there is no such group."""
        async with self.holding(group_id) as held:
            if isinstance(held, ErrorCode):
                return held
            if not self.exists(held):
                return ErrorCode.group_id_not_found
            description = held.group.describe()
            return description if await held.stored() else ErrorCode.not_coordinator

    async def finder(self) -> Callable[[str], bool] | ErrorCode:
        """A function that returns whether a group may exist. `describe` finds no other groups."""
        try:
            return await self._listing.finder(self.refusal, self._has_offsets, self._takings)
        except SequencerError as error:
            return self._no_answer(error)

    async def list(self, with_offsets: Iterable[str]) -> Sequence[GroupSummary] | ErrorCode:
        """The groups that are this broker's; `with_offsets` are all that have committed offsets."""
        try:
            return await self._listing.rows(with_offsets)
        except SequencerError as error:
            return self._no_answer(error)

    def refusal(self, group_id: str) -> ErrorCode:
        """Return why the group must not be asked for here; `none` if it may."""
        if len(group_id.encode()) > self.forms.classic_settings.id_bytes_max:
            return ErrorCode.invalid_group_id
        return self._owns(group_id)

    def find(self, group_id: str) -> CoordinatedGroup | None:
        """Return the group if this broker holds it already."""
        return self._held.get(group_id)

    def exists(self, held: CoordinatedGroup) -> bool:
        return held.has_group_state or self._has_offsets(held.group_id)

    async def keep(self, held: CoordinatedGroup) -> bool:
        """Store that the group exists, also without offsets. False if the group is lost."""
        if isinstance(held.group, Group):
            held.group.outlive_offsets()
        self.answer_when_stored(held, ())
        return await held.stored()

    async def forget(self, held: CoordinatedGroup) -> ErrorCode:
        """Delete what is stored of a dead group. Its offsets must be forgotten before."""
        try:
            mine = await self._store.forget_group(self._epoch, held.group_id, held.term)
        except SequencerError as error:
            return self._no_answer(error)
        finally:
            self.resign(held)
        return ErrorCode.none if mine else ErrorCode.not_coordinator

    # Holding groups --------------------------------------------------------------------------

    @asynccontextmanager
    async def holding(self, group_id: str) -> AsyncIterator[CoordinatedGroup | ErrorCode]:
        """The group, taken if it was not; or why it is not this broker's."""
        held = await self._hold(group_id)
        if isinstance(held, ErrorCode):
            yield held
            return
        held.users += 1
        try:
            yield held
        finally:
            held.users -= 1
            self._release_group(held)

    async def _hold(self, group_id: str) -> CoordinatedGroup | ErrorCode:
        while (error := self.refusal(group_id)) is ErrorCode.none:
            held = self._held.get(group_id)
            if held is not None:
                return held
            taking = self._takings.get(group_id)
            if taking is None:
                taking = self._takings[group_id] = asyncio.get_running_loop().create_future()
                self.spawn(self._take(group_id, taking), f"taking group {group_id!r}")
            error = await asyncio.shield(taking)
            if error is not ErrorCode.none:
                return error
        return error

    async def _take(self, group_id: str, taking: asyncio.Future[ErrorCode]) -> None:
        outcome = ErrorCode.coordinator_not_available
        try:
            taken = await self._store.take_group(self._epoch, group_id, self._incarnation)
        except SequencerError as error:
            outcome = self._no_answer(error)
        else:
            outcome = self._owns(group_id)
            if outcome is ErrorCode.none:
                held = CoordinatedGroup(
                    self._restored(group_id, taken), taken.term, taken.open_tickets
                )
                self._held[group_id] = held
                self._listing.taken(group_id)
                self._timer.plan(held)
                self.memory.note(held.group)
        finally:
            del self._takings[group_id]
            taking.set_result(outcome)

    def _restored(self, group_id: str, taken: GroupTakeover) -> AnyGroup:
        if taken.snapshot is not None:
            try:
                group = self.forms.restored(taken.snapshot, self.now_ms())
                if group.group_id != group_id:
                    raise InvalidDataError(f"the snapshot is of group {group.group_id!r}")
                return group
            except InvalidDataError as error:
                logger.error(
                    "group %r begins anew, its members have to rejoin: %s", group_id, error
                )
        return self.forms.new(group_id, taken.revision)

    def _release_group(self, held: CoordinatedGroup) -> None:
        if held.users or held.lost or self.exists(held):
            return
        self.resign(held)
        self.spawn(self._forget_quietly(held), f"letting group {held.group_id!r} go")

    async def _forget_quietly(self, held: CoordinatedGroup) -> None:
        try:
            await self._store.forget_group(self._epoch, held.group_id, held.term)
        except SequencerUnavailableError as error:
            logger.info("group %r stays in Redis, empty: %s", held.group_id, error)
        except SequencerError as error:
            self._on_store_lost(error)

    def resign(self, held: CoordinatedGroup) -> None:
        """Give a group up: waiting members get NOT_COORDINATOR, and look for another broker."""
        if held.lost:
            return
        if self._held.get(held.group_id) is held:
            del self._held[held.group_id]
            self.memory.forget(held.group_id)
            self._timer.forget(held.group_id)
        self._listing.forget_stored()
        held.lose()
        for token, response in held.group.resign():
            self._answer(token, response, True)

    def resign_all(self) -> None:
        for held in list(self._held.values()):
            self.resign(held)

    def check_ownership(self) -> None:
        """Resign groups of other brokers, because the cluster's members have changed."""
        self._listing.forget_stored()
        for held in list(self._held.values()):
            if self._owns(held.group_id) is not ErrorCode.none:
                self.resign(held)

    def _no_answer(self, error: SequencerError) -> ErrorCode:
        if not error.retriable:
            self._on_store_lost(error)
        return kafka_code(error, ApiFamily.GROUPS)

    # Answers, once they are stored -----------------------------------------------------------

    def answer_when_stored(self, held: CoordinatedGroup, answers: Iterable[GroupResponse]) -> None:
        """Store the group, and plan its next look. Call this after every change of the group."""
        held.group = converted(held.group)
        for token, response in answers:
            held.call_when_stored(partial(self._answer, token, response))
        self._timer.plan(held)
        self.memory.note(held.group)
        if held.needs_storing and not held.storing:
            held.storing = True
            self.spawn(self._keep_stored(held), f"storing group {held.group_id!r}")

    def _answer(self, token: Token, response: Response, stored: bool) -> None:
        waiting = self._waiting.get(token)  # None: its client is gone
        if waiting is None or waiting.done():
            return
        if stored:
            waiting.set_result(response)
        else:
            waiting.set_result(refused_as(response, ErrorCode.not_coordinator))

    async def _keep_stored(self, held: CoordinatedGroup) -> None:
        try:
            while held.needs_storing:
                revision = held.group.revision
                if not await self._store_once(held, revision):
                    return
                held.note_stored(revision)
        finally:
            held.storing = False
            if held.needs_storing:
                self.resign(held)

    async def _store_once(self, held: CoordinatedGroup, revision: int) -> bool:
        """Store the group. Returns False if the group is lost. If an answer is lost, the request is
        repeated."""
        machine = held.group.machine
        if not held.group.is_empty:
            machine.empty_since_ms = None
        elif machine.empty_since_ms is None:
            machine.empty_since_ms = self._wall_ms()
        kind = held.group.protocol_type or ""
        state, blob = stored_state(held.group), stored(held.group)
        while not held.lost:
            try:
                return await self._store.store_group(
                    self._epoch, held.group_id, held.term, revision, state, kind, blob
                )
            except SequencerUnavailableError:
                if self._owns(held.group_id) is not ErrorCode.none:
                    return False
                await asyncio.sleep(ASK_AGAIN_S)
            except SequencerError as error:
                self._on_store_lost(error)
                return False
        return False

    # Time ------------------------------------------------------------------------------------

    def expire(self) -> None:
        """Do what time does, as far as it has come."""
        now_ms = self.now_ms()
        for group_id in self._timer.due(now_ms):
            held = self._held[group_id]
            if self._owns(group_id) is not ErrorCode.none:
                self.resign(held)
                continue
            self.answer_when_stored(held, held.group.expire(now_ms))
            self._release_group(held)

    async def run(self) -> None:
        """The timer, for ever."""
        while True:
            self.expire()
            await self._timer.wait()
