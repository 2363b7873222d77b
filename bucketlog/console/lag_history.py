"""The lag of groups over time: samples in memory, rates, and the time to catch up. Pure.

Invariants: memory is bounded by the numbers of groups and of samples. All samples of a group are
consecutive samples of the log: a group that is missing in one sample is forgotten. The times of
samples ascend, also if the clock goes backwards.
"""

import threading
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from heapq import nlargest
from itertools import pairwise
from math import inf
from operator import attrgetter
from typing import NamedTuple

from bucketlog.console.groups import GroupLagRow

FIGURES = 4
"""A sample has lag, committed, latest and partitions, as floats, so that no sum is too large."""
TREND_SAMPLES = 10
CHART_SLOTS_MAX = 60


class LagSample(NamedTuple):
    """The figures of a `GroupLagRow` at `at_ms`, in milliseconds since 1970."""

    at_ms: int
    lag: float
    committed: float
    latest: float
    partitions: float


class LagTrend(NamedTuple):
    """Rates in records per second: of the lag (below 0 if the lag falls), of the group's reading,
    and of the producers' writing."""

    lag_per_s: float
    read_per_s: float
    written_per_s: float


class LagSlot(NamedTuple):
    """A part of the history. `lag` is the highest lag of its samples, or None without a sample."""

    begin_ms: int
    lag: float | None


class LagHistory:
    """Samples of the groups' lag. Several threads may use one instance.

    If there are more than `groups_max` groups, known groups stay, and free places go to the new
    groups with the largest lag.

    Args:
        history_ms: Age at which a sample is forgotten, in milliseconds.
        interval_ms: Time between two samples, in milliseconds. A trend covers the last
            `TREND_SAMPLES` intervals.
        groups_max: Number of groups with a history.
    """

    def __init__(self, *, history_ms: int, interval_ms: int, groups_max: int) -> None:
        self._history_ms = history_ms
        self._interval_ms = max(interval_ms, 1)
        self._samples_max = history_ms // self._interval_ms + 1
        self._groups_max = groups_max
        self._lock = threading.Lock()
        self._times = array("q")
        self._groups: dict[str, array[float]] = {}

    def add(self, now_ms: int, rows: Sequence[GroupLagRow]) -> None:
        """Add a sample of all groups.

        Earlier samples that are not older than the new sample are removed: the clock was set back.

        Args:
            now_ms: The time of the figures, in milliseconds since 1970.
            rows: The row of each group that exists.
        """
        with self._lock:
            times = self._times
            end = bisect_left(times, now_ms)
            first = bisect_right(times, now_ms - self._history_ms, hi=end)
            first = max(first, end + 1 - self._samples_max)
            later = (len(times) - end) * FIGURES
            kept = (end - first) * FIGURES
            self._times = times[first:end]
            self._times.append(now_ms)
            groups = {}
            for row in self._chosen(rows):
                figures = self._groups.get(row.name) or array("d")
                if later:
                    del figures[-later:]
                if len(figures) > kept:
                    del figures[: len(figures) - kept]
                figures.extend((row.lag, row.committed, row.latest, row.partitions))
                groups[row.name] = figures
            self._groups = groups

    def _chosen(self, rows: Sequence[GroupLagRow]) -> Iterator[GroupLagRow]:
        known = [row for row in rows if row.name in self._groups]
        yield from known
        free = self._groups_max - len(known)
        yield from nlargest(
            free, (row for row in rows if row.name not in self._groups), key=attrgetter("lag")
        )

    def samples(self, group: str) -> list[LagSample]:
        """The group's samples, oldest first. Empty for a group without a history."""
        with self._lock:
            return self._last(group, len(self._times))

    def _last(self, group: str, count: int) -> list[LagSample]:
        figures = self._groups.get(group)
        if figures is None:
            return []
        count = min(count, len(figures) // FIGURES)
        tail = figures[len(figures) - count * FIGURES :]
        times = self._times[len(self._times) - count :]
        return [
            LagSample(at_ms, *tail[at * FIGURES : (at + 1) * FIGURES])
            for at, at_ms in enumerate(times)
        ]

    def trend(self, group: str, now_ms: int) -> LagTrend | None:
        """The rates over the last samples of the group, by least squares.

        Samples before a change of the group's partitions do not count. Samples before a decrease of
        the committed or latest offsets do not count, either. Returns None with fewer than two
        samples.

        Args:
            group: The group's name.
            now_ms: The time now, in milliseconds since 1970.
        """
        with self._lock:
            oldest_ms = now_ms - TREND_SAMPLES * self._interval_ms
            count = len(self._times) - bisect_left(self._times, oldest_ms)
            found = self._last(group, count)
        for at in range(len(found) - 1, 0, -1):
            if _is_break(found[at - 1], found[at]):
                found = found[at:]
                break
        if len(found) < 2:
            return None
        times = [each.at_ms for each in found]
        return LagTrend(
            slope_per_s(times, [each.lag for each in found]),
            slope_per_s(times, [each.committed for each in found]),
            slope_per_s(times, [each.latest for each in found]),
        )

    def slots(self, group: str, now_ms: int) -> list[LagSlot]:
        """The history that ends at `now_ms` in equal parts, oldest first, for a chart. A part has
        time for two samples, unless the history is shorter."""
        count = max(1, min(CHART_SLOTS_MAX, self._history_ms // (2 * self._interval_ms)))
        begin_ms = now_ms - self._history_ms
        highest: list[float | None] = [None] * count
        for sample in self.samples(group):
            if begin_ms <= sample.at_ms <= now_ms:
                passed = (sample.at_ms - begin_ms) * count // self._history_ms
                at = min(passed, count - 1)
                highest[at] = max(sample.lag, highest[at] or 0)
        return [
            LagSlot(begin_ms + at * self._history_ms // count, lag)
            for at, lag in enumerate(highest)
        ]


def _is_break(one: LagSample, other: LagSample) -> bool:
    """Whether no rate can be computed from the sample `one` to the sample `other`."""
    return (
        one.partitions != other.partitions
        or other.committed < one.committed
        or other.latest < one.latest
    )


def slope_per_s(times_ms: Sequence[int], values: Sequence[float]) -> float:
    """The slope per second of the line that fits best by least squares. There are at least two
    times, in milliseconds, in ascending order."""
    assert all(one < other for one, other in pairwise(times_ms))
    # Relative to the first sample, so that large numbers lose no digits.
    xs = [(each - times_ms[0]) / 1000 for each in times_ms]
    ys = [each - values[0] for each in values]
    mean_x, mean_y = sum(xs) / len(xs), sum(ys) / len(ys)
    return sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True)) / sum(
        (x - mean_x) ** 2 for x in xs
    )


def catch_up_s(lag: int, trend: LagTrend | None) -> float | None:
    """Return the seconds until the group has read all records, at the rate of `trend`.

    Returns infinity if the lag does not fall, and None if there is no lag or no trend.

    Args:
        lag: The group's lag now, in records.
        trend: The group's rates, or None if they are unknown.
    """
    if trend is None or not lag:
        return None
    return inf if trend.lag_per_s >= 0 else lag / -trend.lag_per_s
