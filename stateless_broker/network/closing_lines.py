"""Log lines about connections that the broker closes: a few per minute, the rest are counted.

A client that sends garbage in a loop cannot flood the log. Invariant: a line names each closed
connection, or the next line counts it.
"""

import logging
from collections.abc import Callable

logger = logging.getLogger(__name__)


class ClosingLines:
    def __init__(self, *, per_minute: int, now_s: Callable[[], float]) -> None:
        self._per_minute = per_minute
        self._now_s = now_s
        self._left = float(per_minute)
        self._at_s = now_s()
        self.unwritten = 0
        """Connections closed since the last line."""

    def closed(self, peer: str, reason: str) -> None:
        now_s = self._now_s()
        self._left = min(
            float(self._per_minute), self._left + (now_s - self._at_s) * self._per_minute / 60
        )
        self._at_s = now_s
        if self._left < 1:
            self.unwritten += 1
            return
        self._left -= 1
        if self.unwritten:
            logger.info("%d more connections were closed without a log line", self.unwritten)
            self.unwritten = 0
        logger.info("closing the connection of %s: %s", peer, reason)
