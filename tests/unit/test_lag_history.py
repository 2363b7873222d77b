"""The history of lag: rates, gaps, limits of memory, forgotten groups, and clocks that go back."""

import random
from itertools import pairwise
from math import inf

import pytest

from bucketlog.console.groups import GroupLagRow
from bucketlog.console.lag_history import (
    CHART_SLOTS_MAX,
    FIGURES,
    LagHistory,
    LagTrend,
    catch_up_s,
    slope_per_s,
)

STEP_MS = 30_000
START_MS = 1_700_000_000_000
HOUR_MS = 3_600_000


def row(name: str, lag: int, *, committed: int = 0, partitions: int = 1) -> GroupLagRow:
    return GroupLagRow(name, 1, partitions, lag, lag, 0, committed, committed + lag)


def history(
    *, history_ms: int = HOUR_MS, interval_ms: int = STEP_MS, groups_max: int = 100
) -> LagHistory:
    return LagHistory(history_ms=history_ms, interval_ms=interval_ms, groups_max=groups_max)


def lags(found: LagHistory, group: str = "g") -> list[tuple[int, float]]:
    """The samples of a group, as seconds since the start and lags."""
    return [((each.at_ms - START_MS) // 1000, each.lag) for each in found.samples(group)]


def test_rates_are_those_of_the_samples() -> None:
    found = history()
    for number in range(5):
        # Each second, 20 records are written and 50 are read.
        written, read = 10_000 + 600 * number, 1_000 + 1_500 * number
        found.add(START_MS + number * STEP_MS, [row("g", written - read, committed=read)])
    now_ms = START_MS + 4 * STEP_MS
    trend = found.trend("g", now_ms)
    assert trend is not None
    assert tuple(trend) == pytest.approx((-30, 50, 20))
    assert catch_up_s(600, trend) == pytest.approx(20)


def test_the_time_to_catch_up_needs_a_lag_that_falls() -> None:
    assert catch_up_s(100, LagTrend(-4.0, 4.0, 0.0)) == 25
    assert catch_up_s(100, LagTrend(4.0, 0.0, 4.0)) == inf
    assert catch_up_s(100, LagTrend(0.0, 4.0, 4.0)) == inf
    assert catch_up_s(0, LagTrend(-4.0, 4.0, 0.0)) is None
    assert catch_up_s(100, None) is None


def test_a_lag_that_stays_has_no_slope_at_all() -> None:
    times = [START_MS + at * 29_999 for at in range(10)]
    assert slope_per_s(times, [2.0**53 - 1] * 10) == 0


def test_a_trend_needs_two_samples_that_are_not_old() -> None:
    found = history()
    assert found.trend("g", START_MS) is None
    found.add(START_MS, [row("g", 100)])
    assert found.trend("g", START_MS) is None
    found.add(START_MS + STEP_MS, [row("g", 70, committed=30)])
    assert found.trend("g", START_MS + 10 * STEP_MS) is not None
    assert found.trend("g", START_MS + 10 * STEP_MS + 1) is None, "the bucket failed since then"


def test_a_trend_is_that_of_the_last_samples() -> None:
    found = history()
    for number in range(30):
        lag = 1_000 * number if number < 20 else 19_000 - 300 * (number - 19)
        found.add(START_MS + number * STEP_MS, [row("g", lag, committed=500 * number)])
    trend = found.trend("g", START_MS + 29 * STEP_MS)
    assert trend is not None
    assert trend.lag_per_s == pytest.approx(-10)


def test_rates_cross_gaps() -> None:
    found = history()
    for number in (0, 1, 6, 7):
        found.add(
            START_MS + number * STEP_MS, [row("g", 1_000 - 30 * number, committed=30 * number)]
        )
    trend = found.trend("g", START_MS + 7 * STEP_MS)
    assert trend is not None
    assert trend.lag_per_s == pytest.approx(-1)


@pytest.mark.parametrize(
    "after",
    [
        row("g", 900, committed=500, partitions=2),  # one more partition
        row("g", 900, committed=50),  # reset to an earlier offset
        row("g", 0, committed=102),  # the topic was created again
    ],
)
def test_rates_do_not_cross_a_break(after: GroupLagRow) -> None:
    found = history()
    for number in range(3):
        found.add(START_MS + number * STEP_MS, [row("g", 100 - number, committed=100 + number)])
    found.add(START_MS + 3 * STEP_MS, [after])
    assert found.trend("g", START_MS + 3 * STEP_MS) is None
    found.add(
        START_MS + 4 * STEP_MS, [after._replace(lag=after.lag + 60, latest=after.latest + 60)]
    )
    trend = found.trend("g", START_MS + 4 * STEP_MS)
    assert trend is not None
    assert trend.lag_per_s == pytest.approx(2)


def test_old_samples_are_forgotten() -> None:
    found = history(history_ms=4 * STEP_MS)
    for number in range(9):
        found.add(START_MS + number * STEP_MS, [row("g", number)])
    assert lags(found) == [(150, 5), (180, 6), (210, 7), (240, 8)]
    found.add(START_MS + HOUR_MS, [row("g", 9)])
    assert lags(found) == [(3600, 9)]


def test_memory_is_bounded_in_samples() -> None:
    found = history(history_ms=4 * STEP_MS)
    for at_ms in range(1_000):  # a clock that hardly moves
        found.add(START_MS + at_ms, [row("g", at_ms)])
    assert [lag for _, lag in lags(found)] == [995, 996, 997, 998, 999]
    assert len(found._times) == 5
    assert len(found._groups["g"]) == 5 * FIGURES


def test_memory_is_bounded_in_groups() -> None:
    found = history(groups_max=2)
    found.add(START_MS, [row("a", 1), row("b", 5), row("c", 3)])
    found.add(START_MS + STEP_MS, [row("a", 9), row("b", 5), row("c", 3)])
    assert [len(found.samples(name)) for name in "abc"] == [0, 2, 2], "known groups stay"
    found.add(START_MS + 2 * STEP_MS, [row("a", 9), row("b", 5), row("d", 1)])
    assert [len(found.samples(name)) for name in "abcd"] == [1, 3, 0, 0]


def test_a_group_that_disappears_is_forgotten() -> None:
    found = history()
    found.add(START_MS, [row("g", 1), row("h", 1)])
    found.add(START_MS + STEP_MS, [row("h", 2)])
    assert lags(found) == []
    found.add(START_MS + 2 * STEP_MS, [row("g", 3), row("h", 3)])
    assert lags(found) == [(60, 3)]
    assert lags(found, "h") == [(0, 1), (30, 2), (60, 3)]


def test_a_clock_that_goes_back_removes_later_samples() -> None:
    found = history()
    for number in range(4):
        rows = [row("g", number), *([row("late", number)] if number >= 2 else [])]
        found.add(START_MS + number * STEP_MS, rows)
    found.add(START_MS + 2 * STEP_MS, [row("g", 7), row("late", 8)])
    assert lags(found) == [(0, 0), (30, 1), (60, 7)]
    assert lags(found, "late") == [(60, 8)]
    found.add(START_MS - STEP_MS, [row("g", 9), row("late", 9)])
    assert lags(found) == lags(found, "late") == [(-30, 9)]
    assert found.trend("g", START_MS) is None


def test_samples_agree_with_a_list_under_any_clock() -> None:
    choices = random.Random(7)
    found, now_ms = history(history_ms=10 * STEP_MS), START_MS
    expected: list[tuple[int, int]] = []
    for number in range(2_000):
        now_ms += choices.choice([STEP_MS, STEP_MS, STEP_MS, 5 * STEP_MS, 0, -3 * STEP_MS])
        rows = [row("g", number)] if choices.random() < 0.97 else []
        expected = [each for each in expected if now_ms - 10 * STEP_MS < each[0] < now_ms]
        expected = [*expected, (now_ms, number)] if rows else []
        found.add(now_ms, rows)
        got = found.samples("g")
        assert [(each.at_ms, each.lag) for each in got] == expected
        assert all(one.at_ms < other.at_ms for one, other in pairwise(got))


def test_offsets_of_any_size_are_kept() -> None:
    found = history()
    for number in range(2):
        found.add(START_MS + number * STEP_MS, [row("g", 2**70, committed=2**70)])
    trend = found.trend("g", START_MS + STEP_MS)
    assert trend == LagTrend(0, 0, 0)


def test_slots_have_the_highest_lag_or_none() -> None:
    found = history(history_ms=8 * STEP_MS)
    for number, lag in ((0, 5), (1, 9), (4, 0), (8, 3)):
        found.add(START_MS + number * STEP_MS, [row("g", lag)])
    slots = found.slots("g", START_MS + 8 * STEP_MS)
    assert [(each.begin_ms - START_MS) // STEP_MS for each in slots] == [0, 2, 4, 6]
    assert [each.lag for each in slots] == [9, None, 0, 3]
    assert [each.lag for each in found.slots("other", START_MS)] == [None] * 4


def test_a_chart_has_a_bounded_number_of_slots() -> None:
    assert len(history(interval_ms=1).slots("g", START_MS)) == CHART_SLOTS_MAX
    assert len(history(interval_ms=0).slots("g", START_MS)) == CHART_SLOTS_MAX
    assert len(history(interval_ms=10 * HOUR_MS).slots("g", START_MS)) == 1
