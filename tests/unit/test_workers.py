"""The supervisor of several brokers: what each is given, when it is started again, how all end."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from bucketlog.log_format.backoff import Backoff
from bucketlog.log_format.errors import ConfigurationError
from bucketlog.stateless_broker.process.workers import (
    RestartPolicy,
    Restarts,
    Workers,
    worker_settings,
)
from bucketlog.stateless_broker.settings.broker import BrokerSettings
from tests.rigs.broker_rig import until
from tests.rigs.patience import PATIENCE_S

AT_ONCE = RestartPolicy(Backoff(first_pause_ms=1, longest_pause_ms=1))
WORKER = """
import os, signal, sys, time
def say(word):
    with open(os.environ["TOLD"], "a") as told:
        print(word, os.environ["NUMBER"], os.getpid(), file=told)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
say("started")
if "CODE" in os.environ:
    sys.exit(int(os.environ["CODE"]))
while "DEAF" in os.environ:
    time.sleep(60)
signal.sigwait([signal.SIGTERM])
say("stopped")
sys.exit(int(os.environ.get("LAST_CODE", "0")))
"""
"""Tells what it does, and ends as it is told."""


def settings(**given: int | str) -> BrokerSettings:
    values = {"bucket_url": "memory://x", "redis_url": "redis://x"} | given
    return BrokerSettings.model_validate(values)


def test_only_the_first_worker_serves_the_console() -> None:
    rows = worker_settings(settings(console="on"), 3)
    assert [row.get("BUCKETLOG_CONSOLE") for row in rows] == [None, "false", "false"]
    rows = worker_settings(settings(), 2)
    assert not any("BUCKETLOG_CONSOLE" in row for row in rows)


def test_ports_and_node_ids_are_rows() -> None:
    given = settings(port=9092, http_port=8080, node_id=10, advertised_port=443)
    assert worker_settings(given, 2) == [
        {
            "BUCKETLOG_PORT": "9092",
            "BUCKETLOG_HTTP_PORT": "8080",
            "BUCKETLOG_NODE_ID": "10",
            "BUCKETLOG_ADVERTISED_PORT": "443",
        },
        {
            "BUCKETLOG_PORT": "9093",
            "BUCKETLOG_HTTP_PORT": "8081",
            "BUCKETLOG_NODE_ID": "11",
            "BUCKETLOG_ADVERTISED_PORT": "444",
        },
    ]


def test_what_is_not_given_is_each_ones_own() -> None:
    any_port = {"BUCKETLOG_PORT": "0", "BUCKETLOG_HTTP_PORT": "0"}
    assert worker_settings(settings(port=0), 3) == [any_port] * 3


def test_each_listener_has_a_row_of_ports() -> None:
    given = settings(
        listeners="A:PLAINTEXT://h:9092,B:PLAINTEXT://h:0,C:PLAINTEXT://h:9192",
        advertised_listeners="A://a:1,B://b:1,C://c:9192",
    )
    assert worker_settings(given, 2)[1] == {
        "BUCKETLOG_HTTP_PORT": "0",
        "BUCKETLOG_LISTENERS": "A:PLAINTEXT://h:9093,B:PLAINTEXT://h:0,C:PLAINTEXT://h:9193",
        "BUCKETLOG_ADVERTISED_LISTENERS": "A://a:2,B://b:2,C://c:9193",
    }


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            {"listeners": "A:PLAINTEXT://h:1,B:PLAINTEXT://h:2"},
            "choose ports that are 3 apart in BUCKETLOG_LI",
        ),
        ({"port": 65_534}, "BUCKETLOG_PORT: 3 workers from port 65534 on"),
        ({"http_port": 65_534}, "BUCKETLOG_HTTP_PORT: 3 workers from port 65534 on"),
        ({"port": 9092, "http_port": 9094}, "would share ports"),
        ({"port": 9092, "http_port": 9090}, "would share ports"),
    ],
)
def test_rows_that_do_not_fit_are_refused(given: dict[str, int], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        worker_settings(settings(**given), 3)
    assert len(worker_settings(settings(**given), 1)) == 1


def test_pauses_grow_while_a_worker_ends_early_and_begin_anew_after_a_life() -> None:
    restarts = Restarts(RestartPolicy(Backoff(100, 350), healthy_after_ms=1000))
    pauses_s = [restarts.pause_s(lived_ms) for lived_ms in (5, 5, 5, 5, 1000, 5)]
    assert pauses_s == [0.1, 0.2, 0.35, 0.35, 0.1, 0.2]


class Crew:
    """Workers that tell what they do."""

    def __init__(self, folder: Path, *own: dict[str, str], stop_timeout_s: float = 20) -> None:
        self.told = folder / "told"
        self.workers = Workers(
            [sys.executable, "-c", WORKER],
            [{"NUMBER": str(number), **one} for number, one in enumerate(own)],
            {**os.environ, "TOLD": str(self.told)},
            AT_ONCE,
            stop_timeout_s=stop_timeout_s,
        )

    def rows(self) -> list[tuple[str, int, int]]:
        """Word, number, pid."""
        lines = self.told.read_text().splitlines() if self.told.exists() else []
        found = [line.split() for line in lines]
        return [(word, int(number), int(pid)) for word, number, pid in found]

    def pids(self, number: int, word: str = "started") -> list[int]:
        return [pid for said, whose, pid in self.rows() if (said, whose) == (word, number)]


async def test_one_that_is_killed_is_started_again_and_all_are_stopped(tmp_path: Path) -> None:
    crew = Crew(tmp_path, {}, {})
    running = asyncio.create_task(crew.workers.run())
    await until(lambda: bool(crew.pids(0) and crew.pids(1)))
    os.kill(crew.pids(0)[0], 9)
    await until(lambda: len(crew.pids(0)) == 2)
    crew.workers.stop()
    assert await running == 0
    assert len(crew.pids(1)) == 1
    for number in (0, 1):
        assert crew.pids(number, "stopped") == crew.pids(number)[-1:]


async def test_one_that_ends_early_is_tried_on(tmp_path: Path) -> None:
    crew = Crew(tmp_path, {"CODE": "1"}, {})
    running = asyncio.create_task(crew.workers.run())
    await until(lambda: len(crew.pids(0)) > 3 and len(crew.pids(1)) == 1)
    crew.workers.stop()
    await running
    assert crew.pids(1, "stopped") == crew.pids(1)


async def test_a_configuration_that_does_not_work_ends_all(tmp_path: Path) -> None:
    crew = Crew(tmp_path, {"CODE": "2"}, {})
    async with asyncio.timeout(PATIENCE_S):
        assert await crew.workers.run() == 2
    assert len(crew.pids(0)) == 1


async def test_one_that_ends_badly_at_the_end_makes_the_code_1(tmp_path: Path) -> None:
    crew = Crew(tmp_path, {"LAST_CODE": "7"}, {})
    running = asyncio.create_task(crew.workers.run())
    await until(lambda: bool(crew.pids(0) and crew.pids(1)))
    crew.workers.stop()
    assert await running == 1


async def test_one_that_does_not_end_is_killed(tmp_path: Path) -> None:
    crew = Crew(tmp_path, {"DEAF": "yes"}, stop_timeout_s=0.01)
    running = asyncio.create_task(crew.workers.run())
    await until(lambda: bool(crew.pids(0)))
    crew.workers.stop()
    assert await running == 1
    assert not crew.pids(0, "stopped")
