"""Whether this broker may write, and if not, why and what helps.

Invariant: once stopped, a broker never writes again: what stopped it (a bug, damaged objects) is
not settled by another epoch. A lost sequencer is: writing pauses between two epochs. Reading goes
on from the view.
"""

import logging
from collections.abc import Callable

logger = logging.getLogger(__name__)


class Health:
    """`degraded` comes and goes (bucket or Redis unreachable); `stopped` is for good."""

    def __init__(self) -> None:
        self.stopped: str | None = None
        self.started = False
        self.epoch = 0
        """The one that this broker is in, or was in last."""
        self.epochs_ended = 0
        self._between_epochs: str | None = None
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

    def epoch_began(self, epoch: int) -> None:
        self.epoch = epoch
        self._between_epochs = None

    def epoch_ended(self, reason: str) -> None:
        self.epochs_ended += 1
        self._between_epochs = f"epoch {self.epoch} is over: {reason}; joining the next one"

    def degrade(self, part: str, reason: str) -> None:
        if part not in self._degraded:
            logger.warning("%s is degraded: %s", part, reason)
        self._degraded[part] = reason

    def recover(self, part: str) -> None:
        if self._degraded.pop(part, None) is not None:
            logger.info("%s works again", part)

    def is_degraded(self, part: str) -> bool:
        return part in self._degraded

    @property
    def degraded(self) -> frozenset[str]:
        return frozenset(self._degraded)

    @property
    def ready(self) -> bool:
        return not self.report()

    def report(self) -> dict[str, str]:
        """What keeps the broker from being ready, by part."""
        report = dict(self._degraded)
        writing = self.stopped or self._between_epochs
        if writing is not None:
            report["writing"] = writing
        if not self.started:
            report["start"] = "the broker is starting"
        return report
