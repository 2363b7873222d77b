"""Rules by which a broker chooses its Redis and starts a Valkey. Pure: times and results are passed
in.

Safety never depends on these rules: create-only claims and seals decide, whatever server a broker
uses. The rules make one broker start a Valkey when the configured Redis is out of reach, and make
the others follow it (docs/decisions/0021-embedded-sequencer.md):

- Between epochs, the server that the newest claim names comes first, then the configured Redis, and
  last a Valkey that the broker starts.
- Within an epoch, a broker leaves a server that does not answer only if the bucket shows that the
  epoch does not work for others either: their chains do not grow, and nobody has sealed this
  broker's chain, which takes a working sequencer.
- A broker that runs the Valkey stops it when the configured Redis has answered for some time.
"""

from dataclasses import dataclass
from enum import StrEnum, auto
from typing import NamedTuple

from bucketlog.log_format.backoff import Backoff
from bucketlog.stateless_broker.epochs.epoch_signs import EpochSigns
from bucketlog.stateless_broker.epochs.recent_count import RecentCount

BASELINE_PART = 0.4
"""The bucket is first read after this part of the time-out: requests in flight have arrived, and
enough time is left to see new writes."""
GONE_LOOKS = 2
"""Number of refused connections after which a server's process counts as ended."""
PLACE_S = 0.4
"""Brokers leave a server one after another, at this interval, in the order of their line."""


class Reach(StrEnum):
    """The result of asking a server."""

    ANSWERS = auto()
    """The server is the expected one, and is a primary."""
    GONE = auto()
    """The address refuses connections, or another server answers there: the process has ended."""
    SILENT = auto()
    """The server does not answer, or its answer is an error."""


class Wish(StrEnum):
    """Why a broker ends an epoch that others may still be in."""

    ELECT = auto()
    """The epoch's server is out of reach: claim the next epoch on another one."""
    RETURN = auto()
    """The configured Redis is back: claim the next epoch there."""
    RENEW = auto()
    """The epoch has too many closed writers: claim the next one on the same server."""


class Mandate(NamedTuple):
    """The next epoch may be claimed without a further look, as long as `epoch` is the newest."""

    epoch: int
    wish: Wish


class Step(StrEnum):
    """The action of a broker between two epochs."""

    FOLLOW = auto()
    """Use the server that the claim names."""
    CONFIGURED = auto()
    """Use the configured Redis."""
    START = auto()
    """Use a Valkey of this broker, and start it if it does not run."""
    JUDGE = auto()
    """The same as START, but only if the claimed epoch may be taken from its brokers."""
    WAIT = auto()
    """Wait for the configured Redis."""


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """`timeout_ms` is how long a server may be silent. `sealed_wait_ms` is how long a broker waits
    if others have sealed its chain. `quiet` has the pauses after signs of work. `steady` has the
    times that the configured Redis has to answer, by the number of recent moves away from it."""

    timeout_ms: int
    sealed_wait_ms: int
    quiet: Backoff
    steady: Backoff


@dataclass(frozen=True, slots=True)
class Sight:
    """The servers as a broker sees them between two epochs. `claimed` is the server of the newest
    claim; None if the claim names no server or may not be followed. `configured` is the configured
    Redis; None if there is none. `silent_ms` is how long it has not answered."""

    claimed: Reach | None
    configured: Reach | None
    silent_ms: float
    wish: Wish | None


def next_step(sight: Sight, timeout_ms: int) -> Step:
    """Return the next action. A server that answers is always preferred to one that has to be
    started."""
    if sight.wish is Wish.RETURN and sight.configured is Reach.ANSWERS:
        return Step.CONFIGURED
    if sight.claimed is Reach.ANSWERS:
        return Step.FOLLOW
    if sight.configured is Reach.ANSWERS:
        return Step.CONFIGURED
    if sight.wish is Wish.ELECT:
        return Step.START
    if sight.configured is not None and sight.silent_ms < timeout_ms:
        return Step.WAIT
    return Step.JUDGE


