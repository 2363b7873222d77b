"""The rate at which a broker's clients may create and delete partitions, all of them together.

The quota of one client (controller_mutation_rate) applies besides. Source: KIP-599.
"""

from collections.abc import Callable

from bucketlog.stateless_broker.network.token_bucket import TokenBucket

BURST_S = 11
"""Kafka's default: the bucket holds the tokens of 11 windows of one second (quota.window.num)."""


class PartitionQuota:
    """The rate of partition changes. `partitions_per_s` 0: no limit. `now_s` is a monotonic
    clock."""

    def __init__(self, partitions_per_s: int, now_s: Callable[[], float]) -> None:
        self._per_s = partitions_per_s
        self._now_s = now_s
        self._bucket = TokenBucket(BURST_S)

    def wait_s(self) -> float:
        """Time until the next change may begin, in seconds. 0: at once."""
        return self._bucket.wait_s(self._per_s, self._now_s()) if self._per_s else 0

    def take(self, partitions: int) -> None:
        """Note a change of this number of partitions."""
        if self._per_s:
            self._bucket.take(partitions, self._per_s, self._now_s())
