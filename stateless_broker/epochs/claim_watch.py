"""Is the epoch still the highest that is claimed? Asked before anything is published.

A seal ends a writer only while it is there, and a closed chain's is deleted in the end. A broker
that was paused, or idle beside a Redis that the others have left, might then find the next key of
its chain free, write there, and publish to a sequencer that knows no better: a record that nobody
else will ever read.

Invariant: what is published was written within `fresh_ms` after a look that found no later epoch.
A claim comes before the floor of its epoch, a floor is older than the safety age before anything
below it goes, and `fresh_ms` is a small part of that: so all the seals of this epoch's chains were
still there when the segment was written. Claims themselves are never deleted.
"""

import asyncio
from collections.abc import Awaitable, Callable

from bucketlog.log_format.errors import SequencerLostError
from bucketlog.log_format.model import WallClock

FRESH_PARTS = 24
"""A look is fresh for the safety age divided by this number."""


class ClaimWatch:
    """`highest_claim` lists the claims. Time is taken by two clocks, whichever says that more of it
    has passed: one may be still while a machine sleeps, the other may be set back."""

    def __init__(
        self,
        *,
        epoch: int,
        highest_claim: Callable[[], Awaitable[int]],
        fresh_ms: int,
        now_ms: WallClock,
    ) -> None:
        self._epoch = epoch
        self._highest_claim = highest_claim
        self._fresh_ms = fresh_ms
        self._now_ms = now_ms
        self._looked: tuple[int, float] | None = None
        self._looking = asyncio.Lock()

    async def check(self) -> None:
        """Of a segment that is in the bucket already. Raises `SequencerLostError` where a later
        epoch is claimed, and the bucket's errors."""
        if self._is_fresh():
            return
        async with self._looking:
            if self._is_fresh():
                return
            began = self._now_ms(), asyncio.get_running_loop().time()
            claimed = await self._highest_claim()
            if claimed > self._epoch:
                raise SequencerLostError(
                    f"epoch {claimed} is claimed: what this broker has written in epoch "
                    f"{self._epoch} is for the next one to settle"
                )
            self._looked = began

    def _is_fresh(self) -> bool:
        if self._looked is None:
            return False
        wall_ms, at = self._looked
        passed_ms = (asyncio.get_running_loop().time() - at) * 1000
        return max(abs(self._now_ms() - wall_ms), passed_ms) <= self._fresh_ms
