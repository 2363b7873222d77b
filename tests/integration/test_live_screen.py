"""`bucketlog top`: its screen under textual's pilot, and a sample of a real cluster for scripts."""

import asyncio
import json
import signal
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count

import pytest
from textual.app import App
from textual.pilot import Pilot
from textual.widgets import Static

from bucketlog.cli.live.sample import Look, TopicExtent, WorstLag
from bucketlog.cli.live.screen import LiveView
from bucketlog.cost.assumptions import Assumptions
from bucketlog.embedded.cluster import EmbeddedCluster
from bucketlog.log_format.errors import BucketlogError
from tests.integration.test_cli_terminal import ended, terminal
from tests.rigs.own_shell import OwnShell
from tests.rigs.patience import PATIENCE_S, eventually_async
from tests.rigs.shell import Shell

pytestmark = pytest.mark.long

HOSTILE = "evil\x1b]0;pwned\x07[bold red]x[/]"
_numbers = count()


@dataclass
class Cluster:
    """A cluster whose looks return what a test sets. Each look waits until `may_answer` is set."""

    topics: dict[str, TopicExtent] = field(default_factory=dict)
    groups: tuple[WorstLag, ...] = ()
    failure: BucketlogError | None = None
    filters: list[str] = field(default_factory=list)
    may_answer: threading.Event = field(default_factory=threading.Event)

    def look(self, wanted: str) -> Look:
        self.filters.append(wanted)
        assert self.may_answer.wait(PATIENCE_S)
        if self.failure is not None:
            raise self.failure
        return Look(
            float(len(self.filters)),
            "healthy: 1 broker",
            True,
            topics=self.topics,
            groups=self.groups,
        )


@asynccontextmanager
async def shown(cluster: Cluster, width: int = 80) -> AsyncIterator[tuple[LiveView, Pilot[None]]]:
    view = LiveView(cluster.look, prices=Assumptions(), interval_s=0.01)
    cluster.may_answer.set()
    async with view.run_test(size=(width, 24)) as pilot:
        yield view, pilot


def text_of(app: App[None], name: str) -> str:
    return str(app.query_one(name, Static).content)


async def until(holds: Callable[[], bool]) -> None:
    await eventually_async(holds)


def lines_of(app: App[None]) -> list[str]:
    return text_of(app, "#text").splitlines()


def names(app: App[None], head: str) -> list[str]:
    """Return the first word of each line of a table."""
    lines = lines_of(app)
    start = next(at for at, line in enumerate(lines) if line.startswith(head)) + 1
    end = lines.index("", start)
    return [line.split()[0] for line in lines[start:end]]


async def test_keys_sort_and_filter() -> None:
    topics = {"aa": TopicExtent({0: 1}, 10), "bb": TopicExtent({0: 1}, 10)}
    groups = (WorstLag("g1", 1, "t[0]", 9_000), WorstLag("g2", 5, "t[0]", 10))
    cluster = Cluster(topics, groups)
    async with shown(cluster) as (view, pilot):
        await until(lambda: view.sample is not None)
        assert text_of(view, "#health") == "healthy: 1 broker"
        assert names(view, "GROUP") == ["g2", "g1"]
        await pilot.press("t")
        assert names(view, "GROUP") == ["g1", "g2"]
        await pilot.press("n")
        assert names(view, "TOPIC") == ["aa", "bb"]
        await pilot.press("slash", "b", "enter")
        await until(lambda: names(view, "TOPIC") == ["bb"])
        await until(lambda: cluster.filters[-1] == "b")
        assert "filter: b" in text_of(view, "#text")
        await pilot.press("escape")
        await until(lambda: names(view, "TOPIC") == ["aa", "bb"])
        await pilot.press("q")
    assert not view.is_running
    view.wait_for_look()


async def test_hostile_names_are_text() -> None:
    cluster = Cluster({HOSTILE: TopicExtent({0: 1}, 1)}, (WorstLag(HOSTILE, 1, HOSTILE, 1),))
    async with shown(cluster, width=160) as (view, _):
        await until(lambda: view.sample is not None)
        drawn = text_of(view, "#text")
        assert "\\x1b]0;pwned\\x07[bold red]x[/]" in drawn
        assert "\x1b" not in drawn
        assert "\x1b]0;" not in view.export_screenshot()


