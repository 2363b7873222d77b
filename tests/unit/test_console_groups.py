"""The console's figures of groups: waits, stuck partitions, trends, and their texts."""

import re
from math import inf

import pytest

from bucketlog.console import charts
from bucketlog.console.application import application
from bucketlog.console.figures_text import catch_up_text, rate_text, trend_text
from bucketlog.console.group_pages import group, groups
from bucketlog.console.groups import GroupWait, is_stuck_after
from bucketlog.console.lag_sampler import take_sample
from bucketlog.console.page_query import PageQuery
from bucketlog.console.pages import Console
from bucketlog.console.settings import ConsoleSettings
from bucketlog.tiered_storage.backends.memory import MemoryBucket
from bucketlog.tiered_storage.encryption.key_service import KeyAccess
from tests.rigs.group_log import GroupLog
from tests.rigs.written_log import START_MS
from tests.unit.test_console_times import SteppedClock, answer

LIMIT_MS = 300_000


class GroupConsole(GroupLog):
    """A log with a clock, and with consoles that show the log."""

    def __init__(self) -> None:
        self.clock = SteppedClock()
        self.clock.now = START_MS
        super().__init__(MemoryBucket(), self.clock.ms)

    def console(self, **settings: int) -> Console:
        known = ConsoleSettings.model_validate({"refresh_ms": 0, **settings})
        return Console(self.bucket, "b", known, KeyAccess(), 1, self.clock.ms, self.clock.s)


@pytest.fixture
def log() -> GroupConsole:
    return GroupConsole()


@pytest.mark.parametrize(
    ("unread_ms", "committed_ms", "expected"),
    [
        (LIMIT_MS, 0, True),
        (LIMIT_MS - 1, 0, False),
        (LIMIT_MS, 1, False),
        (None, 0, False),
        (10 * LIMIT_MS, LIMIT_MS + 50, False),
    ],
)
def test_a_group_is_stuck_if_record_and_commit_are_old(
    unread_ms: int | None, committed_ms: int, expected: bool
) -> None:
    found = is_stuck_after(
        LIMIT_MS, unread_ms=unread_ms, committed_ms=committed_ms, now_ms=LIMIT_MS
    )
    assert found is expected


def test_the_pages_name_stuck_partitions(log: GroupConsole) -> None:
    for partition in range(3):
        log.append(partition)
    log.append_without_time(3)
    log.commit("slow", p0=1, p1=1, p2=3, p3=0)
    log.commit("other", p0=2)
    log.clock.now += LIMIT_MS + 10_000
    log.commit("slow", p1=2)
    console = log.console(stuck_after_ms=LIMIT_MS)
    shown = group(console, PageQuery({"name": "slow"}))
    assert [(row.partition, row.lag, row.is_stuck) for row in shown["rows"]] == [
        (0, 2, True),
        (1, 1, False),  # the offset has moved just now
        (2, 0, False),  # all is read
        (3, 1, False),  # nobody knows how long the record has waited
    ]
    waits = groups(console, PageQuery({}))["waits"]
    assert shown["wait"] == waits["slow"] == GroupWait(LIMIT_MS + 8_000, 1)
    assert waits["other"].stuck == 1
    later = log.console(stuck_after_ms=LIMIT_MS + 20_000)
    assert groups(later, PageQuery({}))["waits"]["slow"].stuck == 0


def sampled(log: GroupConsole, console: Console, *, samples: int = 5, read: int = 10) -> None:
    """Take samples while a group reads some of 100 records in each half minute."""
    for number in range(samples):
        log.clock.now = START_MS + number * 30_000
        log.commit("g", p0=read * number)
        take_sample(console)


