"""Fetch: plan by bisection in the view, long-poll on the view, read ranges, send them as they are.

Invariants: a full request is answered for each of its partitions, a request of a session only for
those with news. A partition that is named twice is answered once, with the last values. A request
of a session is taken once: the session's epoch grows with each.

Source: KIP-227 (sessions), Kafka's KafkaApis.handleFetch and FetchManager.newContext.
"""

from collections.abc import Sequence
from functools import partial

from kio.schema.errors import ErrorCode

from bucketlog.log_format.model import Buffer
from bucketlog.log_format.transactions import READ_COMMITTED
from bucketlog.log_format.wire import fetch
from bucketlog.stateless_broker.fetch.fetch_session import FetchSession
from bucketlog.stateless_broker.fetch.session_cache import FetchSessions
from bucketlog.stateless_broker.handlers.fetch_lookup import FetchLookup
from bucketlog.stateless_broker.handlers.fetch_plan import PlannedPartitions
from bucketlog.stateless_broker.handlers.fetch_waiting import FetchWaiting
from bucketlog.stateless_broker.handlers.partition_reads import PartitionReads
from bucketlog.stateless_broker.handlers.session_plan import SessionPlan
from bucketlog.stateless_broker.network.apis import Request
from bucketlog.stateless_broker.network.connection import ANONYMOUS
from bucketlog.stateless_broker.network.turns import Slices, Turns


class FetchHandler:
    def __init__(
        self,
        *,
        lookup: FetchLookup,
        waiting: FetchWaiting,
        reads: PartitionReads,
        sessions: FetchSessions,
        turns: Turns,
    ) -> None:
        self._lookup = lookup
        self._waiting = waiting
        self._reads = reads
        self._sessions = sessions
        self._turns = turns

    async def __call__(self, request: Request, message: fetch.FetchRequest) -> list[Buffer]:
        if not message.is_full:
            return await self._fetch_changes(request, message)
        if message.session_id != fetch.NO_SESSION:
            self._sessions.close(message.session_id, _owner_of(request))
        return await self._fetch_all(request, message)

    async def _fetch_all(self, request: Request, message: fetch.FetchRequest) -> list[Buffer]:
        """Answer for all partitions that the request names."""
        committed_only = message.isolation_level == READ_COMMITTED
        planned = PlannedPartitions(message.partitions, committed_only=committed_only)
        await self._lookup.look_up(planned, request)
        await self._waiting.wait_watched(message, planned)
        results = await self._reads.read(request, message, planned)
        session_id = fetch.NO_SESSION
        if results is not None and message.session_epoch == fetch.FIRST_EPOCH:
            session_id = await self._open(request, message, results)
        return _response(request, ErrorCode.none, results or (), session_id)

    async def _open(
        self,
        request: Request,
        message: fetch.FetchRequest,
        results: Sequence[fetch.FetchPartitionData],
    ) -> int:
        """A session of the partitions of the request. Returns its id, or `NO_SESSION`."""
        if not self._sessions.may_keep(message.partitions.topic_names()):
            return fetch.NO_SESSION
        session = self._sessions.open(
            len(results),
            _owner_of(request),
            request.connection,
            uses_topic_ids=request.header.api_version >= fetch.TOPIC_IDS_FROM,
        )
        if session is None:
            return fetch.NO_SESSION
        session.follow(
            self._lookup.basis(request), committed_only=message.isolation_level == READ_COMMITTED
        )
        slices, epoch = Slices(self._turns), session.epoch
        for wanted, result in zip(message.partitions, results, strict=True):
            session.settle(session.put(wanted), result)
            await slices.spend(1)
            if session.epoch != epoch:  # evicted meanwhile
                return fetch.NO_SESSION
        return session.id

    async def _fetch_changes(self, request: Request, message: fetch.FetchRequest) -> list[Buffer]:
        """Answer for the partitions of a session that have news."""
        session = self._session_of(request, message)
        if isinstance(session, ErrorCode):
            return _response(request, session)
        epoch = session.advance()
        if not await self._update(session, epoch, request, message):
            return _end_of(request, session)
        if not len(session):
            self._sessions.close(session.id, session.owner)
            return await self._fetch_all(request, message)
        committed_only = message.isolation_level == READ_COMMITTED
        session.follow(self._lookup.basis(request), committed_only=committed_only)
        look_up = partial(self._lookup.look_up, request=request)
        plan = SessionPlan(session, epoch, look_up, committed_only=committed_only)
        await plan.extend(session.pending)
        await self._waiting.wait(message, plan)
        if not plan.is_in_order:
            plan = SessionPlan(session, epoch, look_up, committed_only=committed_only)
            await plan.extend(session.pending)
        results = await self._reads.read(request, message, plan.planned)
        if plan.is_over:
            return _end_of(request, session)
        news = [
            result
            for part, result in zip(plan.parts, results or (), strict=results is not None)
            if session.settle(part, result)
        ]
        return _response(request, ErrorCode.none, news, session.id)

    async def _update(
        self, session: FetchSession, epoch: int, request: Request, message: fetch.FetchRequest
    ) -> bool:
        """Change the session as the request says. Returns False if the session was closed, or a
        later request came, before the end: the rest of the request is then out of date."""
        slices, new = Slices(self._turns), 0
        for wanted in message.partitions:
            new += not session.has(wanted)
            await slices.spend(1)
            if session.epoch != epoch:
                return False
        if new and not self._sessions.use(session, request.connection, len(session) + new):
            return False
        for wanted in message.partitions:
            session.put(wanted)
            await slices.spend(1)
            if session.epoch != epoch:
                return False
        for key, number in message.forgotten:
            session.forget(key, number)
            await slices.spend(1)
            if session.epoch != epoch:
                return False
        return True

    def _session_of(
        self, request: Request, message: fetch.FetchRequest
    ) -> FetchSession | ErrorCode:
        """The session of an incremental request, or the error of the whole response."""
        session = self._sessions.find(message.session_id, _owner_of(request))
        if session is None:
            return ErrorCode.fetch_session_id_not_found
        if message.session_epoch != session.epoch:
            return ErrorCode.invalid_fetch_session_epoch
        if session.uses_topic_ids != (request.header.api_version >= fetch.TOPIC_IDS_FROM):
            return ErrorCode.fetch_session_topic_id_error
        # Each is named once, so the session will have at least as many as the request.
        partitions = max(len(session), len(message.partitions))
        if not self._sessions.use(session, request.connection, partitions):
            return ErrorCode.fetch_session_id_not_found
        if not self._sessions.may_keep(message.partitions.topic_names()):
            self._sessions.close(session.id, session.owner)
            return ErrorCode.fetch_session_id_not_found
        return session


def _owner_of(request: Request) -> str:
    """The client that a session belongs to: its principal, or the address of a client without a
    login."""
    connection = request.connection
    return connection.payer if connection.principal == ANONYMOUS else connection.principal


def _end_of(request: Request, session: FetchSession) -> list[Buffer]:
    """The answer to a request whose session was closed, or used by a later request."""
    if session.is_closed:
        return _response(request, ErrorCode.fetch_session_id_not_found)
    error = ErrorCode.invalid_fetch_session_epoch
    return _response(request, error, session_id=session.id)


def _response(
    request: Request,
    error: ErrorCode,
    results: Sequence[fetch.FetchPartitionData] = (),
    session_id: int = fetch.NO_SESSION,
) -> list[Buffer]:
    return fetch.write_response(
        request.header.api_version,
        error,
        results,
        throttle_ms=request.throttle_ms(),
        session_id=session_id,
    )
