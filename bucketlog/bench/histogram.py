"""Counts of values in buckets, as HdrHistogram has them: small values exact, larger within 0.1 %.

Invariant: memory is bounded by the range of the values, some 1,000 buckets for each doubling,
however many there are. Own code: the `hdrhistogram` package would be one more dependency of every
installation, and what is needed of it is this.
"""

from collections import defaultdict
from typing import NamedTuple

PRECISION_BITS = 11
"""A bucket is at most 2^-10 of its values wide."""
_HALF = PRECISION_BITS - 1


class Histogram:
    """Of whole numbers from 0 on; negative ones count as 0."""

    def __init__(self) -> None:
        self.count = 0
        self.total = 0
        self.largest = 0
        self._counts: defaultdict[int, int] = defaultdict(int)

    def add(self, value: int) -> None:
        if value < 0:
            value = 0
        if value > self.largest:
            self.largest = value
        self.count += 1
        self.total += value
        shift = value.bit_length() - PRECISION_BITS
        self._counts[value if shift <= 0 else (shift << _HALF) + (value >> shift)] += 1

    def merge(self, other: "Histogram") -> None:
        self.count += other.count
        self.total += other.total
        self.largest = max(self.largest, other.largest)
        for bucket, count in other._counts.items():
            self._counts[bucket] += count

    @property
    def mean(self) -> float:
        return self.total / self.count if self.count else 0.0

    def quantile(self, thousandths: int) -> int:
        """The smallest value that this many of a thousand do not exceed, or the top of its bucket;
        0 where nothing was counted."""
        rank = max(1, -(-self.count * thousandths // 1000))
        seen = 0
        for bucket in sorted(self._counts):
            seen += self._counts[bucket]
            if seen >= rank:
                return min(_top(bucket), self.largest)
        return self.largest

    def __len__(self) -> int:
        """How many buckets are in use."""
        return len(self._counts)


def _top(bucket: int) -> int:
    """The largest value that falls into it."""
    shift = max(0, (bucket >> _HALF) - 1)
    return ((bucket - (shift << _HALF) + 1) << shift) - 1


class Latency(NamedTuple):
    """Milliseconds."""

    mean: float
    p50: float
    p95: float
    p99: float
    p99_9: float
    max: float


def latency_of(microseconds: Histogram) -> Latency:
    told = [microseconds.mean, *map(microseconds.quantile, (500, 950, 990, 999))]
    return Latency(*(round(value / 1000, 3) for value in (*told, microseconds.largest)))
