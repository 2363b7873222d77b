"""Whether this broker may write, and if not, why and what helps.

Invariant: once stopped, a broker never writes again: what stopped it (the sequencer lost state, its
chain was sealed) is settled by a new epoch only. Reading goes on from the view.
"""

import logging
from collections.abc import Callable

logger = logging.getLogger(__name__)


class Health:
    """`degraded` comes and goes (bucket or Redis unreachable); `stopped` is for good."""

    def __init__(self) -> None:
        self.stopped: str | None = None
        self.started = False
        self._degraded: dict[str, str] = {}
        self._on_stop: list[Callable[[], None]] = []

    def on_stop(self, callback: Callable[[], None]) -> None:
        self._on_stop.append(callback)

    def stop_writing(self, reason: str) -> None:
        if self.stopped is None:
            self.stopped = reason
            logger.error("writing is stopped: %s", reason)
            for callback in self._on_stop:
                callback()

    def degrade(self, part: str, reason: str) -> None:
        if part not in self._degraded:
            logger.warning("%s is degraded: %s", part, reason)
        self._degraded[part] = reason

    def recover(self, part: str) -> None:
        if self._degraded.pop(part, None) is not None:
            logger.info("%s works again", part)

    @property
    def ready(self) -> bool:
        return self.started and self.stopped is None and not self._degraded

    def report(self) -> dict[str, str]:
        """What keeps the broker from being ready, by part."""
        report = dict(self._degraded)
        if self.stopped is not None:
            report["writing"] = self.stopped
        if not self.started:
            report["start"] = "the broker is starting"
        return report