def test_the_pages_have_the_trend_and_the_time_to_catch_up(log: GroupConsole) -> None:
    log.append(0, 100)
    console = log.console()
    sampled(log, console)
    (pace,) = groups(console, PageQuery({}))["paces"].values()
    assert tuple(pace.trend) == pytest.approx((-1 / 3, 1 / 3, 0))
    assert pace.catch_up_s == pytest.approx(60 * 3)
    shown = group(console, PageQuery({"name": "g"}))
    assert shown["pace"] == pace
    assert shown["lags"] == [100, 90, 80, 70, 60]
    assert [slot.lag for slot in shown["slots"]] == [*[None] * 58, 100, 80]  # each slot is a minute
    assert [bar.is_gap for bar in shown["bars"]] == [*[True] * 58, False, False]
    assert shown["gaps"] == 58


def test_groups_are_sorted_by_trend_and_by_time_to_catch_up(log: GroupConsole) -> None:
    log.append(0, 100)
    log.append(1, 100)
    console = log.console()
    for number in range(3):
        log.clock.now = START_MS + number * 30_000
        log.commit("fast", p0=20 * number)
        log.commit("slow", p0=10 * number)
        log.commit("still", p0=50)
        log.commit("done", p0=100)
        log.append(2, 10)
        log.commit("late", p2=0)
        take_sample(console)
    log.commit("new", p0=0)

    def names(sort: str) -> list[str]:
        return [row.name for row in groups(console, PageQuery({"sort": sort}))["page"].rows]

    assert names("trend")[:2] == ["fast", "slow"]
    assert names("-trend")[0] == "late"
    assert names("catch_up")[2:4] == ["fast", "slow"]
    assert set(names("catch_up")[:2]) == {"done", "new"}
    assert set(names("-catch_up")[:2]) == {"still", "late"}


async def test_pages_say_what_is_known_of_the_lag_over_time(log: GroupConsole) -> None:
    log.append(0, 100)
    console = log.console()
    app = application(console, hosts=["localhost"])
    log.commit("g", p0=0)
    status, _, body = await answer(app, "/group?name=g")
    assert (
        status,
        "no sample of this group yet. The console takes a sample every 30 s" in body,
    ) == (200, True)
    sampled(log, console)
    status, _, body = await answer(app, "/group?name=g")
    assert status == 200
    assert "falls by 0.33/s" in body
    assert "read 0.33/s, written 0/s" in body
    assert re.search(r"Catches up in</dt><dd class=\"text\">\s*3 min\s*</dd>", body)
    assert "Lag over time: lowest 60, highest 100, last 60 records" in body
    assert "grey: no sample" in body
    status, _, body = await answer(app, "/groups")
    assert (status, "falls by 0.33/s" in body, "3 min" in body) == (200, True, True)
    log.clock.now += LIMIT_MS
    _, _, body = await answer(app, "/groups")
    assert ("falls by" in body, "1 stuck" in body) == (False, True)
    _, _, body = await answer(app, "/group?name=g")
    assert '<span class="tag warn">stuck</span>' in body


async def test_a_console_without_samples_says_so(log: GroupConsole) -> None:
    log.append(0)
    log.commit("g", p0=0)
    app = application(log.console(lag_interval_ms=0), hosts=["localhost"])
    assert "takes no samples" in (await answer(app, "/group?name=g"))[2]
    assert "takes no samples" in (await answer(app, "/groups"))[2]


def test_rates_are_readable() -> None:
    assert [rate_text(rate) for rate in (0, 0.001, 0.25, 12.34, 123.4, 12_345.6)] == [
        "0/s",
        "<0.01/s",
        "0.25/s",
        "12.3/s",
        "123/s",
        "12,346/s",
    ]
    assert [trend_text(rate) for rate in (-2.5, 0, 30)] == [
        "falls by 2.50/s",
        "steady",
        "grows by 30.0/s",
    ]
    assert [catch_up_text(time_s) for time_s in (90, 4e7, inf)] == [
        "1 min 30 s",
        "more than a year",
        "never at this rate",
    ]


def test_a_gap_is_no_bar() -> None:
    gap, none, high = charts.bars([None, 0, 8], ["", "", ""], width=30, height=100)
    assert (gap.is_gap, gap.height) == (True, 0)
    assert (none.is_gap, none.height) == (False, 0)
    assert (high.is_gap, high.height) == (False, 100)
    assert charts.bars([None], [""], width=30, height=100)[0].height == 0
