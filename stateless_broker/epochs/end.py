"""The end of an epoch, as one broker knows it.

Invariant: an epoch that is over stays over. Any part of the broker that finds out reports it here.
All work within the epoch asks before it changes anything. Only the next epoch's fold shows what
came of it.
"""

import logging
from collections.abc import Callable

from bucketlog.log_format.errors import SequencerLostError

logger = logging.getLogger(__name__)


class EpochEnd:
    """The end of an epoch. `reason` says why the epoch is over; None while it lasts."""

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.reason: str | None = None
        self._on_end: list[Callable[[], None]] = []

    def on_end(self, callback: Callable[[], None]) -> None:
        self._on_end.append(callback)

    def end(self, reason: str) -> None:
        """The sequencer lost its state, or another epoch has begun. The first reason stays."""
        if self.reason is None:
            self.reason = reason
            logger.warning("epoch %d is over: %s", self.epoch, reason)
            for callback in self._on_end:
                callback()

    def check(self) -> None:
        """Check that the epoch lasts. Raises `SequencerLostError` if it is over."""
        if self.reason is not None:
            raise SequencerLostError(self.reason)
