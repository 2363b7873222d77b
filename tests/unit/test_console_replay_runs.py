"""Replays of the console to Parquet files: progress, limits, and what stays after a failure."""

import json
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pyarrow.parquet as pq
import pytest

from bucketlog.console.application import FORM_ACTIONS, application
from bucketlog.console.page_query import PageQuery
from bucketlog.console.pages import Console
from bucketlog.console.replay_page import replay
from bucketlog.console.replay_program import ReplayProgress, ReplayTooLargeError
from bucketlog.console.replay_runs import (
    ReplayFolderError,
    ReplayLimits,
    ReplayOutcome,
    ReplayRefusedError,
    ReplayRun,
    ReplayRuns,
    new_folder_name,
)
from bucketlog.console.settings import MIB, ConsoleSettings
from bucketlog.log_format.errors import ConfigurationError
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.backends.location import open_sync_bucket
from bucketlog.tiered_storage.encryption.key_service import KeyAccess
from tests.rigs.console_log import SCRIPT
from tests.rigs.patience import eventually
from tests.rigs.written_log import WrittenLog, some_records
from tests.unit.test_console_times import SteppedClock, answer
from tests.unit.test_verify import IDENTITY

MEMORY_BYTES = 4096 * MIB
PROGRAM = (sys.executable, "-P", "-m", "bucketlog.console.replay_program", str(MEMORY_BYTES))
LIMITS = ReplayLimits(2, 1_000 * MIB, 1_000 * MIB, 600_000)
BEGIN = """
import json, pathlib, sys, time
request = json.load(sys.stdin)
pathlib.Path(request["target"], "part").write_bytes(b"x")
def say(**message): print(json.dumps(message), flush=True)
say(expected=9, is_exact=True)
say(records=3, bytes=30)
"""
"""A program that begins as a replay does."""
ENDLESS = f"{BEGIN}\ntime.sleep(1000)"
OWN = "http://localhost"
NAME = "..t"


@pytest.fixture
def place(tmp_path: Path) -> str:
    return f"file://{tmp_path}/bucket"


@pytest.fixture
def log(place: str) -> Iterator[WrittenLog]:
    """A topic of two partitions with 20 records, whose name begins as a path."""
    store = open_sync_bucket(place)
    assert store.create(keys.CLUSTER, [IDENTITY.model_dump_json().encode()])
    written = WrittenLog(store)
    written.create_topic(NAME, 2)
    for partition in range(2):
        written.append(NAME, partition, some_records(10, headers=True))
    written.flush()
    yield written
    store.close()


class Folder:
    """Makes `ReplayRuns` of programs, and closes them after the test."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.clock = SteppedClock()
        self._made: list[ReplayRuns] = []

    def of(self, *command: str, limits: ReplayLimits = LIMITS) -> ReplayRuns:
        self._made.append(ReplayRuns(self.path, command, limits, now_ms=self.clock.ms))
        return self._made[-1]

    def names(self) -> list[str]:
        return [each.name for each in self.path.iterdir()]

    def close(self) -> None:
        for each in self._made:
            each.close()


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    (tmp_path / "replays").mkdir()
    found = Folder(tmp_path / "replays")
    yield found
    found.close()


def ended(runs: ReplayRuns) -> ReplayRun:
    """Wait for the end of the replay, and return its state."""
    eventually(lambda: runs.latest is not None and not runs.latest.is_running)
    assert runs.latest is not None
    return runs.latest


def console_of(log: WrittenLog, place: str, runs: ReplayRuns | None, **settings: int) -> Console:
    known = ConsoleSettings.model_validate({"refresh_ms": 0, **settings})
    return Console(
        *(log.bucket, place, known, KeyAccess(), 1, lambda: 0, lambda: 0.0), replays=runs
    )


def form_of(log: WrittenLog, place: str, **changes: str) -> bytes:
    """The form of the page's button."""
    values = replay(console_of(log, place, None), PageQuery({"topic": NAME}))
    given = {
        "topic": NAME,
        "topic_id": values["topic"].topic_id.hex(),
        "seek": "offsets",
        "offsets": values["offsets_text"],
    }
    return urlencode(given | changes).encode()


