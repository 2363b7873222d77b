"""The process of a broker's console: what it is given, when it is started again, how it ends."""

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
import pytest

from bucketlog.console.broker_program import READY as PROGRAM_READY
from bucketlog.console.broker_program import ServedPlace
from bucketlog.console.settings import ConsoleSettings
from bucketlog.log_format.backoff import Backoff
from bucketlog.stateless_broker.process.console_process import (
    PROGRAM,
    READY,
    ConsoleProcess,
    console_environment,
    served_place,
)
from bucketlog.stateless_broker.process.start_up import misspelt, unknown
from bucketlog.stateless_broker.process.workers import RestartPolicy
from bucketlog.stateless_broker.settings.broker import BrokerSettings
from tests.rigs.patience import eventually_async

AT_ONCE = RestartPolicy(Backoff(first_pause_ms=1, longest_pause_ms=1))
STAND_IN = """
import json, os, stat, sys
at = json.loads(sys.stdin.readline())
folder = os.path.dirname(at["socket_path"])
life = {"pid": os.getpid(), "mode": stat.S_IMODE(os.stat(folder).st_mode)}
with open(os.environ["TOLD"], "a") as told:
    print(json.dumps(life), file=told)
if "HANG" not in os.environ:
    print("ready", flush=True)
sys.stdin.read()
"""


def settings(**given: object) -> BrokerSettings:
    return BrokerSettings.model_validate({"bucket_url": "memory://x", "redis_url": "x"} | given)


class Served:
    def __init__(self, told: Path, console: ConsoleProcess) -> None:
        self._told = told
        self.console = console

    @property
    def lives(self) -> list[dict[str, int]]:
        if not self._told.exists():
            return []
        return [json.loads(line) for line in self._told.read_text().splitlines()]


@asynccontextmanager
async def served(
    folder: Path, environment: Mapping[str, str] | None = None, **given: object
) -> AsyncIterator[Served]:
    told = folder / "told"
    console = ConsoleProcess(
        settings(**given),
        {"TOLD": str(told), **(environment or {})},
        command=[sys.executable, "-c", STAND_IN],
        policy=AT_ONCE,
    )
    running = asyncio.create_task(console.run())
    try:
        yield Served(told, console)
    finally:
        running.cancel()
        await asyncio.wait([running])
        assert running.cancelled()


async def test_a_process_that_dies_comes_back(tmp_path: Path) -> None:
    async with served(tmp_path) as run:
        await eventually_async(lambda: run.console.is_ready)
        first = run.console.pid
        psutil.Process(first).kill()
        await eventually_async(lambda: run.console.is_ready and run.console.pid != first)
    assert len(run.lives) == 2


async def test_the_end_of_the_broker_ends_process_and_folder(tmp_path: Path) -> None:
    async with served(tmp_path) as run:
        await eventually_async(lambda: run.console.is_ready)
        folder = Path(run.console.socket_path).parent
        psutil.Process(run.console.pid).suspend()
    (life,) = run.lives
    assert life["mode"] == 0o700
    assert not psutil.pid_exists(life["pid"])
    assert not folder.exists()
    assert not run.console.is_ready


async def test_a_process_that_is_not_ready_in_time_is_ended(tmp_path: Path) -> None:
    async with served(tmp_path, {"HANG": "1"}, http_console_start_ms_max=500) as run:
        await eventually_async(lambda: len(run.lives) == 2)
        assert not run.console.is_ready
        assert not psutil.pid_exists(run.lives[0]["pid"])


async def test_a_process_that_cannot_be_started_is_tried_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    console = ConsoleProcess(settings(), {}, command=[str(tmp_path / "none")], policy=AT_ONCE)
    running = asyncio.create_task(console.run())
    await eventually_async(lambda: caplog.text.count("cannot be started: No such file") > 1)
    running.cancel()
    await asyncio.wait([running])


def test_secrets_of_the_broker_stay_with_it() -> None:
    kept = {
        "AWS_SECRET_ACCESS_KEY": "s",
        "BUCKETLOG_CONSOLE_REFRESH_MS": "1",
        "BUCKETLOG_S3_ENDPOINT_URL": "http://s3",
        "PATH": "/bin",
    }
    secret = {"BUCKETLOG_REDIS_URL": "redis://:pw@x", "BUCKETLOG_SCHEMA_REGISTRY_AUTH": "a:b"}
    assert console_environment(kept | secret | {"BUCKETLOG_CONSOLE": "on"}) == kept


def test_the_program_takes_what_the_broker_gives() -> None:
    given = settings(
        http_host="10.0.0.1",
        http_console_allowed_hosts=" logs.example, *.pages.example ,",
        encryption_key_file="keys",
    )
    place = ServedPlace(**json.loads(json.dumps(served_place(given, "/socket"))))
    assert place.hosts == ["10.0.0.1", "logs.example", "*.pages.example"]
    assert (place.place, place.root, place.key_file) == ("memory://x", "/console", "keys")
    assert PROGRAM_READY == READY


@pytest.mark.parametrize(
    ("variables", "given", "problem"),
    [
        ({"BUCKETLOG_CONSOLE_PAGE_MS_MAX": "soon"}, {}, "BUCKETLOG_CONSOLE_PAGE_MS_MAX: "),
        ({}, {"http_console_allowed_hosts": "http://x"}, "'http://x' is not a host name"),
        ({}, {}, "no log"),
    ],
)
async def test_a_program_that_cannot_start_says_why_in_a_line(
    tmp_path: Path, variables: dict[str, str], given: dict[str, str], problem: str
) -> None:
    of_broker = settings(bucket_url=f"file://{tmp_path}/bucket", **given)
    process = await asyncio.create_subprocess_exec(
        *PROGRAM, env=console_environment(os.environ) | variables, stdin=PIPE, stderr=PIPE
    )
    assert process.stdin is not None
    assert process.stderr is not None
    process.stdin.write(json.dumps(served_place(of_broker, "/none/socket")).encode() + b"\n")
    (line,) = (await process.stderr.read()).decode().splitlines()
    process.stdin.close()
    assert await process.wait() == 1
    assert line.startswith("bucketlog console: ")
    assert problem in line


def test_settings_of_broker_and_console_are_not_mixed_up() -> None:
    of_console = {f"BUCKETLOG_CONSOLE_{name}".upper() for name in ConsoleSettings.model_fields}
    flags = {f"BUCKETLOG_CONSOLE_{name}" for name in ("HOST", "PORT", "ALLOWED_HOST", "CHANGES")}
    names = of_console | flags | {"BUCKETLOG_CONSOLE"}
    assert not list(misspelt(names))
    assert not unknown(names)
    of_broker = {f"BUCKETLOG_{name}".upper() for name in BrokerSettings.model_fields}
    assert not of_broker & (of_console | flags)
    assert list(misspelt(["BUCKETLOG_CONSOLES"])) == [("BUCKETLOG_CONSOLES", "BUCKETLOG_CONSOLE")]
