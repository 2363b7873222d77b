"""Repeating a call that may be repeated, until there is an answer, whatever it is.

Invariant: nothing is guessed of a lost answer; while there is none, `/readyz` names what does not
answer.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from bucketlog.log_format.backoff import Backoff
from bucketlog.log_format.errors import BucketError, SequencerUnavailableError
from bucketlog.stateless_broker.epochs.end import EpochEnd
from bucketlog.stateless_broker.health import BrokerPart, Health

T = TypeVar("T")

FIRST_PAUSE_MS = 20


class SequencerRetry:
    def __init__(self, health: Health, end: EpochEnd, *, longest_pause_ms: int) -> None:
        self._health = health
        self._end = end
        self._backoff = Backoff(FIRST_PAUSE_MS, longest_pause_ms)

    async def __call__(self, call: Callable[[], Awaitable[T]], part: BrokerPart) -> T:
        """Raises `SequencerLostError` once the epoch is over; and what no repetition helps
        against."""
        pauses_s = self._backoff.pauses_s()
        while True:
            try:
                answer = await call()
            except (SequencerUnavailableError, BucketError) as error:
                self._health.degrade(part, str(error))
                self._end.check()
                await asyncio.sleep(next(pauses_s))
            else:
                self._health.recover(part)
                return answer
