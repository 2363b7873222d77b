"""A bucket of tokens: the rate of what a client does. Pure: the clock is passed in.

Something may begin if the number of tokens is not negative, whatever it costs. So the largest
request can always be served; later ones wait for it. Source: KIP-599, Kafka's TokenBucket.
"""

import math


class TokenBucket:
    """The bucket holds the tokens of `burst_s` seconds. The rate may be another one in each
    call."""

    __slots__ = ("_burst_s", "_filled_s", "_tokens")

    def __init__(self, burst_s: float) -> None:
        self._burst_s = burst_s
        self._tokens = 0.0
        self._filled_s = -math.inf

    def wait_s(self, per_s: float, now_s: float) -> float:
        """Time until the number of tokens is not negative, in seconds. 0: now."""
        self._fill(per_s, now_s)
        return max(-self._tokens / per_s, 0.0)

    def take(
        self, tokens: float, per_s: float, now_s: float, *, debt_s_max: float = math.inf
    ) -> float:
        """Take the tokens, or give back, if negative. Returns `wait_s`, at most `debt_s_max`."""
        self._fill(per_s, now_s)
        self._tokens = max(self._tokens - tokens, -debt_s_max * per_s)
        return max(-self._tokens / per_s, 0.0)

    def _fill(self, per_s: float, now_s: float) -> None:
        gained = (now_s - self._filled_s) * per_s
        self._tokens = min(self._tokens + gained, per_s * self._burst_s)
        self._filled_s = now_s
