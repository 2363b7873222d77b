"""How long to wait before a retry: the one policy for every retry. Pure.

Pauses double from the first to the longest. Each is shortened at random by up to `jitter` of its
length, so that callers that failed together do not retry together. Clock and randomness are passed
in. Exactly one random number is drawn for each pause with jitter: the simulation depends on that.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from random import Random

DOUBLINGS_MAX = 64
"""More than any pause needs to reach the longest."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """`jitter` is the fraction of a pause that may be cut: 0 is none, 1 is all. No try begins later
    than `give_up_after_ms` after the first one began; by default, tries never end."""

    first_pause_ms: float
    longest_pause_ms: float
    jitter: float = 0.0
    give_up_after_ms: float = math.inf

    def pause_s(self, number: int, drawn: float = 0.0) -> float:
        """The pause after `number` others; `drawn` is a random number from [0, 1)."""
        pause_ms = self.first_pause_ms * 2.0 ** min(number, DOUBLINGS_MAX)
        return min(pause_ms, self.longest_pause_ms) * (1 - drawn * self.jitter) / 1000

    def pauses_s(self, random: Random | None = None) -> Iterator[float]:
        """An endless series of pauses. Without `random`, they have no jitter."""
        for number in count():
            yield self.pause_s(number, random.random() if random and self.jitter else 0.0)


class Retries:
    """The pauses of one call, until its time is up."""

    def __init__(self, backoff: Backoff, *, random: Random, monotonic: Callable[[], float]) -> None:
        self._pauses_s = backoff.pauses_s(random)
        self._monotonic = monotonic
        self._last_try_s = monotonic() + backoff.give_up_after_ms / 1000

    def pause_s(self, error: Exception) -> float:
        """How long to wait now; raises `error` if the next try would begin too late."""
        pause_s = next(self._pauses_s)
        if self._monotonic() + pause_s > self._last_try_s:
            raise error
        return pause_s
