"""Long work on the event loop, a slice of it at a time.

Invariants: nobody works for longer than a slice (a few milliseconds) before all events that came
meanwhile have had their turn; of all that is at long work, one has a slice between two turns, in
the order in which they asked. Work of less than a slice waits for nobody. Slices are counted in
units, not in time: a simulation runs the same way each time.
"""

import asyncio
from collections.abc import Iterable

SLICE_UNITS = 1_000
"""A unit is a few microseconds: a partition or a name that is answered."""


class Turns:
    """One for a broker."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self.slices = 0
        """Begun after others had their turn."""

    async def work(self, steps: Iterable[int]) -> None:
        """Exhaust `steps`, each of which does some work and gives its units."""
        slices = Slices(self)
        for units in steps:
            await slices.spend(units)

    async def next(self) -> None:
        """Return when it is the caller's turn again."""
        async with self._lock:
            await asyncio.sleep(0)
        self.slices += 1


class Slices:
    """Those of one long work."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._spent = 0

    async def spend(self, units: int) -> None:
        """So much was done; returns when there is a slice for more."""
        self._spent += units
        if self._spent >= SLICE_UNITS:
            self._spent = 0
            await self._turns.next()
