"""Repeating a call that may be repeated, until there is an answer, whatever it is.

Invariant: nothing is guessed of a lost answer; while there is none, `/readyz` names what does not
answer.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from bucketlog.errors import BucketError, SequencerUnavailableError
from stateless_broker.epochs.end import EpochEnd
from stateless_broker.health import Health

T = TypeVar("T")

FIRST_PAUSE_MS = 20


class UntilAnswered:
    def __init__(self, health: Health, end: EpochEnd, *, longest_pause_ms: int) -> None:
        self._health = health
        self._end = end
        self._longest_pause_ms = longest_pause_ms

    async def __call__(self, call: Callable[[], Awaitable[T]], part: str) -> T:
        """Raises `SequencerLostError` once the epoch is over; and what no repetition helps
        against."""
        pause_ms = FIRST_PAUSE_MS
        while True:
            try:
                answer = await call()
            except (SequencerUnavailableError, BucketError) as error:
                self._health.degrade(part, str(error))
                self._end.check()
                await asyncio.sleep(pause_ms / 1000)
                pause_ms = min(pause_ms * 2, self._longest_pause_ms)
            else:
                self._health.recover(part)
                return answer
