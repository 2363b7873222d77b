"""The health of a broker: whether it may write, and if not, why and what helps.

Invariant: once stopped, a broker never writes again, because another epoch does not settle the
cause (a bug, damaged objects). A new epoch does settle the loss of a sequencer: writing pauses
between two epochs. Reading continues from the view.
"""

import logging
from collections.abc import Callable
from enum import Enum, StrEnum, auto
from typing import Protocol

logger = logging.getLogger(__name__)


class Lifetime(Enum):
    """The longest time that a part stays degraded if nothing recovers it."""

    PROCESS = auto()
    """The part stays degraded until it works again, across epochs."""
    EPOCH = auto()
    """The part stays degraded until the work of the epoch has ended: the next epoch has a new
    one."""
    DUTY = auto()
    """The part stays degraded until the duty runs again, in the next epoch at the latest."""


class BrokerPart(StrEnum):
    """A part of the broker that can be degraded; `/readyz` and the metrics show its value."""

    lifetime: Lifetime

    def __new__(cls, name: str, lifetime: Lifetime) -> "BrokerPart":
        part = str.__new__(cls, name)
        part._value_ = name
        part.lifetime = lifetime
        return part

    CERTIFICATES = "certificates", Lifetime.PROCESS
    HEARTBEAT = "heartbeat", Lifetime.PROCESS
    JOINING = "joining", Lifetime.PROCESS
    READING = "reading", Lifetime.PROCESS
    TOKEN_KEYS = "token_keys", Lifetime.PROCESS
    BUCKET = "bucket", Lifetime.EPOCH
    REDIS = "redis", Lifetime.EPOCH
    SEALING = "sealing", Lifetime.EPOCH
    SEQUENCER = "sequencer", Lifetime.EPOCH
    STREAM = "stream", Lifetime.EPOCH
    WRITER = "writer", Lifetime.EPOCH
    CHECKPOINTS = "checkpoints", Lifetime.DUTY
    COMPACTION = "compaction", Lifetime.DUTY
    DELETION = "deletion", Lifetime.DUTY
    PRODUCERS = "producers", Lifetime.DUTY
    RENEWAL = "renewal", Lifetime.DUTY
    RETENTION = "retention", Lifetime.DUTY


class Readiness(Protocol):
    """The part of the health that `/readyz` shows."""

    @property
    def ready(self) -> bool: ...

    def report(self) -> dict[str, str]:
        """Return the reasons why the broker is not ready, by part."""


class Health:
    """The health of a broker. `degraded` is temporary (bucket or Redis unreachable); `stopped` is
    for good."""

    def __init__(self) -> None:
        self.stopped: str | None = None
        self.started = False
        self.epoch = 0
        """The epoch that this broker is in, or was in last."""
        self.epochs_ended = 0
        self.runs_valkey: Callable[[], bool] = lambda: False
        """Whether this broker runs the sequencer's Valkey; for the metrics."""
        self._between_epochs: str | None = None
        self._degraded: dict[BrokerPart, str] = {}
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

    def degrade(self, part: BrokerPart, reason: str) -> None:
        if part not in self._degraded:
            logger.warning("%s is degraded: %s", part, reason)
        self._degraded[part] = reason

    def recover(self, part: BrokerPart) -> None:
        if self._degraded.pop(part, None) is not None:
            logger.info("%s works again", part)

    def recover_all(self, lifetime: Lifetime) -> None:
        """Recover all parts with this lifetime. After it, nothing else would recover them."""
        for part in BrokerPart:
            if part.lifetime is lifetime:
                self.recover(part)

    def is_degraded(self, part: BrokerPart) -> bool:
        return part in self._degraded

    @property
    def degraded(self) -> frozenset[BrokerPart]:
        return frozenset(self._degraded)

    @property
    def is_between_epochs(self) -> bool:
        """Whether the only reason why this broker cannot write is that it joins the next epoch.
        Usually, all brokers join it at the same time."""
        is_broken = BrokerPart.BUCKET in self._degraded or BrokerPart.WRITER in self._degraded
        return self._between_epochs is not None and self.stopped is None and not is_broken

    @property
    def cannot_write(self) -> str | None:
        """Why this broker cannot write to the log now; None: writing works."""
        broken = self._degraded.get(BrokerPart.BUCKET) or self._degraded.get(BrokerPart.WRITER)
        return self.stopped or self._between_epochs or broken

    @property
    def ready(self) -> bool:
        return not self.report()

    def report(self) -> dict[str, str]:
        """Return the reasons why the broker is not ready, by part."""
        report = {str(part): reason for part, reason in self._degraded.items()}
        writing = self.stopped or self._between_epochs
        if writing is not None:
            report["writing"] = writing
        if not self.started:
            report["start"] = "the broker is starting"
        return report
