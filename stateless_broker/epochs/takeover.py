"""Rules that say when a broker may take the log from an epoch on another Redis. Pure: time and
randomness are passed in.

Safety never depends on these rules, because create-only claims and seals decide. The rules only
prevent brokers that see different Redis servers from taking the log from each other again and again
(docs/decisions/0019-two-sequencers.md).

Rules for an epoch that is claimed for another server:

- If the epoch is not active, the next epoch may be claimed after `stalled` without progress.
- If this broker was in the epoch, and then its Redis became another server, the broker may claim
  the next epoch at once, unless more brokers stayed there than came here.
- If the epoch began elsewhere, and more brokers are here than there, the next epoch may be claimed
  after the first quiet pause. In this pause, brokers there have time to register.
- If the epoch's server is gone (a Valkey whose broker has ended), the next epoch may be claimed
  after a third of a quiet pause without a sign of work. After three such takeovers, each further
  one doubles the pause.
- Otherwise, the next epoch may be claimed only after a quiet pause without a sign of work. The
  pause doubles each time this broker loses an epoch to another server, the first time included.
"""

from dataclasses import dataclass
from random import Random
from typing import Self

from bucketlog.log_format.backoff import Backoff
from bucketlog.stateless_broker.epochs.epoch_signs import EpochSigns
from bucketlog.stateless_broker.epochs.recent_count import RecentCount

QUIET_JITTER = 0.3
OLD_MS = 60_000
"""A broker that starts does not wait for an epoch in which nothing was written for this long. Clock
errors below this do not matter."""
LOOKS_MIN = 5
"""Minimum of looks without a sign of work: if looks are slow, writes are slow, too."""
GONE_LOOKS_MIN = 2
GONE_PARTS = 3
"""Brokers wait for a server that refuses connections for a quiet pause divided by this."""
FREE_MOVES = 2
"""Number of times that a broker may follow its Redis to another server before it has to wait."""


@dataclass(frozen=True, slots=True)
class TakeoverLimits:
    """`quiet` has the pauses without a sign of work; each takes at least `looks_min` looks.
    `stalled` has the pauses without progress of a claim, by the number of claims in a row that were
    not activated."""

    quiet: Backoff
    looks_min: int
    stalled: Backoff

    @classmethod
    def of(cls, *, quiet_ms: int, quiet_ms_max: int, stalled_ms: int, stalled_ms_max: int) -> Self:
        return cls(
            quiet=Backoff(quiet_ms, max(quiet_ms, quiet_ms_max), jitter=QUIET_JITTER),
            looks_min=LOOKS_MIN if quiet_ms else 0,
            stalled=Backoff(stalled_ms, max(stalled_ms, stalled_ms_max)),
        )


@dataclass(frozen=True, slots=True)
class ForeignEpoch:
    """An epoch that is claimed for another server. `left` is the epoch that this broker was in
    last, 0 for none. `here` and `there` count the brokers on either side; `here` includes this
    one. `quiet_ms` is how long nothing was written, if the clocks agree."""

    epoch: int
    left: int
    here: int
    there: int
    signs: EpochSigns
    quiet_ms: int
    is_gone: bool = False
    """Whether the epoch's server refuses connections."""

    @property
    def was_ours(self) -> bool:
        """Whether this broker was in the epoch before its Redis became another server."""
        return self.epoch <= self.left


class Takeover:
    """Remembers the results of earlier looks. `incarnation` is this broker's."""

    def __init__(self, limits: TakeoverLimits, *, incarnation: str, random: Random) -> None:
        self._limits = limits
        self._incarnation = incarnation
        self._random = random
        self._epoch = 0
        """The epoch that was judged last."""
        self._is_move = False
        """Whether the judged epoch was this broker's own, or is on a server that is gone."""
        self._left = 0
        """The last own epoch whose loss was counted."""
        self._seen_s = self._worked_s = 0.0
        self._drawn = 0.0
        self._looks = 0
        """Looks since the last sign of work."""
        self._signs: EpochSigns | None = None
        self._lost = RecentCount()
        """Epochs that this broker has lost to another server."""
        self._moves = RecentCount()
        """Epochs that this broker has taken to another server."""

    def reason_to_wait(self, found: ForeignEpoch, now_s: float) -> str | None:
        """Reason why the next epoch may not be claimed; None if it may. `now_s` is monotonic."""
        self._note(found, now_s)
        signs, epoch = found.signs, found.epoch
        silent_s = now_s - self._worked_s
        if found.is_gone:
            if self._looks >= GONE_LOOKS_MIN and silent_s >= self._gone_pause_s():
                return None
            return f"epoch {epoch} is on the Valkey of a broker, which refuses connections"
        if not signs.is_active:
            wasted = max(0, epoch - signs.active_before - 1)
            if silent_s >= self._limits.stalled.pause_s(wasted):
                return None
            return f"epoch {epoch} is claimed for another Redis and not active yet"
        if found.was_ours and found.here >= found.there:
            if now_s - self._seen_s >= self._move_pause_s():
                return None
            return f"epoch {epoch} is not taken yet: this broker's Redis changes too often"
        if found.here > found.there:
            if now_s - self._seen_s >= self._quiet_s(0):
                return None
            return f"epoch {epoch} began on another Redis: brokers there may still be joining"
        if self._looks >= self._limits.looks_min and silent_s >= self._quiet_s(self._lost.count):
            return None
        return (
            f"epoch {epoch} is on another Redis (brokers there: {found.there}, here: {found.here});"
            " writes wait: check that all brokers reach the same Redis primary"
        )

    def note_claim(self, follows: int, now_s: float) -> None:
        """Note that this broker has claimed the epoch after `follows`."""
        if follows == self._epoch and self._is_move:
            self._moves.add(now_s, self._forgotten_after_s)

    def _note(self, found: ForeignEpoch, now_s: float) -> None:
        signs = found.signs
        if found.epoch != self._epoch:
            self._epoch, self._seen_s, self._drawn = found.epoch, now_s, self._random.random()
            self._worked_s, self._looks = now_s, 0
            if not found.was_ours and found.left != self._left:
                self._left = found.left
                self._lost.add(now_s, self._forgotten_after_s)
            if not found.left and signs.is_active and found.quiet_ms >= OLD_MS:
                self._seen_s = self._worked_s = now_s - found.quiet_ms / 1000
                self._looks = LOOKS_MIN
        elif self._signs is not None and signs.shows_work_since(self._signs, own=self._incarnation):
            self._worked_s, self._looks = now_s, 0
        self._looks += 1
        self._signs, self._is_move = signs, found.was_ours or found.is_gone

    @property
    def _forgotten_after_s(self) -> float:
        return 2 * self._limits.quiet.longest_pause_ms / 1000

    def _quiet_s(self, number: int) -> float:
        return self._limits.quiet.pause_s(max(0, number), self._drawn)

    def _move_pause_s(self) -> float:
        if self._moves.count < FREE_MOVES:
            return 0.0
        return self._quiet_s(self._moves.count - FREE_MOVES)

    def _gone_pause_s(self) -> float:
        return self._quiet_s(self._moves.count - FREE_MOVES) / GONE_PARTS
