"""The lifeline of this broker: a subscription at the sequencer, which ends with the process.

Invariant: whenever the lifeline begins or ends, this broker sends a heartbeat at once. So the other
brokers miss the lifeline of a live broker only until that heartbeat arrives.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from bucketlog.log_format.backoff import Backoff
from bucketlog.log_format.errors import BucketlogError

logger = logging.getLogger(__name__)

BACKOFF = Backoff(first_pause_ms=50, longest_pause_ms=5000)

Hold = Callable[[Callable[[], None], Callable[[], bool]], Awaitable[None]]
"""Holds the lifeline of one incarnation until it ends: `ScriptRunner.hold_lifeline`."""


class Lifeline:
    """Keeps this broker's lifeline. `hurry` asks for a heartbeat at once."""

    def __init__(self, hold: Hold, hurry: Callable[[], None]) -> None:
        self._hold = hold
        self._hurry = hurry
        self._held_since = float("inf")
        """A time of the event loop; infinite while no lifeline is held."""
        self._is_missed = False
        self._pauses_s = BACKOFF.pauses_s()

    def note_heartbeat(self, asked_at: float, *, is_seen: bool) -> None:
        """Note whether the server saw the lifeline, in a heartbeat that was sent at `asked_at`. If
        not, the lifeline leads to another server, or is broken: a new one begins."""
        if is_seen:
            self._pauses_s = BACKOFF.pauses_s()
        elif asked_at > self._held_since:
            self._is_missed = True

    def _heard(self) -> None:
        if self._held_since == float("inf"):
            self._held_since = asyncio.get_running_loop().time()
        self._hurry()

    async def run(self) -> None:
        """Keep the lifeline forever. Without one, only timeouts decide whether a broker lives."""
        last = ""
        while True:
            self._held_since, self._is_missed = float("inf"), False
            reason = "the server does not see it"
            try:
                await self._hold(self._heard, lambda: self._is_missed)
            except BucketlogError as error:
                reason = str(error)
            if reason != last:
                logger.info("the lifeline has ended: %s", reason)
                last = reason
            self._hurry()
            await asyncio.sleep(next(self._pauses_s))
