"""The rate of what a client sends or takes, over the last samples. Pure: the clock is passed in.

Source: Kafka's Rate, SampledStat and QuotaUtils. The rate is over at least all samples but one, so
that the first seconds may use the quota of a whole window.
"""

from collections import deque


class RateWindow:
    """`samples` of `sample_ms` each, as in quota.window.num and quota.window.size.seconds."""

    __slots__ = ("_rows", "_sample_ms", "_samples", "_total")

    def __init__(self, *, samples: int, sample_ms: int) -> None:
        self._samples, self._sample_ms = samples, sample_ms
        self._rows: deque[tuple[int, float]] = deque()
        """Start and amount of each sample, the oldest first."""
        self._total = 0.0

    def record(self, amount: float, now_ms: int) -> None:
        self._forget(now_ms)
        if self._rows and now_ms - self._rows[-1][0] < self._sample_ms:
            start_ms, before = self._rows.pop()
            self._rows.append((start_ms, before + amount))
        else:
            self._rows.append((now_ms, amount))
        self._total += amount

    def per_s(self, now_ms: int) -> float:
        self._forget(now_ms)
        return self._total * 1000 / self._span_ms(now_ms)

    def throttle_ms(self, limit_per_s: float, now_ms: int) -> int:
        """How long the client must wait until its rate is at the limit; 0 if it is not above."""
        rate = self.per_s(now_ms)
        if rate <= limit_per_s:
            return 0
        span_ms = self._span_ms(now_ms)
        if limit_per_s <= 0:
            return span_ms
        return round((rate - limit_per_s) / limit_per_s * span_ms)

    def is_idle(self, now_ms: int) -> bool:
        self._forget(now_ms)
        return not self._rows

    def _span_ms(self, now_ms: int) -> int:
        least_ms = max(self._samples - 1, 1) * self._sample_ms
        if not self._rows:
            return least_ms
        elapsed_ms = now_ms - self._rows[0][0]
        missing = max(0, self._samples - 1 - elapsed_ms // self._sample_ms)
        return max(elapsed_ms + missing * self._sample_ms, self._sample_ms)

    def _forget(self, now_ms: int) -> None:
        while self._rows and now_ms - self._rows[0][0] >= self._samples * self._sample_ms:
            self._total -= self._rows.popleft()[1]
        if not self._rows:
            self._total = 0.0
