"""The pages Groups and Group: from the address's query to the values of their templates.

Errors are those of the functions that they call; the application turns them into pages.
"""

from collections.abc import Sequence
from functools import cache
from operator import attrgetter
from typing import NamedTuple

from bucketlog.console import charts
from bucketlog.console.brokers_page import group_members
from bucketlog.console.figures_text import count_text, time_text
from bucketlog.console.groups import GroupLagRow, committed_rows, group_waits
from bucketlog.console.lag_history import LagSlot, LagTrend, catch_up_s
from bucketlog.console.page_query import PageQuery, table_page
from bucketlog.console.pages import CHART_HEIGHT, CHART_WIDTH, Console, UnknownNameError, Values


class GroupPace(NamedTuple):
    """The trend of a group, and the result of `lag_history.catch_up_s` for the group."""

    trend: LagTrend | None
    catch_up_s: float | None


def groups(console: Console, query: PageQuery) -> Values:
    view, now_ms = console.look(), console.now_ms()

    @cache
    def pace(row: GroupLagRow) -> GroupPace:
        trend = console.lag_history.trend(row.name, now_ms)
        return GroupPace(trend, catch_up_s(row.lag, trend))

    def growth(row: GroupLagRow) -> float:
        trend = pace(row).trend
        return 0.0 if trend is None else trend.lag_per_s

    def catch_up(row: GroupLagRow) -> float:
        found = pace(row).catch_up_s
        return -1.0 if found is None else found

    page = table_page(
        console.groups(view),
        query,
        {
            "name": attrgetter("name"),
            "topics": attrgetter("topics"),
            "partitions": attrgetter("partitions"),
            "lag": attrgetter("lag"),
            "trend": growth,
            "catch_up": catch_up,
            "committed": attrgetter("committed_ms"),
        },
        filter_text=attrgetter("name"),
        rows_max=console.settings.page_rows_max,
    )
    waits = group_waits(
        view,
        (row.name for row in page.rows),
        now_ms,
        stuck_after_ms=console.settings.stuck_after_ms,
    )
    return {
        "view": view,
        "page": page,
        "waits": waits,
        "paces": {row.name: pace(row) for row in page.rows},
    }


def group(console: Console, query: PageQuery) -> Values:
    view = console.look()
    name = query.text("name")
    rows = view.state.groups.get(name)
    if rows is None:
        raise UnknownNameError(
            f"no group {name[:249]!r} has committed offsets", remedy="choose one on the page Groups"
        )
    now_ms, stuck_after_ms = console.now_ms(), console.settings.stuck_after_ms
    names = {key: view.state.topics[key.topic_id].name for key in rows}
    page = table_page(
        list(rows),
        query,
        {"topic": lambda key: (names[key], key.partition)},
        filter_text=lambda key: names[key],
        rows_max=console.settings.page_rows_max,
    )
    summary = next(row for row in console.groups(view) if row.name == name)
    trend = console.lag_history.trend(name, now_ms)
    slots = console.lag_history.slots(name, now_ms)
    members, members_error = group_members(console, view, name)
    return {
        "view": view,
        "name": name,
        "members": members,
        "members_error": members_error,
        "page": page,
        "rows": committed_rows(view, name, page.rows, now_ms, stuck_after_ms=stuck_after_ms),
        "wait": group_waits(view, [name], now_ms, stuck_after_ms=stuck_after_ms)[name],
        "summary": summary,
        "pace": GroupPace(trend, catch_up_s(summary.lag, trend)),
        "slots": slots,
        "gaps": sum(slot.lag is None for slot in slots),
        "lags": [sample.lag for sample in console.lag_history.samples(name)],
        "bars": lag_bars(slots),
    }


def lag_bars(slots: Sequence[LagSlot]) -> list[charts.Rect]:
    """A bar for each part of the history, with its time and its lag as text."""
    return charts.bars(
        [slot.lag for slot in slots],
        [
            f"{time_text(slot.begin_ms)}: "
            + ("no sample" if slot.lag is None else f"lag {count_text(slot.lag)}")
            for slot in slots
        ],
        width=CHART_WIDTH,
        height=CHART_HEIGHT,
    )
