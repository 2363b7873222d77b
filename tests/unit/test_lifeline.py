"""When a lifeline is begun anew, and that a heartbeat follows each end."""

import asyncio
from collections.abc import Callable
from unittest.mock import patch

from bucketlog.log_format.backoff import Backoff
from bucketlog.log_format.errors import SequencerUnavailableError
from bucketlog.stateless_broker.membership import lifeline
from bucketlog.stateless_broker.membership.lifeline import Lifeline
from tests.rigs.broker_rig import until

FIRST_PAUSE_S = lifeline.BACKOFF.first_pause_ms / 1000


class Held:
    """A lifeline that begins at once, and ends as the test says."""

    def __init__(self) -> None:
        self.begun = 0
        self.hurried = 0
        self.fails = asyncio.Event()
        self.lifeline = Lifeline(self._hold, self._hurry)

    def _hurry(self) -> None:
        self.hurried += 1

    async def _hold(self, heard: Callable[[], None], is_missed: Callable[[], bool]) -> None:
        self.begun += 1
        heard()
        while not is_missed():
            if self.fails.is_set():
                self.fails.clear()
                raise SequencerUnavailableError("closed")
            await asyncio.sleep(0)

    def note(self, *, is_seen: bool) -> None:
        """A heartbeat that was sent after all that happened so far."""
        now = asyncio.get_running_loop().time()
        self.lifeline.note_heartbeat(now + 1, is_seen=is_seen)


async def test_one_that_the_server_does_not_see_is_begun_anew() -> None:
    held = Held()
    with patch.object(lifeline, "BACKOFF", Backoff(0, 0)):
        running = asyncio.create_task(held.lifeline.run())
        await until(lambda: held.begun == 1)
        held.lifeline.note_heartbeat(0.0, is_seen=False)  # sent before it began
        held.note(is_seen=True)
        assert held.begun == 1
        held.note(is_seen=False)
        await until(lambda: held.begun > 1)
    running.cancel()


async def test_a_heartbeat_follows_its_beginning_and_its_end() -> None:
    held = Held()
    running = asyncio.create_task(held.lifeline.run())
    await until(lambda: held.hurried == 1)
    held.fails.set()
    await until(lambda: held.hurried >= 2)
    await until(lambda: held.begun == 2)
    running.cancel()


async def test_pauses_grow_until_the_server_sees_one() -> None:
    held, real = Held(), asyncio.sleep
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        if seconds >= FIRST_PAUSE_S:
            pauses.append(seconds)
        await real(0)

    with patch.object(asyncio, "sleep", sleep):
        running = asyncio.create_task(held.lifeline.run())
        for number in range(11):
            while held.begun == number:
                await real(0)
            if number == 9:
                held.note(is_seen=True)
            held.fails.set()
        await until(lambda: len(pauses) >= 11)
        running.cancel()
    assert pauses[:3] == [FIRST_PAUSE_S, 2 * FIRST_PAUSE_S, 4 * FIRST_PAUSE_S]
    assert max(pauses) == lifeline.BACKOFF.longest_pause_ms / 1000
    assert pauses[9] == FIRST_PAUSE_S
