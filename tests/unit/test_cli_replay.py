"""`bucketlog replay` without a broker: lines, files, engines, exit codes."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from bucketlog.cli.main import main
from bucketlog.client.lines import json_line
from bucketlog.log_format.records import Header
from bucketlog.tiered_storage.backends.file import FileBucket
from tests.rigs.patience import PATIENCE_S
from tests.rigs.written_log import START_MS, WrittenLog, some_records

Capture = pytest.CaptureFixture[str]
PROGRAM = str(Path(sys.executable).with_name("bucketlog"))


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """`t`: two partitions of 30 records in three segments."""
    folder = tmp_path / "bucket"
    written = WrittenLog(FileBucket(folder / "0"))
    written.create_topic("t", 2)
    for number in range(3):
        for partition in range(2):
            records = some_records(10, tag=str(number), headers=True)
            written.append(
                "t", partition, [row._replace(timestamp=START_MS + number) for row in records]
            )
        written.flush()
    written.bucket.close()
    return folder


def run(capsys: Capture, *arguments: str) -> tuple[int, str, str]:
    code = main(["replay", *arguments])
    shown = capsys.readouterr()
    return code, shown.out, shown.err


def test_lines_on_stdout_are_those_of_consume(
    log: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert main(["replay", str(log), "t", "-p", "1"]) == 0
    shown = capsysbinary.readouterr()
    lines = shown.out.splitlines()
    assert [json.loads(line)["offset"] for line in lines] == list(range(30))
    expected = some_records(10, tag="0", headers=True)[1]
    assert json_line(lines[1]) == (
        expected.key,
        expected.value,
        [(header.key, header.value and header.value.decode()) for header in expected.headers],
        START_MS,
    )
    assert expected.headers == (Header("trace", b"1"), Header("empty", None))
    assert shown.err == b""


@pytest.mark.parametrize(
    ("arguments", "count"),
    [
        (["--offsets", "0:5-8,1:28"], 5),
        (["--since", "2023-11-14T22:13:20.001Z"], 40),
        (["--until", "2023-11-14T22:13:20.001Z"], 20),
        (["--since", "1d"], 0),
    ],
)
def test_what_is_chosen(
    log: Path, capsysbinary: pytest.CaptureFixture[bytes], arguments: list[str], count: int
) -> None:
    assert main(["replay", str(log), "t", *arguments]) == 0
    assert len(capsysbinary.readouterr().out.splitlines()) == count


def test_parquet_by_the_local_engine(log: Path, tmp_path: Path, capsys: Capture) -> None:
    target = tmp_path / "lake"
    code, out, err = run(capsys, str(log), "t", "--to", str(target), "--columns", "offset,value")
    assert code == 0
    report = json.loads(out)
    assert (report["engine"], report["records"], report["files"]) == ("local", 60, 2)
    assert "engine: local, as 0.0 MiB are stored, at most 8,192.0 MiB" in err
    files = sorted(target.rglob("*.parquet"))
    assert pq.ParquetFile(files[0]).schema_arrow.names == ["offset", "value"]
    code, out, err = run(capsys, str(log), "t", "--to", str(target))
    assert (code, out) == (2, "")
    assert "holds files already" in err
    code, out, _ = run(capsys, str(log), "t", "--to", str(target), "--overwrite")
    assert json.loads(out)["records"] == 60


def test_a_large_range_is_for_spark_where_there_is_one(
    log: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    target = str(tmp_path / "lake")
    code, out, err = run(capsys, str(log), "t", "--to", target, "--local-bytes-max", "10")
    assert code == 0
    assert json.loads(out)["engine"] == "local"
    assert "engine: local, as Spark is not installed" in err
    code, _, err = run(capsys, str(log), "t", "--to", target, "--engine", "spark", "--overwrite")
    assert code == 2
    assert "pip install 'bucketlog[spark]'" in err


def test_lines_in_a_file(log: Path, tmp_path: Path, capsys: Capture) -> None:
    target = tmp_path / "t.jsonl"
    code, out, err = run(capsys, str(log), "t", "--to", str(target), "--format", "jsonl")
    assert (code, out, err) == (0, "", f"60 records written to {target}\n")
    assert len(target.read_bytes().splitlines()) == 60


@pytest.mark.parametrize(
    "arguments",
    [
        ["t", "--to", "x", "--to-topic", "y"],
        ["t", "--to-topic", "y", "--format", "jsonl"],
        ["t", "--by-key"],
        ["t", "--overwrite"],
        ["t", "--compression", "zstd"],
        ["t", "--partition-by", "day"],
        ["t", "--columns", "value"],
        ["t", "--to", "x", "--format", "jsonl", "--compression", "zstd"],
        ["t", "--format", "parquet"],
        ["t", "--engine", "spark"],
        ["t", "--to", "s3://lake/x", "--format", "jsonl"],
        ["t", "--since", "yesterday"],
        ["t", "--offsets", "5"],
        ["t", "--offsets", "0:5", "--since", "1d"],
        ["t", "--to", "x", "--partition-by", "value"],
        ["t", "--to", "x", "--columns", "price"],
        ["nowhere"],
        ["t", "-p", "7"],
    ],
)
def test_wrong_usage_is_a_line_and_code_2(log: Path, capsys: Capture, arguments: list[str]) -> None:
    code, out, err = run(capsys, str(log), *arguments)
    assert (code, out) == (2, "")
    assert err.splitlines()[-1].startswith("bucketlog: ")


def test_a_reader_that_goes_away(log: Path, tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as out:
        done = subprocess.run(
            [PROGRAM, "replay", str(log), "t"], stdout=out, stderr=subprocess.PIPE, check=False
        )
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_stopped_while_nobody_reads(tmp_path: Path, number: signal.Signals, code: int) -> None:
    folder = tmp_path / "bucket"
    written = WrittenLog(FileBucket(folder / "0"))
    written.create_topic("t")
    for _ in range(50):  # far more than a pipe holds
        written.append("t", 0, some_records(2000))
        written.flush()
    written.bucket.close()
    process = subprocess.Popen(
        [PROGRAM, "replay", str(folder), "t"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stderr is not None
    with process.stdout as out, process.stderr as err:
        assert out.readline().startswith(b'{"topic": "t", "partition": 0, "offset": 0,')
        process.send_signal(number)
        assert process.wait(PATIENCE_S) == code
        assert err.read() == b""