async def test_a_failure_is_shown_and_ends() -> None:
    cluster = Cluster(failure=BucketlogError("no broker answers", remedy="start one"))
    async with shown(cluster) as (view, _):
        await until(lambda: "no broker answers" in text_of(view, "#health"))
        assert view.query_one("#health").has_class("unhealthy")
        cluster.failure = None
        await until(lambda: text_of(view, "#health") == "healthy: 1 broker")
        assert not view.query_one("#health").has_class("unhealthy")


async def test_q_does_not_wait_for_a_broker() -> None:
    cluster = Cluster()
    async with shown(cluster) as (view, pilot):
        await until(lambda: view.sample is not None)
        cluster.may_answer.clear()
        looks = len(cluster.filters)
        await until(lambda: len(cluster.filters) > looks)
        await pilot.press("q")
    assert not view.is_running
    cluster.may_answer.set()
    await asyncio.to_thread(view.wait_for_look)


async def test_nothing_is_drawn_on_a_closed_screen() -> None:
    async with shown(Cluster()) as (view, _):
        await until(lambda: view.sample is not None)
    view.on_resize()


@pytest.fixture
def shell(broker: EmbeddedCluster) -> Shell:
    return OwnShell(broker.bootstrap)


def test_a_sample_for_scripts(shell: Shell, broker: EmbeddedCluster) -> None:
    name = f"top-{next(_numbers)}"
    shell.ok("topic", "create", name)
    shell.ok("produce", name, stdin=b"a\nb\n")
    shell.ok("group", "reset", name, "--topic", name, "--to", "start", "-y")
    metrics = f"http://127.0.0.1:{broker.http_port}/metrics"
    once = ("top", "--once", "--interval-s", "0.5", "--filter", name)
    found = json.loads(shell.ok(*once, "--metrics", metrics, "-o", "json"))
    assert (found["healthy"], found["notes"]) == (True, [])
    (row,) = found["brokers"]
    assert row["broker"] == f"127.0.0.1:{broker.http_port}"
    assert row["requests_per_s"] > 0, "those of the looks"
    assert row["usd_per_hour"] >= 0
    (topic,) = found["topics"]
    assert (topic["topic"], topic["records_per_s"], topic["stored_bytes"] > 0) == (name, 0.0, True)
    (group,) = found["groups"]
    assert (group["group"], group["worst_lag"], group["worst_partition"]) == (name, 2, f"{name}[0]")
    assert group["lag_ms"] >= 0
    table = shell.ok(*once).decode()
    assert "give --metrics http://HOST:PORT/metrics for each broker" in table
    assert name in table


def test_the_number_of_topics_and_groups_is_bounded(shell: Shell) -> None:
    name = f"top-{next(_numbers)}"
    for at in range(3):
        shell.ok("topic", "create", f"{name}-{at}")
    once = ("top", "--once", "--interval-s", "0.5", "--filter", name, "--topics-max", "2")
    found = json.loads(shell.ok(*once, "-o", "json"))
    assert [row["topic"] for row in found["topics"]] == [f"{name}-0", f"{name}-1"]
    assert "1 topic not looked at: raise --topics-max, or set a filter" in found["notes"]


@pytest.mark.parametrize(("end", "code"), [("q", 0), ("\x03", 130), (None, 143)])
def test_in_a_terminal_of_80_columns(
    shell: Shell, broker: EmbeddedCluster, end: str | None, code: int
) -> None:
    name = f"top-{next(_numbers)}"
    shell.ok("topic", "create", name)
    metrics = f"http://127.0.0.1:{broker.http_port}/metrics"
    command = ("top", "--interval-s", "0.5", "--filter", name, "--metrics", metrics)
    with terminal(Shell(broker.bootstrap), *command, columns=80) as child:
        child.expect_exact("healthy: 1 broker")
        child.expect_exact(f"127.0.0.1:{broker.http_port}")
        child.expect_exact(name)
        if end is None:
            child.kill(signal.SIGTERM)
        else:
            child.send(end)
        ended_with, shown_last = ended(child)
    assert ended_with == code
    assert "\x1b[?1049l" in shown_last, "the terminal shows again what it showed before"
    assert "Traceback" not in shown_last


def test_without_a_terminal_it_prints_once_or_not_at_all(shell: Shell) -> None:
    assert "top needs a terminal (add --once)" in shell.failing(2, "top")
    assert "-o json without --once (add --once)" in shell.failing(2, "top", "-o", "json")
    assert "Connection refused" in Shell("127.0.0.1:1").failing(1, "top", "--once")
