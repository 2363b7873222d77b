"""Runs long work on the event loop in slices.

Invariants: after each slice (a few milliseconds), the event loop handles all waiting events. Only
one of all long tasks gets a slice between two rounds of events, in the order of their requests.
Work shorter than a slice never waits. Slices are counted in units of work, not in time, so that a
simulation is deterministic.
"""

import asyncio
from collections.abc import Iterable

SLICE_UNITS = 1_000
"""A unit is a few microseconds: one partition or one name of a response."""


class Turns:
    """Shares the event loop between long tasks; one instance per broker."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self.slices = 0
        """Slices that started after a round of events."""

    async def work(self, steps: Iterable[int]) -> None:
        """Run `steps` to the end. Each step does some work and yields its units."""
        slices = Slices(self)
        for units in steps:
            await slices.spend(units)

    async def next(self) -> None:
        """Wait until it is the caller's turn again."""
        async with self._lock:
            await asyncio.sleep(0)
        self.slices += 1


class Slices:
    """The slices of one long task."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._spent = 0

    async def spend(self, units: int) -> None:
        """Count `units` of finished work; returns when the task may continue."""
        self._spent += units
        if self._spent >= SLICE_UNITS:
            self._spent = 0
            await self._turns.next()
