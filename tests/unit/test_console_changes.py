"""Plans of changes: names that others chose, times at the ends of the calendar, and results."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from bucketlog.client.groups import Reset
from bucketlog.client.log import Log
from bucketlog.console.change_page import CHANGES
from bucketlog.console.changes import ChangePlan, ChangeScene
from bucketlog.console.page_query import PageQuery
from bucketlog.log_format.errors import ConfigurationError, LogError


class ToldLog:
    """Stands for a connection. It answers every question, and keeps what `apply` gets."""

    timeout_s = 5.0

    def __init__(self, *rows: Reset) -> None:
        self.rows, self.applied = rows, list[Any]()
        self.groups = self.topics = self
        self.producer: Any = None

    def reset(self, *_: object, **__: object) -> tuple[Reset, ...]:
        return self.rows

    def members(self, _: str) -> tuple[()]:
        return ()

    def apply(self, group: str, plan: list[Reset]) -> None:
        self.applied.append((group, plan))

    def partition_count(self, _: str) -> int:
        return 1


def planned(log: ToldLog, **values: str) -> ChangePlan:
    scene = ChangeScene(
        None,  # type: ignore[arg-type]  # a stand-in
        log,  # type: ignore[arg-type]  # a stand-in
        PageQuery(values),
        "b:9092",
        lambda: None,  # type: ignore[arg-type, return-value]  # a stand-in
    )
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


@pytest.mark.parametrize(
    "values",
    [
        {"do": "reset-group", "group": "g\0x"},
        {"do": "reset-group", "group": "g", "topic": "t\0x"},
        {"do": "reset-group", "group": "ż" * 20_000},
        {"do": "delete-group", "group": "g\0x"},
        {"do": "create-topic", "topic": "t\0x"},
        {"do": "create-topic", "topic": "t", "settings": "retention.ms=1\0"},
        {"do": "alter-topic", "topic": "t", "unset": "retention.ms\0x"},
        {"do": "delete-topic", "topic": "t\0", "typed": "t\0"},
        {"do": "produce", "topic": "t\0x"},
        {"do": "produce", "topic": "t", "headers": "a\0b=c"},
    ],
)
def test_names_that_a_client_would_cut_are_refused(values: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError, match=r"NUL|bytes"):
        planned(ToldLog(MOVED), **values)


@pytest.mark.parametrize("group", ["a\x1b[2J", "a\nb", "a\u202eb", "a\x7f"])
def test_a_command_that_would_name_another_group_is_not_shown(group: str) -> None:
    assert planned(ToldLog(MOVED), do="reset-group", group=group).shown_command == ""


def test_a_topic_that_begins_with_a_dash_is_one_word() -> None:
    plan = planned(ToldLog(MOVED), do="reset-group", group="g", topic="--dry-run")
    assert plan.shown_command == (
        "bucketlog group reset --to start --topic=--dry-run --bootstrap b:9092 -- g"
    )


def test_a_record_with_control_characters_has_a_command() -> None:
    plan = planned(ToldLog(), do="produce", topic="t", value="\x1b\x7f\n\u202e'")
    assert r"\u001b\u007f\n\u202e'" in plan.shown_command.replace("'\"'\"'", "'")


def test_a_record_that_no_broker_takes_is_given_up() -> None:
    """The producer's default would hold the page's thread for minutes."""
    with closed_port() as port:
        nobody = Log(f"127.0.0.1:{port}", client_id="x", timeout_s=0.2, config=None)
        log = ToldLog()
        log.producer, log.timeout_s = nobody.producer, nobody.timeout_s
        plan = planned(log, do="produce", topic="t", partition="0", value="x")
        with pytest.raises(LogError) as caught:
            plan.apply()
    assert caught.value.retriable


@contextmanager
def closed_port() -> Iterator[int]:
    """A port of this machine on which nobody listens."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]
