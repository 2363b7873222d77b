"""Who closes an overdue writer's chain when: in turn, and nobody their own."""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, NamedTuple
from unittest.mock import patch

from bucketlog.log_format.errors import SequencerLostError, SequencerUnavailableError
from bucketlog.log_format.model import SegmentId, WriterId
from bucketlog.metadata.sequencer.client import Sequencer
from bucketlog.metadata.sequencer.requests import OverdueReason, OverdueWriter
from bucketlog.stateless_broker.epochs.end import EpochEnd
from bucketlog.stateless_broker.epochs.sealing import (
    OverdueLimits,
    OverdueWatch,
    Sealer,
)

A, B, OWN = WriterId("a"), WriterId("b"), WriterId("own")


def overdue(*writers: WriterId) -> list[OverdueWriter]:
    return [OverdueWriter(writer, 5, OverdueReason.SILENT) for writer in writers]


class Late(NamedTuple):
    """An answer that takes so long."""

    seconds: float
    told: list[OverdueWriter]


Round = list[OverdueWriter] | Late | Exception
LONG_MS = 2000


class Rounds(Sequencer):
    """What each round is told; then nothing more happens."""

    def __init__(self, rounds: Sequence[Round]) -> None:
        self.rounds = list(rounds)
        self.over = asyncio.Event()
        self.now_s = 100.0
        """The event loop's time, which only late answers move."""

    async def overdue(self, epoch: int, **_: int) -> list[OverdueWriter]:
        if not self.rounds:
            self.over.set()
            await asyncio.Event().wait()
        told = self.rounds.pop(0)
        if isinstance(told, Exception):
            raise told
        if isinstance(told, Late):
            self.now_s += told.seconds
            return told.told
        return told


class Closes(Sealer):
    def __init__(self, gate: asyncio.Event) -> None:
        self.closed: list[SegmentId] = []
        self._gate = gate

    async def close(self, first: SegmentId) -> int:
        self.closed.append(first)
        await self._gate.wait()
        return first.seq


class Watched:
    """The watch of a broker, run over `rounds`; `begun` are the writers it closed, by round."""

    def __init__(
        self,
        rounds: Sequence[Round],
        places: dict[WriterId, int] | None = None,
        *,
        silent_ms: int = 1,
        round_ms: int = 0,
    ) -> None:
        self.sequencer = Rounds(rounds)
        self.gate = asyncio.Event()
        self.sealer = Closes(self.gate)
        self.end = EpochEnd(1)
        self.begun: list[tuple[int, str]] = []
        self.has_begun = asyncio.Event()
        self._places = places or {}
        self._total = len(rounds)
        self.tasks: list[asyncio.Task[None]] = []
        self.watch = OverdueWatch(
            end=self.end,
            sequencer=self.sequencer,
            sealer=self.sealer,
            place_in_line=lambda writer: self._places.get(writer, 0),
            is_own=lambda writer: writer == OWN,
            limits=OverdueLimits(silent_ms=silent_ms, pending_ms=1, round_ms=round_ms),
        )

    def spawn(self, work: Coroutine[Any, Any, None], name: str) -> None:
        self.begun.append((self._total - len(self.sequencer.rounds), name.split()[-1]))
        self.has_begun.set()
        self.tasks.append(asyncio.create_task(work))

    async def run(self, *, close: bool = False) -> None:
        if close:
            self.gate.set()
        running = asyncio.create_task(self.watch.run(self.spawn))
        over = asyncio.create_task(self.sequencer.over.wait())
        with patch.object(asyncio.get_running_loop(), "time", lambda: self.sequencer.now_s):
            await asyncio.wait([running, over], return_when=asyncio.FIRST_COMPLETED)
        assert running.done() or over.done()
        for task in (running, over):
            task.cancel()
        await asyncio.gather(running, over, return_exceptions=True)
        if close:
            await asyncio.gather(*self.tasks)
        else:
            for task in self.tasks:
                task.cancel()
            await asyncio.gather(*self.tasks, return_exceptions=True)


async def test_the_first_in_line_closes_at_once() -> None:
    watched = Watched([overdue(A)])
    await watched.run(close=True)
    assert watched.begun == [(1, A)]
    assert watched.sealer.closed == [SegmentId(A, 5)]


async def test_the_others_follow_a_round_later_each() -> None:
    watched = Watched([overdue(A, B)] * 3, {A: 2, B: 1})
    await watched.run()
    assert watched.begun == [(2, B), (3, A)]


async def test_a_writer_that_came_back_is_waited_for_anew() -> None:
    watched = Watched([overdue(A), [], overdue(A), overdue(A)], {A: 1})
    await watched.run()
    assert watched.begun == [(4, A)]


async def test_nobody_closes_its_own_chain() -> None:
    watched = Watched([overdue(OWN)] * 3)
    await watched.run()
    assert watched.begun == []


async def test_what_is_being_closed_is_not_closed_twice() -> None:
    watched = Watched([overdue(A)] * 4)
    await watched.run()
    assert watched.begun == [(1, A)]


async def test_a_writer_that_is_overdue_after_its_closing_is_closed_again() -> None:
    """Its chain was decided up to its end, and it wrote on."""
    watched = Watched([overdue(A)] * 8)
    await watched.run(close=True)
    assert len(watched.begun) > 1


async def test_a_sequencer_that_does_not_answer_is_asked_again() -> None:
    """Whoever is silent for as long again is closed."""
    rounds: list[Round] = [SequencerUnavailableError("away"), *[Late(0.3, overdue(A))] * 5]
    watched = Watched(rounds, silent_ms=1000)
    await watched.run()
    assert watched.begun == [(5, A)]
    assert watched.end.reason is None


async def test_nobody_is_silent_just_because_the_sequencer_was_away() -> None:
    """Heartbeats have to come back first; a writer whose reservation is too old is closed."""
    stuck = [OverdueWriter(B, 5, OverdueReason.STUCK)]
    away = SequencerUnavailableError("away")
    watched = Watched([away, overdue(A), overdue(A) + stuck], silent_ms=LONG_MS)
    await watched.run()
    assert watched.begun == [(3, B)]


async def test_nobody_is_silent_just_because_the_sequencer_was_slow() -> None:
    slow = Late(0.6 * LONG_MS / 1000, overdue(A))
    watched = Watched([slow, overdue(A)], silent_ms=LONG_MS)
    await watched.run()
    assert watched.begun == []


async def test_a_sequencer_that_lost_its_state_ends_the_watch() -> None:
    watched = Watched([SequencerLostError("no state"), overdue(A)])
    await watched.run()
    assert watched.begun == []
    assert watched.end.reason is not None


async def test_a_change_of_members_begins_a_round_at_once() -> None:
    watched = Watched([overdue(A)], round_ms=10**9)
    running = asyncio.create_task(watched.run())
    watched.watch.look_now()
    await watched.has_begun.wait()
    assert watched.begun == [(1, A)]
    watched.watch.look_now()
    await running
