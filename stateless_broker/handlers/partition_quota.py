"""The rate at which a broker's clients may create and delete partitions: a token bucket.

A change is accepted if the number of tokens is not negative, whatever the change costs. So the
largest topic can always be created. An accepted change takes one token for each partition. Source:
KIP-599 (controller_mutation_rate), Kafka's TokenBucket.
"""

import math
from collections.abc import Callable

BURST_S = 11
"""Kafka's default: the bucket holds the tokens of 11 windows of one second (quota.window.num)."""


class PartitionQuota:
    """`partitions_per_s` 0: no limit. `now_s` is a monotonic clock."""

    def __init__(self, partitions_per_s: int, now_s: Callable[[], float]) -> None:
        self._per_s = partitions_per_s
        self._now_s = now_s
        self._tokens = float(partitions_per_s * BURST_S)
        self._filled_s = -math.inf

    def wait_s(self) -> float:
        """Time until the next change may begin, in seconds. 0: at once."""
        if not self._per_s:
            return 0
        self._fill()
        return max(-self._tokens / self._per_s, 0.0)

    def take(self, partitions: int) -> None:
        """Note a change of this number of partitions."""
        if self._per_s:
            self._fill()
            self._tokens -= partitions

    def _fill(self) -> None:
        now_s = self._now_s()
        gained = (now_s - self._filled_s) * self._per_s
        self._tokens = min(self._tokens + gained, float(self._per_s * BURST_S))
        self._filled_s = now_s
