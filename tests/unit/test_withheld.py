"""Batch reads say which committed records they leave out, and why."""

import json
import logging
import subprocess
import sys
from pathlib import Path

import pytest

import bucketlog
from bucketlog.cli.main import main
from bucketlog.log_reader.options import parse_options
from bucketlog.log_reader.planning import planned_tasks
from bucketlog.log_reader.withheld import WithheldRecords, warning_of
from bucketlog.tiered_storage.backends.file import FileBucket
from tests.rigs.patience import PATIENCE_S
from tests.rigs.written_log import START_MS, WrittenLog, some_records

LEFT_OUT = "left out: 5 of the newest records, in t-0. A broker"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """`t-0`: 10 records, a reservation of 3 that is open, then batches of 4 and 1. `t-1`: 10."""
    written = WrittenLog(FileBucket(tmp_path / "bucket" / "0"))
    other = written.register()
    written.create_topic("t", 2)
    for partition in range(2):
        written.append("t", partition, some_records(10))
    written.flush()
    written.append("t", 0, some_records(3))
    written.reserve(other)
    for count in (4, 1):
        written.append("t", 0, some_records(count))
        written.flush()
    written.bucket.close()
    return tmp_path / "bucket"


def warnings_of(
    folder: Path, caplog: pytest.LogCaptureFixture, **options: str
) -> tuple[int, list[str]]:
    """The number of planned tasks, and the warnings logged by planning."""
    bucket = FileBucket(folder / "0")
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        tasks = planned_tasks(bucket, parse_options({"path": str(folder), **options}))
    bucket.close()
    return len(tasks), [record.getMessage() for record in caplog.records]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"endingOffsets": "latest"},
        {"endingOffsets": json.dumps({"t": {"0": -1, "1": 5}})},
        {"endingTimestamp": str(START_MS + 3_600_000)},
    ],
)
def test_a_read_of_the_newest_records_warns(
    folder: Path, caplog: pytest.LogCaptureFixture, options: dict[str, str]
) -> None:
    _, warnings = warnings_of(folder, caplog, subscribe="t", **options)
    assert len(warnings) == 1
    assert warnings[0].startswith(LEFT_OUT)


@pytest.mark.parametrize(
    "options",
    [
        {"subscribe": "t", "endingOffsets": json.dumps({"t": {"0": 10, "1": 5}})},
        {"subscribe": "t", "endingTimestamp": str(START_MS + 2000)},
        {"assign": json.dumps({"t": [1]})},
    ],
)
def test_a_read_that_lacks_nothing_does_not(
    folder: Path, caplog: pytest.LogCaptureFixture, options: dict[str, str]
) -> None:
    assert warnings_of(folder, caplog, **options) == (1, [])


def test_the_plan_and_the_report_count_them(
    folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    replay = bucketlog.replay(str(folder), "t")
    assert (replay.plan.records, replay.plan.withheld_records) == (20, 5)
    assert LEFT_OUT in caplog.text
    assert replay.to_parquet(tmp_path / "files").withheld_records == 5


def test_the_command_says_so_on_standard_error(folder: Path) -> None:
    program = str(Path(sys.executable).with_name("bucketlog"))
    done = subprocess.run(
        [program, "replay", str(folder), "t"],
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE_S,
    )
    assert len(done.stdout.splitlines()) == 20
    assert LEFT_OUT in done.stderr
    assert "check that a broker is running" in done.stderr


def test_its_report_has_their_number(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", str(folder), "t", "--to", str(tmp_path / "files")]) == 0
    assert json.loads(capsys.readouterr().out)["withheld_records"] == 5


def test_a_warning_names_some_partitions_of_many() -> None:
    text = warning_of([WithheldRecords("t", number, 2) for number in range(12)])
    assert text.startswith("left out: 24 of the newest records, in t-0, t-1, ")
    assert "t-8, t-9 and 2 more. " in text
