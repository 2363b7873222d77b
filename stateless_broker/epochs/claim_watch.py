"""Check, before anything is published, that the epoch is still the highest that is claimed.

A seal ends a writer only as long as the seal exists, and the seal of a closed chain is deleted in
the end. A broker may have been paused, or idle beside a Redis that the others have left. It might
then find the next key of its chain free, write there, and publish to a sequencer that does not know
of the new epoch. Nobody else would ever read such a record.

Invariant: a published segment was written within `fresh_ms` after a look that found no later epoch.
A claim comes before the floor of its epoch. A floor is older than the safety age before anything
below it is deleted, and `fresh_ms` is a small part of that age. So all the seals of this epoch's
chains still existed when the segment was written. Claims themselves are never deleted.
"""

import asyncio
from collections.abc import Awaitable, Callable

from bucketlog.log_format.errors import SequencerLostError
from bucketlog.log_format.model import WallClock

FRESH_PARTS = 24
"""A look is fresh for the safety age divided by this number."""


class ClaimWatch:
    """`highest_claim` lists the claims. Of two clocks, the one by which more time has passed
    counts: one may stop while a machine sleeps, the other may be set back."""

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
        """Check that no later epoch is claimed, after a segment was written to the bucket. Raises
        `SequencerLostError` if a later epoch is claimed, and the bucket's errors."""
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
