"""The provider's keys while the broker runs: loaded at the start, at intervals, and when a token
names a key that is not known.

Invariants: one load at a time. However many tokens name unknown keys, that causes at most one load
in `unknown_key_ms_min`. If a load fails, the keys of the last one stay. A broker without keys is
degraded: `/readyz` says why. Source: Kafka's RefreshingHttpsJwks.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

from bucketlog.log_format.backoff import Backoff
from bucketlog.log_format.errors import BucketlogError
from bucketlog.log_format.printable import printable
from bucketlog.stateless_broker.authentication.key_set import KeySet, read_key_set
from bucketlog.stateless_broker.health import BrokerPart, Health

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class KeySchedule:
    """The times of loading keys. `retry` has the pauses between loads that fail."""

    refresh_ms: int
    unknown_key_ms_min: int
    retry: Backoff


class VerificationKeys:
    """`load` gives the document with the keys, or raises `BucketlogError`. `now_s` never jumps."""

    def __init__(
        self,
        load: Callable[[], Awaitable[bytes]],
        schedule: KeySchedule,
        health: Health,
        *,
        now_s: Callable[[], float],
    ) -> None:
        self._load = load
        self._schedule = schedule
        self._health = health
        self._now_s = now_s
        self._keys = KeySet()
        self._asked = asyncio.Event()
        self._attempt = asyncio.Event()
        """An event that is set when the attempt under way, or else the next one, has ended."""
        self._is_loading = False
        self._began_s: float | None = None
        self._loaded_s: float | None = None
        self._failures_in_a_row = 0
        self.failures = 0
        """Loads that failed, for the metrics."""

    @property
    def current(self) -> KeySet:
        return self._keys

    @property
    def age_s(self) -> float | None:
        """Time since the keys were loaded. None: they were never loaded."""
        return None if self._loaded_s is None else self._now_s() - self._loaded_s

    async def look_again(self) -> None:
        """Wait for a load, unless one began lately and has ended."""
        attempt = self._attempt
        if not self._is_loading:
            interval_s = self._schedule.unknown_key_ms_min / 1000
            if self._began_s is not None and self._now_s() < self._began_s + interval_s:
                return
            self._asked.set()
        await attempt.wait()

    async def follow(self) -> None:
        """Load the keys, for ever."""
        while True:
            pause_s = await self.attempt()
            with suppress(TimeoutError):
                async with asyncio.timeout(pause_s):
                    await self._asked.wait()

    async def attempt(self) -> float:
        """Load the keys once. How long the next attempt has time."""
        self._is_loading, self._began_s = True, self._now_s()
        self._asked.clear()
        try:
            self._take(read_key_set(await self._load()))
        except BucketlogError as error:
            self._note_failure(error)
        finally:
            self._is_loading = False
            self._attempt.set()
            self._attempt = asyncio.Event()
        if self._failures_in_a_row:
            return self._schedule.retry.pause_s(self._failures_in_a_row - 1)
        return self._schedule.refresh_ms / 1000

    def _take(self, keys: KeySet) -> None:
        if keys != self._keys:
            names = ", ".join(printable(str(key.key_id))[:100] for key in keys.keys[:10])
            logger.info("%d keys for tokens are loaded: %s", len(keys.keys), names)
        self._keys, self._loaded_s, self._failures_in_a_row = keys, self._now_s(), 0
        self._health.recover(BrokerPart.TOKEN_KEYS)

    def _note_failure(self, error: BucketlogError) -> None:
        self.failures += 1
        self._failures_in_a_row += 1
        if not self._keys.keys:
            self._health.degrade(BrokerPart.TOKEN_KEYS, f"nobody can log in by token: {error}")
        elif self._failures_in_a_row == 1:
            logger.warning("the former keys for tokens stay in use: %s", error)
