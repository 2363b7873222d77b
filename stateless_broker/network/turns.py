"""Runs long work on the event loop in slices.

Invariants: after each slice, the event loop handles `ROUNDS` rounds of events. During these
rounds, no long task gets a slice. Long tasks take turns in the order of their requests. Work
shorter than a slice never waits.

A slice ends after `SLICE_S` seconds or `SLICE_UNITS` units of work, whichever comes first. A
Produce request needs about fifteen rounds of events, so slices must be short. In a simulation, no
time passes within a slice: only units end slices, and the simulation is deterministic.
"""

import asyncio
from collections.abc import Callable, Iterable

SLICE_UNITS = 1_000
"""A unit is a few microseconds: one partition or one name of a response."""
SLICE_S = 0.0005
ROUNDS = 4
"""Rounds of events after a slice. A round without events takes about 10 µs."""


class Turns:
    """Shares the event loop between long tasks; one instance per process. `now_s` is a monotonic
    clock in seconds. Without a clock, only units of work end slices."""

    def __init__(self, now_s: Callable[[], float] = lambda: 0.0) -> None:
        self.now_s = now_s
        self._lock = asyncio.Lock()
        self.slices = 0
        """Number of slices that started after `ROUNDS` rounds of events."""

    async def work(self, steps: Iterable[int]) -> None:
        """Run `steps` to the end. Each step does some work and yields its units."""
        slices = Slices(self)
        for units in steps:
            await slices.spend(units)

    async def next(self) -> None:
        """Wait until it is the caller's turn again."""
        async with self._lock:
            for _ in range(ROUNDS):
                await asyncio.sleep(0)
        self.slices += 1


class Slices:
    """The slices of one long task."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._spent = 0
        self._end_s = turns.now_s() + SLICE_S

    async def spend(self, units: int) -> None:
        """Count `units` of finished work; returns when the task may continue."""
        self._spent += units
        turns = self._turns
        if self._spent >= SLICE_UNITS or turns.now_s() >= self._end_s:
            self._spent = 0
            await turns.next()
            self._end_s = turns.now_s() + SLICE_S
