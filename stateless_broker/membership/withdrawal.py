"""Decides when a broker that cannot write gives its roles to the others, and when it returns.

Pure: the broker's health and the time are passed in.
"""

import logging
from dataclasses import dataclass

from bucketlog.log_format.model import WriterId

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WithdrawalLimits:
    """A broker that cannot write for `withdrawal_ms` withdraws. Between two epochs, it withdraws
    after the longer of `withdrawal_ms` and `between_epochs_ms`. It returns when writing has worked
    for `return_ms`."""

    withdrawal_ms: int
    between_epochs_ms: int
    return_ms: int


@dataclass(frozen=True, slots=True)
class WriteState:
    """Whether a broker can write, and which brokers serve. `reason` says why the broker cannot
    write; None if it can."""

    reason: str | None
    is_between_epochs: bool
    has_substitute: bool
    """Whether another broker serves, and this broker is neither starting nor leaving."""
    is_needed: bool
    """Whether no broker serves, and this broker has the lowest node id. Two brokers may have
    withdrawn at the same time, each because the other served."""
    writer: WriterId | None


class Withdrawal:
    """Whether this broker has withdrawn. One broker always keeps its roles, so that clients have a
    broker to ask."""

    def __init__(self, limits: WithdrawalLimits) -> None:
        self._limits = limits
        self.reason: str | None = None
        """Why this broker has given its roles to the others; None if it keeps its roles."""
        self.given_up_writer: WriterId | None = None
        """The writer whose chain the others may close; None if they may close no chain."""
        self._differs_since_s: float | None = None
        """The time since which `reason` and the broker's health disagree; None if they agree."""

    def decide(self, found: WriteState, now_s: float) -> None:
        """Decide whether this broker gives its roles up, takes them back, or changes nothing.
        `now_s` is monotonic."""
        if (found.reason is None) is (self.reason is None):
            self._differs_since_s = None
            if self.reason is not None and found.is_needed:
                logger.warning("no broker serves clients: this broker takes its roles back")
                self._become(None, None)
            return
        if self._differs_since_s is None:
            self._differs_since_s = now_s
        lasts_ms = (now_s - self._differs_since_s) * 1000
        if found.reason is None:
            if lasts_ms >= self._limits.return_ms:
                logger.info("this broker can write again, and takes its roles back")
                self._become(None, None)
            return
        patience_ms = self._limits.withdrawal_ms
        if found.is_between_epochs:  # usually, the others cannot write either
            patience_ms = max(patience_ms, self._limits.between_epochs_ms)
        if lasts_ms >= patience_ms and found.has_substitute:
            logger.warning(
                "this broker cannot write, and gives its roles to the others: %s", found.reason
            )
            self._become(found.reason, found.writer)

    def _become(self, reason: str | None, writer: WriterId | None) -> None:
        self.reason, self.given_up_writer = reason, writer
        self._differs_since_s = None