class OutageStep(StrEnum):
    """The action of a broker within an epoch whose server does not answer."""

    STAY = auto()
    LOOK = auto()
    """Look at the bucket, then call `Outage.note_signs`."""
    LEAVE = auto()
    """End the epoch, with a mandate."""


class Outage:
    """The server of one epoch, as one of its brokers sees it. Times are monotonic, in seconds."""

    def __init__(self, limits: ServerLimits, *, now_s: float, own: str) -> None:
        """`own` is this broker's incarnation."""
        self._limits = limits
        self._own = own
        self._heard_s = now_s
        self._forget()

    def _forget(self) -> None:
        self._signs: EpochSigns | None = None
        self._verdict_s = 0.0
        self._left_at_s: float | None = None
        self._gone_looks = 0
        self._worked = 0
        self._was_sealed = False

    def note_answer(self, at_s: float) -> None:
        """The server has answered a call that was sent at `at_s`."""
        if at_s > self._heard_s:
            self._heard_s = at_s
            self._forget()

    def silent_s(self, now_s: float) -> float:
        return now_s - self._heard_s

    def call_timeout_s(self, now_s: float) -> float:
        """The time limit of the next call: the time until the next step is due."""
        due_s = self._heard_s + self._limits.timeout_ms / 1000
        return max(due_s - now_s, PLACE_S)

    def step(self, now_s: float, *, is_gone: bool, place: int) -> OutageStep:
        """Return the action after a call that was not answered. `place` is the number of brokers
        before this one in line."""
        if is_gone:
            self._gone_looks += 1
            if self._gone_looks >= GONE_LOOKS and self._left_at_s is None:
                self._left_at_s = now_s + place * PLACE_S
        timeout_s = self._limits.timeout_ms / 1000
        if self._left_at_s is not None:
            return OutageStep.LEAVE if now_s >= self._left_at_s else OutageStep.STAY
        if self.silent_s(now_s) < timeout_s * BASELINE_PART:
            return OutageStep.STAY
        if self._signs is None or now_s >= self._verdict_s:
            return OutageStep.LOOK
        return OutageStep.STAY

    def note_signs(
        self, signs: EpochSigns, now_s: float, *, is_sealed: bool, place: int, drawn: float
    ) -> None:
        """Note what the bucket shows. `is_sealed`: others have sealed the chain of this broker's
        writer. `drawn` is a random number from [0, 1)."""
        earlier, self._signs = self._signs, signs
        if earlier is None:
            self._verdict_s = self._heard_s + self._limits.timeout_ms / 1000
        elif signs.shows_work_since(earlier, own=self._own):
            self._verdict_s = now_s + self._limits.quiet.pause_s(self._worked, drawn)
            self._worked += 1
        elif is_sealed and not self._was_sealed:
            self._was_sealed = True
            self._verdict_s = now_s + self._limits.sealed_wait_ms / 1000
        else:
            self._left_at_s = now_s + place * PLACE_S

    @property
    def reason(self) -> str:
        """Why the broker stays in the epoch, as a message for operators."""
        if self._worked:
            return "other brokers write: they reach the sequencer, and this one does not"
        if self._was_sealed:
            return "other brokers have sealed this one: they reach the sequencer"
        return "the sequencer does not answer"


class Steadiness:
    """The decision whether the log may move back to the configured Redis. After recent moves away
    from it, Redis has to answer for longer."""

    def __init__(self, steady: Backoff) -> None:
        self._steady = steady
        self._since_s: float | None = None
        self._moves = RecentCount()

    def note_move(self, now_s: float) -> None:
        """The log has moved away from the configured Redis."""
        self._since_s = None
        self._moves.add(now_s, 2 * self._steady.longest_pause_ms / 1000)

    def note(self, now_s: float, *, answers: bool) -> None:
        if not answers:
            self._since_s = None
        elif self._since_s is None:
            self._since_s = now_s

    def is_steady(self, now_s: float) -> bool:
        if self._since_s is None:
            return False
        return now_s - self._since_s >= self._steady.pause_s(max(0, self._moves.count - 1))
