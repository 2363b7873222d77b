"""Repeating a call that may be repeated, until there is an answer, whatever it is.

Invariant: nothing is guessed of a lost answer; while there is none, `/readyz` names what does not
answer.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from bucketlog.errors import BucketError, SequencerError, SequencerUnavailableError
from stateless_broker.health import Health

T = TypeVar("T")

FIRST_PAUSE_MS = 20


class UntilAnswered:
    def __init__(self, health: Health, *, longest_pause_ms: int) -> None:
        self._health = health
        self._longest_pause_ms = longest_pause_ms

    async def __call__(self, call: Callable[[], Awaitable[T]], part: str) -> T:
        """Raises `SequencerError` once writing is stopped, and what no repetition helps against."""
        pause_ms = FIRST_PAUSE_MS
        while True:
            try:
                answer = await call()
            except (SequencerUnavailableError, BucketError) as error:
                self._health.degrade(part, str(error))
                if self._health.stopped is not None:
                    raise SequencerError(self._health.stopped) from error
                await asyncio.sleep(pause_ms / 1000)
                pause_ms = min(pause_ms * 2, self._longest_pause_ms)
            else:
                self._health.recover(part)
                return answer
