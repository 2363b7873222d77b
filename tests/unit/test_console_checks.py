"""The console's checks of the whole log: progress, outcomes, limits, and who may start them."""

import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest

from bucketlog.console.application import (
    ACTIONS,
    FORM_ACTIONS,
    FORMS,
    POSTED_PAGES,
    application,
)
from bucketlog.console.log_checks import CheckRefusedError, LogCheck, LogChecks, Outcome
from bucketlog.console.pages import Console
from bucketlog.console.settings import MIB, ConsoleSettings
from bucketlog.console.verify_page import LABELS
from bucketlog.console.verify_program import Progress, report_line
from bucketlog.inspect.verify import verify_log
from bucketlog.inspect.verify_report import Damage, VerifyReport
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.backends.location import open_sync_bucket
from bucketlog.tiered_storage.bucket import SyncBucket
from bucketlog.tiered_storage.encryption.key_service import KeyAccess
from tests.rigs.patience import eventually
from tests.rigs.written_log import WrittenLog, some_records
from tests.unit.test_console_times import SteppedClock, answer
from tests.unit.test_verify import IDENTITY

PROGRAM = (sys.executable, "-P", "-m", "bucketlog.console.verify_program")
ENDLESS = 'import time; print(\'{"checked": 3, "of": 9}\', flush=True); time.sleep(1000)'


@pytest.fixture
def place(tmp_path: Path) -> str:
    return f"file://{tmp_path}/bucket"


@pytest.fixture
def bucket(place: str) -> Iterator[SyncBucket]:
    """A log of three segments."""
    store = open_sync_bucket(place)
    assert store.create(keys.CLUSTER, [IDENTITY.model_dump_json().encode()])
    log = WrittenLog(store)
    log.create_topic("t")
    for _ in range(3):
        log.append("t", 0, some_records(3))
        log.flush()
    yield store
    store.close()


class Checks:
    """Makes `LogChecks` of programs, and closes them after the test."""

    def __init__(self) -> None:
        self.clock = SteppedClock()
        self._made: list[LogChecks] = []

    def of(self, *command: str, interval_ms: int = 1_000) -> LogChecks:
        self._made.append(LogChecks(command, interval_ms=interval_ms, now_ms=self.clock.ms))
        return self._made[-1]

    def close(self) -> None:
        for each in self._made:
            each.close()


@pytest.fixture
def checks() -> Iterator[Checks]:
    found = Checks()
    yield found
    found.close()


def ended(found: LogChecks) -> LogCheck:
    """Wait for the end of the check, and return the check."""
    eventually(lambda: found.latest is not None and not found.latest.is_running)
    assert found.latest is not None
    return found.latest


def test_a_sound_log(checks: Checks, place: str, bucket: SyncBucket) -> None:
    found = checks.of(*PROGRAM, place, str(2048 * MIB), "100")
    assert found.latest is None
    found.start()
    check = ended(found)
    report = verify_log(bucket)
    assert check.outcome is Outcome.SOUND, check.error
    assert (check.checked, check.of) == (report.segments, report.segments)
    assert check.counts is not None
    assert {name: getattr(report, name) for name in check.counts} == check.counts
    assert set(check.counts) == set(LABELS)
    assert {*check.counts, "damage"} == {each.name for each in fields(VerifyReport)}


def test_a_damaged_log(checks: Checks, place: str, bucket: SyncBucket, tmp_path: Path) -> None:
    damaged = sorted(info.key for info in bucket.list(keys.LOG))[1]
    path = next(at for at in tmp_path.rglob("*") if str(at).endswith(damaged))
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.chmod(0o600)
    path.write_bytes(data)
    found = checks.of(*PROGRAM, place, str(2048 * MIB), "100")
    found.start()
    check = ended(found)
    assert check.outcome is Outcome.DAMAGED, check.error
    assert check.damage_count == len(check.damage)
    assert check.damage == verify_log(bucket).damage
    assert damaged in {each.key for each in check.damage}


def test_a_place_without_a_log_is_named(checks: Checks, place: str) -> None:
    found = checks.of(*PROGRAM, place, str(2048 * MIB), "100")
    found.start()
    check = ended(found)
    assert check.outcome is Outcome.FAILED
    assert place in check.error


@pytest.mark.parametrize(
    "program", ["raise SystemExit(3)", "print('no JSON')", "print('[' * 5_000_000)"]
)
def test_a_process_that_ends_early_is_a_failure(checks: Checks, program: str) -> None:
    found = checks.of(sys.executable, "-c", program)
    found.start()
    check = ended(found)
    assert check.outcome is Outcome.FAILED
    assert "BUCKETLOG_CONSOLE_VERIFY_MEMORY_BYTES_MAX" in check.error


def test_too_little_memory_is_a_failure(checks: Checks, place: str, bucket: SyncBucket) -> None:
    found = checks.of(*PROGRAM, place, str(MIB), "100")
    found.start()
    assert ended(found).outcome is Outcome.FAILED


def test_one_check_runs_and_can_be_stopped(checks: Checks) -> None:
    found = checks.of(sys.executable, "-c", ENDLESS)
    found.start()
    eventually(lambda: found.latest is not None and found.latest.of == 9)
    with pytest.raises(CheckRefusedError, match="is running"):
        found.start()
    found.stop()
    check = found.latest
    assert check is not None
    assert (check.outcome, check.checked) == (Outcome.STOPPED, 3)
    found.close()
    assert found.latest == check, "the end of the process changed the outcome"


