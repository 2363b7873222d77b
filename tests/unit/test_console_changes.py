"""Plans of changes: names that others chose, times at the ends of the calendar, and results."""

from typing import Any

import pytest

from bucketlog.client.groups import Reset
from bucketlog.console.change_page import CHANGES
from bucketlog.console.changes import ChangePlan, ChangeScene
from bucketlog.console.page_query import PageQuery
from bucketlog.log_format.errors import ConfigurationError


class ToldLog:
    """Stands for a connection. It answers every question, and keeps what `apply` gets."""

    timeout_s = 5.0

    def __init__(self, *rows: Reset) -> None:
        self.rows, self.applied = rows, list[Any]()
        self.groups = self.topics = self

    def reset(self, *_: object, **__: object) -> tuple[Reset, ...]:
        return self.rows

    def members(self, _: str) -> tuple[()]:
        return ()

    def apply(self, group: str, plan: list[Reset]) -> None:
        self.applied.append((group, plan))

    def partition_count(self, _: str) -> int:
        return 1


def planned(log: ToldLog, **values: str) -> ChangePlan:
    scene = ChangeScene(None, log, PageQuery(values), "b:9092")  # type: ignore[arg-type]  # a stand-in
    return CHANGES[values["do"]].plan(scene)


MOVED, SAME = Reset("t", 0, 5, 2), Reset("t", 1, 2, 2)


def test_a_reset_commits_only_the_offsets_that_its_plan_shows() -> None:
    log = ToldLog(MOVED, SAME)
    plan = planned(log, do="reset-group", group="g", to="offset", offset="2")
    assert [row.what for row in plan.rows] == ["t [0]"]
    assert "in 1 partitions" in plan.apply()
    assert log.applied == [("g", [MOVED])]


@pytest.mark.parametrize(
    "time",
    ["0001-01-01T00:00+23:59", "9999-12-31T23:59-23:59", "1969-12-31T23:59:59.999", "1000-01-01"],
)
def test_a_reset_to_a_time_that_no_record_has_is_refused(time: str) -> None:
    with pytest.raises(ConfigurationError):
        planned(ToldLog(MOVED), do="reset-group", group="g", to="time", time=time)
