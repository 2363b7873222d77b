"""Does a figure grow? Pure: from samples over time to a statement that outliers do not change.

The slope is the Theil-Sen estimator: the median of the slopes between pairs of samples, of the
second half of the run, in which start-up is over. A figure is flat if this slope, kept up for an
hour, is below a share of the figure's level. It is also flat if it grew by less than its slack in
the observed time: one more page of memory, or one more connection, does not count as growth.
"""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

HOUR_S = 3600.0
SAMPLES_MAX = 400
"""The number of pairs grows with the square: of more samples, only every n-th is used."""


@dataclass(frozen=True, slots=True)
class Limit:
    """`share_per_hour` is a share of the level; `slack` is in the figure's own unit."""

    share_per_hour: float
    slack: float


@dataclass(frozen=True, slots=True)
class Growth:
    """The growth in the second half of the samples. `level` is their median."""

    level: float
    per_hour: float
    observed_s: float
    limit: Limit

    @property
    def is_flat(self) -> bool:
        """A falling figure is flat."""
        return (
            self.per_hour <= self.limit.share_per_hour * self.level
            or self.per_hour * self.observed_s / HOUR_S <= self.limit.slack
        )

    def as_json(self) -> dict[str, Any]:
        return {
            "level": round(self.level, 1),
            "per_hour": round(self.per_hour, 1),
            "flat": self.is_flat,
        }


def theil_sen(times_s: Sequence[float], values: Sequence[float]) -> float:
    """The median slope per second; 0 if fewer than two samples differ in time."""
    step = -(-len(times_s) // SAMPLES_MAX) or 1
    points = list(zip(times_s, values, strict=True))[::step]
    slopes = [
        (later - earlier) / (then - at)
        for (at, earlier), (then, later) in combinations(points, 2)
        if then > at
    ]
    return statistics.median(slopes) if slopes else 0.0


def growth(times_s: Sequence[float], values: Sequence[float], limit: Limit) -> Growth:
    """`times_s` are in ascending order."""
    middle = (times_s[0] + times_s[-1]) / 2
    late = [number for number, at in enumerate(times_s) if at >= middle]
    times = [times_s[number] for number in late]
    found = [values[number] for number in late]
    slope = theil_sen(times, found)
    return Growth(statistics.median(found), slope * HOUR_S, times[-1] - times[0], limit)


def growing(found: Mapping[str, Growth]) -> list[str]:
    """A text for each figure that is not flat."""
    return [
        f"{name} grows by {each.per_hour:.1f} an hour, its level is {each.level:.1f}"
        for name, each in found.items()
        if not each.is_flat
    ]
