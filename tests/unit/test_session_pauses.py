"""Long requests of a fetch session pause. Then the session may end, or get a later request."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire import fetch
from bucketlog.stateless_broker.fetch.fetch_session import FetchSession
from bucketlog.stateless_broker.fetch.watching import ChangedRows
from tests.models.partition_batches import PARTITION
from tests.rigs.broker_rig import until
from tests.rigs.session_client import SessionClient
from tests.rigs.tiered_log import TOPIC, TieredLog

PARTITIONS = 50
SLICE_UNITS = 10
PAUSES_AT_LEAST = 5
PARTITIONS_MAX = 10_000
WAIT_MS = 60_000
Act = Callable[[], Awaitable[object]]


@pytest.fixture(autouse=True)
def short_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bucketlog.stateless_broker.network.turns.SLICE_UNITS", SLICE_UNITS)


class PausedLog(TieredLog):
    """Something happens in one of the pauses."""

    def __init__(self) -> None:
        super().__init__(partitions=PARTITIONS)
        self.client = SessionClient(self)
        self.turns.next = self._pause  # type: ignore[method-assign]  # the pauses of all handlers
        self._left = 0
        self._act: Act | None = None

    def in_pause(self, number: int, act: Act) -> None:
        """Do `act` in the pause with this number, from now on."""
        self._left, self._act = number, act

    @property
    def has_acted(self) -> bool:
        return self._act is None

    async def _pause(self) -> None:
        self._left -= 1
        if self._left < 0 and self._act is not None:
            act, self._act = self._act, None
            await act()

    def want(self, partitions: int) -> None:
        self.client.offsets = {
            (TOPIC, PARTITION.partition + number): 0 for number in range(partitions)
        }

    def session(self) -> Any:
        return self.sessions.find(self.client.session_id, self.client.connection.payer)

    async def close_all(self) -> None:
        for session in list(self.sessions._sessions.values()):
            self.sessions.close(session.id, session.owner)

    async def answer(self, message: fetch.FetchRequest) -> Any:
        return await self.exchange(message, client=self.client.connection)


def at(offset: int, *numbers: int) -> fetch.FetchPartitions:
    return fetch.FetchPartitions(
        fetch.FetchedPartition(TOPIC, None, PARTITION.partition + number, -1, offset, 1_000)
        for number in numbers
    )


async def in_each_pause(attempt: Callable[[int], Awaitable[PausedLog]]) -> None:
    """Attempt with each pause of the request in turn."""
    number = 0
    while (await attempt(number)).has_acted:
        number += 1
    assert number >= PAUSES_AT_LEAST


async def test_a_session_that_ends_while_it_grows_leaves_no_watch() -> None:
    async def attempt(pause: int) -> PausedLog:
        log = PausedLog()
        log.want(1)
        assert await log.client.poll() is not None
        log.want(PARTITIONS)
        log.in_pause(pause, log.close_all)
        told = await log.client.poll()
        if log.has_acted:
            assert told is None
            assert log.client.errors == [ErrorCode.fetch_session_id_not_found]
            assert (len(log.sessions), log.watchers.watched) == (0, 0)
        else:
            assert log.watchers.watched == PARTITIONS
        return log

    await in_each_pause(attempt)


async def test_a_session_that_ends_while_it_opens_leaves_no_watch() -> None:
    async def attempt(pause: int) -> PausedLog:
        log = PausedLog()
        log.want(PARTITIONS)
        log.in_pause(pause, log.close_all)
        assert await log.client.poll() is not None
        is_open = log.client.session_id != fetch.NO_SESSION
        assert len(log.sessions) == is_open
        assert log.watchers.watched == PARTITIONS * is_open
        return log

    await in_each_pause(attempt)


async def test_an_earlier_request_changes_nothing_after_a_later_one() -> None:
    last = PARTITIONS - 1

    async def attempt(pause: int) -> PausedLog:
        log = PausedLog()
        log.want(PARTITIONS)
        assert await log.client.poll() is not None
        session = log.session()
        later = fetch.FetchRequest(0, 1, 1 << 20, 0, session.id, 2, at(7, last))
        log.in_pause(pause, lambda: log.answer(later))
        earlier = fetch.FetchRequest(
            0, 1, 1 << 20, 0, session.id, 1, at(0, *range(PARTITIONS)), [((TOPIC, None), 0)]
        )
        answer = await log.answer(earlier)
        (part,) = (
            part for part in session.partitions() if part.number == PARTITION.partition + last
        )
        if log.has_acted:
            assert answer.error_code is ErrorCode.invalid_fetch_session_epoch
            assert answer.session_id == session.id
            assert part.fetch_offset == 7
        return log

    await in_each_pause(attempt)


async def test_a_request_whose_session_ends_before_the_wait_does_not_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wait = ChangedRows.wait

    async def attempt(pause: int) -> PausedLog:
        log = PausedLog()
        log.want(PARTITIONS)
        assert await log.client.poll() is not None
        log.client.sent.clear()  # so the request names all partitions again
        log.in_pause(pause, log.close_all)

        async def begin(changes: ChangedRows, wait_s: float) -> bool:
            assert not log.has_acted, "the session has ended"
            return await wait(changes, wait_s)

        monkeypatch.setattr(ChangedRows, "wait", begin)
        waiting = asyncio.create_task(log.client.poll(wait_ms=WAIT_MS))
        await until(
            lambda: waiting.done() or log.has_acted or log.session().changes._waiter is not None
        )
        if not log.has_acted:
            await log.close_all()
        assert await waiting is None
        assert log.client.errors == [ErrorCode.fetch_session_id_not_found]
        return log

    await in_each_pause(attempt)


async def test_no_step_between_two_pauses_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Partitions join and leave."""
    log = PausedLog()
    steps = 0
    longest = 0

    def counted(method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            nonlocal steps, longest
            steps += 1
            longest = max(longest, steps)
            return method(*arguments)

        return call

    async def pause() -> None:
        nonlocal steps
        steps = 0

    log.want(1)
    assert await log.client.poll() is not None
    for name in ("has", "put", "forget"):
        monkeypatch.setattr(FetchSession, name, counted(getattr(FetchSession, name)))
    log.turns.next = pause  # type: ignore[method-assign]  # counts the work between pauses
    log.want(PARTITIONS)
    assert await log.client.poll() is not None
    log.want(1)
    assert await log.client.poll() is not None
    assert len(log.session()) == 1
    assert longest == SLICE_UNITS


async def test_a_request_with_too_many_partitions_is_refused_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = PausedLog()
    log.want(1)
    assert await log.client.poll() is not None
    looked_at: list[object] = []
    monkeypatch.setattr(FetchSession, "has", lambda _, wanted: looked_at.append(wanted))
    log.want(PARTITIONS_MAX + 2)
    assert await log.client.poll() is None
    assert log.client.errors == [ErrorCode.fetch_session_id_not_found]
    assert (looked_at, len(log.sessions), log.watchers.watched) == ([], 0, 0)