async def sent(
    console: Console, path: str, body: bytes = b"", origin: str = OWN
) -> tuple[int, str]:
    """Status and body of the answer to a form."""
    app = application(console, hosts=["localhost"])
    status, _, text = await answer(app, path, method="POST", origin=origin, form=body)
    return status, text


async def test_a_replay_writes_the_records_to_a_new_folder(
    folder: Folder, log: WrittenLog, place: str
) -> None:
    runs = folder.of(*PROGRAM)
    console = console_of(log, place, runs)
    assert (await sent(console, "/replay/start", form_of(log, place)))[0] == 303
    run = ended(runs)
    assert run.outcome is ReplayOutcome.WRITTEN, run.error
    assert (run.records, run.expected, run.is_exact, run.percent) == (20, 20, True, 100)
    assert folder.names() == [run.folder]
    table = pq.read_table(folder.path / run.folder)
    assert table.num_rows == 20
    assert set(table.column("topic").to_pylist()) == {NAME}
    paths = {
        str(each.relative_to(folder.path / run.folder)): each.stat().st_size
        for each in (folder.path / run.folder).rglob("*")
        if each.is_file()
    }
    assert dict(run.files) == paths
    assert {Path(path).parts[0] for path in paths} == {"partition=0", "partition=1", "_SUCCESS"}
    app = application(console, hosts=["localhost"])
    status, _, body = await answer(app, "/replay")
    assert (status, run.folder in body, "partition=1/part-" in body) == (200, True, True)


def test_a_name_of_a_folder_is_new_and_has_the_time() -> None:
    names = {new_folder_name(1_769_860_800_123) for _ in range(100)}
    assert len(names) == 100
    assert all(name.startswith("replay-20260131T120000Z-") for name in names)


def test_one_replay_runs_and_can_be_stopped(folder: Folder) -> None:
    runs = folder.of(sys.executable, "-c", ENDLESS)
    runs.start("t", {})
    eventually(lambda: runs.latest is not None and runs.latest.records == 3)
    assert runs.latest is not None
    assert runs.latest.percent == 33
    assert folder.names() == [f"{runs.latest.folder}.partial"]
    with pytest.raises(ReplayRefusedError, match="is running"):
        runs.start("t", {})
    runs.stop()
    assert runs.latest.outcome is ReplayOutcome.STOPPED
    assert folder.names() == []
    runs.start("t", {})
    runs.close()
    assert folder.names() == []


@pytest.mark.parametrize(
    ("end", "reason"),
    [
        ("sys.exit(3)", "exit status 3.*REPLAY_MEMORY_BYTES_MAX"),
        ("print('no JSON')", "exit status"),
        ("say(records='x', bytes=1)", "exit status"),
        ("say(records=float('inf'), bytes=1)", "exit status"),
        ("print('[1]')", "exit status"),
        ("say(expected=None)", "exit status"),
        ("print('[' * 5_000_000)", "exit status"),
        ("say(error='it is damaged')", "it is damaged"),
        ("say(records=9, bytes=90, written=True); sys.exit(1)", "exit status 1"),
        ("", "exit status 0"),
    ],
)
def test_a_failed_replay_leaves_no_file(folder: Folder, end: str, reason: str) -> None:
    runs = folder.of(sys.executable, "-c", f"{BEGIN}\n{end}")
    runs.start("t", {})
    run = ended(runs)
    assert run.outcome is ReplayOutcome.FAILED
    assert re.search(reason, run.error)
    assert folder.names() == []


def test_a_replay_ends_after_its_time(folder: Folder) -> None:
    runs = folder.of(sys.executable, "-c", ENDLESS, limits=LIMITS._replace(time_ms=500))
    runs.start("t", {})
    run = ended(runs)
    assert run.outcome is ReplayOutcome.FAILED
    assert "500 ms" in run.error
    assert "BUCKETLOG_CONSOLE_REPLAY_MS_MAX" in run.error
    assert folder.names() == []


@pytest.mark.parametrize(
    ("limits", "setting"),
    [
        (LIMITS._replace(stored_bytes=10), "BUCKETLOG_CONSOLE_REPLAY_STORED_BYTES_MAX"),
        (LIMITS._replace(record_bytes=10), "BUCKETLOG_CONSOLE_REPLAY_RECORD_BYTES_MAX"),
    ],
)
async def test_a_replay_ends_at_its_limits(
    folder: Folder, log: WrittenLog, place: str, limits: ReplayLimits, setting: str
) -> None:
    runs = folder.of(*PROGRAM, limits=limits)
    status, _ = await sent(console_of(log, place, runs), "/replay/start", form_of(log, place))
    assert status == 303
    run = ended(runs)
    assert run.outcome is ReplayOutcome.FAILED
    assert setting in run.error
    assert folder.names() == []