def test_the_next_check_waits_for_the_interval(checks: Checks) -> None:
    found = checks.of(sys.executable, "-c", ENDLESS)
    found.start()
    found.stop()
    with pytest.raises(CheckRefusedError, match=r"1000 ms.*VERIFY_INTERVAL_MS"):
        found.start()
    checks.clock.now += 1_000
    found.start()
    assert found.latest is not None
    assert found.latest.begun_ms == 1_000


def test_the_end_of_an_earlier_process_leaves_the_next_check_alone(checks: Checks) -> None:
    found = checks.of(sys.executable, "-c", ENDLESS, interval_ms=0)
    for _ in range(3):
        found.start()
        earlier = found._process
        found.stop()
        found.start()
        assert earlier is not None
        earlier.join()
        assert found.latest is not None
        assert found.latest.is_running
        found.stop()


def test_progress_is_bounded_in_time() -> None:
    sent: list[dict[str, int]] = []
    clock = SteppedClock()
    progress = Progress(lambda message: sent.append(dict(message)), clock.s)
    checked = progress.listed(1_000)
    for _ in range(1_000):
        clock.now += 1
        checked()
    assert 5 <= len(sent) <= 8
    assert sent[0] == {"checked": 0, "of": 1_000}
    progress.listed(50)
    assert sent[-1] == {"checked": 1_000, "of": 1_050}


def test_a_report_has_only_the_first_places() -> None:
    damage = [Damage(f"log/{number}", number, "reason") for number in range(5)]
    line = report_line(VerifyReport(damage=damage), damage_max=2)
    assert line["damage"] == [["log/0", 0, "reason"], ["log/1", 1, "reason"]]
    assert line["damage_count"] == 5


def console_of(bucket: SyncBucket, checks: LogChecks | None) -> Console:
    return Console(
        *(bucket, "b", ConsoleSettings(), KeyAccess(), 1, lambda: 0, lambda: 0.0), checks=checks
    )


async def test_a_page_of_the_console_starts_and_stops_a_check(
    checks: Checks, bucket: SyncBucket
) -> None:
    found = checks.of(sys.executable, "-c", ENDLESS)
    app = application(console_of(bucket, found), hosts=["localhost"])
    own = "http://localhost"
    status, headers, _ = await answer(app, "/verify/start", method="POST", origin=own)
    assert (status, headers["location"]) == (303, "/verify")
    status, _, body = await answer(app, "/verify/start", method="POST", origin=own)
    assert (status, "a check is running" in body) == (409, True)
    status, _, body = await answer(app, "/verify")
    assert (status, "Stop the check" in body) == (200, True)
    assert (await answer(app, "/verify/stop", method="POST", origin=own))[0] == 303
    status, _, body = await answer(app, "/verify")
    assert (status, "The check was stopped" in body) == (200, True)


@pytest.mark.parametrize("path", ACTIONS)
@pytest.mark.parametrize(
    "origin",
    ["", "null", "http://evil.example", "http://localhost.evil.example", "http://[", "localhost"],
)
async def test_other_pages_may_not_act(
    checks: Checks, bucket: SyncBucket, path: str, origin: str
) -> None:
    found = checks.of(sys.executable, "-c", ENDLESS)
    app = application(console_of(bucket, found), hosts=["localhost"])
    status, _, body = await answer(app, f"/{path}", method="POST", origin=origin)
    assert (status, "only a page of this console" in body) == (403, True)
    assert (await answer(app, f"/{path}"))[0] == 405
    assert found.latest is None


async def test_a_console_without_checks_names_the_command(bucket: SyncBucket) -> None:
    app = application(console_of(bucket, None), hosts=["localhost"])
    status, _, body = await answer(app, "/verify")
    assert (status, "bucketlog segment verify" in body) == (400, True)


@pytest.mark.parametrize("path", [*ACTIONS, *FORM_ACTIONS, *FORMS])
async def test_a_read_only_console_has_no_route_for_changes(
    checks: Checks, bucket: SyncBucket, path: str
) -> None:
    found = checks.of(sys.executable, "-c", ENDLESS)
    app = application(console_of(bucket, found), hosts=["localhost"], is_read_only=True)
    status, *_ = await answer(app, f"/{path}", method="POST", origin="http://localhost")
    assert status in (404, 405)
    assert found.latest is None


async def test_pages_show_no_buttons_that_a_console_does_not_have(bucket: SyncBucket) -> None:
    app = application(console_of(bucket, None), hosts=["localhost"], is_read_only=True)
    for path in ("/bucket", "/topics", "/topic?name=t"):
        status, _, body = await answer(app, path)
        assert status == 200
        assert 'method="post"' not in body
        assert "/verify" not in body


async def test_a_read_only_console_has_no_page_of_forms_alone(bucket: SyncBucket) -> None:
    console = console_of(bucket, None)
    for is_read_only in (False, True):
        app = application(console, hosts=["localhost"], is_read_only=is_read_only)
        found = [(await answer(app, f"/{name}"))[0] != 404 for name in POSTED_PAGES]
        assert found == [not is_read_only] * len(POSTED_PAGES)
        _, _, body = await answer(app, "/topics")
        assert ('href="/query"' in body) != is_read_only