async def test_too_little_memory_is_a_failure(folder: Folder, log: WrittenLog, place: str) -> None:
    runs = folder.of(*PROGRAM[:-1], str(MIB))
    await sent(console_of(log, place, runs), "/replay/start", form_of(log, place))
    assert "REPLAY_MEMORY_BYTES_MAX" in ended(runs).error
    assert folder.names() == []


def test_progress_is_bounded_in_time_and_size() -> None:
    lines: list[str] = []
    clock = SteppedClock()
    progress = ReplayProgress(lambda message: lines.append(json.dumps(message)), 1_000, clock.s)
    for _ in range(1_000):
        clock.now += 1
        progress.passed(1, 1)
    assert 5 <= len(lines) <= 6
    with pytest.raises(ReplayTooLargeError):
        progress.passed(1, 1)


def test_a_folder_that_is_gone_is_named(folder: Folder) -> None:
    runs = folder.of(sys.executable, "-c", ENDLESS)
    shutil.rmtree(folder.path)
    with pytest.raises(ReplayFolderError, match="--replay-folder"):
        runs.start("t", {})
    assert runs.latest is None


def test_a_folder_that_is_missing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="--replay-folder"):
        ReplayRuns(tmp_path / "none", PROGRAM, LIMITS, now_ms=lambda: 0)


@pytest.mark.parametrize("path", [*FORM_ACTIONS, "replay/stop"])
@pytest.mark.parametrize("origin", ["", "null", "http://evil.example", "http://["])
async def test_other_pages_start_and_stop_nothing(
    folder: Folder, log: WrittenLog, place: str, path: str, origin: str
) -> None:
    runs = folder.of(sys.executable, "-c", ENDLESS)
    if path == "replay/stop":
        runs.start("t", {})
    before = runs.latest
    status, body = await sent(
        console_of(log, place, runs), f"/{path}", form_of(log, place), origin=origin
    )
    assert (status, "only a page of this console" in body) == (403, True)
    if path == "replay/stop":
        assert runs.latest is not None
        assert runs.latest.is_running
    else:
        assert runs.latest is before is None


@pytest.mark.parametrize(
    "changes",
    [
        {"topic": SCRIPT},
        {"topic_id": "00"},
        {"offsets": "0:0-5,7:0-5"},
        {"offsets": SCRIPT},
        {"seek": "x"},
        {"partitions": "../../x"},
    ],
)
async def test_hostile_forms_start_nothing(
    folder: Folder, log: WrittenLog, place: str, changes: dict[str, str]
) -> None:
    runs = folder.of(sys.executable, "-c", ENDLESS)
    status, body = await sent(
        console_of(log, place, runs), "/replay/start", form_of(log, place, **changes)
    )
    assert status in (400, 404)
    assert "<script>document" not in body
    assert runs.latest is None
    assert folder.names() == []


async def test_a_console_without_a_folder_writes_nothing(log: WrittenLog, place: str) -> None:
    console = console_of(log, place, None)
    status, body = await sent(console, "/replay/start", form_of(log, place))
    assert (status, "--replay-folder" in body) == (400, True)
    app = application(console, hosts=["localhost"])
    status, _, body = await answer(app, "/replay?topic=..t")
    assert (status, "Write Parquet files" in body) == (200, False)


async def test_a_plan_that_is_too_large_has_no_button(
    folder: Folder, log: WrittenLog, place: str
) -> None:
    runs = folder.of(sys.executable, "-c", ENDLESS)
    for setting, is_offered in ((10, False), (MIB, True)):
        console = console_of(log, place, runs, replay_stored_bytes_max=setting)
        app = application(console, hosts=["localhost"])
        _, _, body = await answer(app, "/replay?topic=..t")
        assert ("Write Parquet files" in body) is is_offered
        assert ("REPLAY_STORED_BYTES_MAX" in body) is not is_offered
