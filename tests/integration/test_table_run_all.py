"""`bucketlog table run-all`: many tables in one process, one of them broken, whatever is killed."""

import json
import os
import re
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

import psutil
import pyarrow as pa
import pytest
from prometheus_client.parser import text_string_to_metric_families
from pyiceberg.catalog import Catalog, load_catalog

from bucketlog.cli.main import main
from bucketlog.log_format.records import DecodedRecord
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.backends.file import FileBucket
from tests.rigs.group_log import IDENTITY
from tests.rigs.patience import PATIENCE_S, eventually
from tests.rigs.shell import COMMAND
from tests.rigs.written_log import START_MS, WrittenLog

pytestmark = pytest.mark.long

FILE = """
bucket: file://${LAKE_FOLDER}/log
catalog:
  name: lake
  properties:
    type: sql
    uri: sqlite:///${LAKE_FOLDER}/catalog.db
    warehouse: file://${LAKE_FOLDER}/warehouse
defaults: {every: 100ms, max_batch_offsets: 20}
tables:
  - {topics: orders, into: db.orders, schema: id string, partition_by: "bucket(4, id)"}
  - {topics: bids, into: db.bids, schema: id int, bad_records: fail}
  - topics: [clicks, views]
    into: db.clicks
    schema: id string, at timestamp
    epoch_unit: milliseconds
    partition_by: day(at)
    maintain: {every: 1s}
"""
TOPICS = ("orders", "bids", "clicks", "views")


class Lakes:
    """A log with four topics, and a file with three tables of it. All values of `bids` are bad."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        bucket = FileBucket(folder / "log" / "0")
        assert bucket.create(keys.CLUSTER, [IDENTITY.model_dump_json().encode()])
        self.log = WrittenLog(bucket)
        for topic in TOPICS:
            self.log.create_topic(topic, 2)
        self.file = folder / "tables.yaml"
        self.file.write_text(FILE)
        self.produced: dict[str, Counter[str]] = {topic: Counter() for topic in TOPICS}

    def produce(self, count: int) -> None:
        """Write `count` records of each topic."""
        for topic in TOPICS:
            for number in range(count):
                name = f"{topic}-{len(self.produced[topic])}"
                value = {"id": name, "at": START_MS + number * 86_400_000}
                record = DecodedRecord(0, START_MS + number, b"key", json.dumps(value).encode())
                self.log.append(topic, number % 2, [record])
                self.produced[topic][name] += 1
        self.log.flush()

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "LAKE_FOLDER": str(self.folder)}

    def command(self, *arguments: str) -> list[str]:
        return [*COMMAND, "table", "run-all", str(self.file), *arguments]

    def run(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            self.command(*arguments),
            capture_output=True,
            check=False,
            env=self.environment,
            text=True,
        )

    @contextmanager
    def followed(self) -> Iterator["subprocess.Popen[bytes]"]:
        errors = self.folder / "errors"
        errors.write_bytes(b"")
        command = self.command("--follow", "--processes", "2", "--metrics-port", "0")
        with errors.open("ab") as shown:
            process = subprocess.Popen(
                command, stdout=subprocess.DEVNULL, stderr=shown, env=self.environment
            )
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()
            process.wait(PATIENCE_S)

    def metrics(self) -> dict[tuple[str, str], float]:
        """The values by metric and table; none before the page is served."""
        address = re.search(r"metrics at (\S+)", (self.folder / "errors").read_text())
        if address is None:
            return {}
        with urlopen(address[1]) as answer:
            text = answer.read().decode()
        return {
            (row.name.removeprefix("bucketlog_ingest_"), row.labels["table"]): row.value
            for family in text_string_to_metric_families(text)
            for row in family.samples
        }

    def catalog(self) -> Catalog:
        properties = {
            "type": "sql",
            "uri": f"sqlite:///{self.folder}/catalog.db",
            "warehouse": f"file://{self.folder}/warehouse",
        }
        return load_catalog("lake", **properties)

    def rows(self, table: str) -> pa.Table | None:
        catalog = self.catalog()
        return catalog.load_table(table).scan().to_arrow() if catalog.table_exists(table) else None

    def ids(self, table: str) -> Counter[str]:
        rows = self.rows(table)
        return Counter() if rows is None else Counter(rows.column("id").to_pylist())

    def is_complete(self) -> bool:
        clicks = self.produced["clicks"] + self.produced["views"]
        return self.ids("db.orders") == self.produced["orders"] and self.ids("db.clicks") == clicks


@pytest.fixture
def lakes(tmp_path: Path) -> Lakes:
    return Lakes(tmp_path)


def test_a_table_with_the_current_state_of_keys(tmp_path: Path) -> None:
    lakes = Lakes(tmp_path)
    state = "  - {topics: orders, into: db.states, schema: id string, changes: upsert}\n"
    lakes.file.write_text(FILE.partition("tables:")[0] + "tables:\n" + state)
    lakes.produce(10)
    done = lakes.run()
    assert done.returncode == 0, done.stderr
    assert lakes.ids("db.states") == Counter(["orders-9"]), "all records have one key"


def test_a_broken_table_stops_no_other(lakes: Lakes) -> None:
    lakes.produce(60)
    done = lakes.run("-o", "json")
    assert done.returncode == 1, done.stderr
    assert "lake.db.bids: topic 'bids' partition 0 offset 0: id: " in done.stderr
    assert "1 of 3 tables failed: lake.db.bids" in done.stderr
    reports = {each["target"]: each for each in map(json.loads, done.stdout.splitlines())}
    assert set(reports) == {"lake.db.orders", "lake.db.clicks"}
    assert (reports["lake.db.clicks"]["batches"], reports["lake.db.clicks"]["records"]) == (6, 120)
    assert lakes.is_complete()
    assert not lakes.ids("db.bids")
    clicks = lakes.catalog().load_table("db.clicks")
    files = list(clicks.scan().plan_files())
    assert len({task.file.partition[0] for task in files}) == 60, "a partition for each day"


def test_following_survives_kills_and_shows_metrics(lakes: Lakes) -> None:
    lakes.produce(40)
    for number in (signal.SIGKILL, signal.SIGTERM):
        with lakes.followed() as process:
            eventually(lakes.is_complete)
            lakes.produce(30)
            eventually(lambda: len(lakes.ids("db.orders")) > len(lakes.produced["orders"]) - 30)
            children = psutil.Process(process.pid).children(recursive=True)
            process.send_signal(number)
            process.wait(PATIENCE_S)
            _, left = psutil.wait_procs(children, PATIENCE_S)
            assert left == []
        assert process.returncode == (143 if number == signal.SIGTERM else -number)
    with lakes.followed():
        eventually(lakes.is_complete)
        eventually(lambda: lakes.metrics().get(("failures_total", "lake.db.bids"), 0) >= 2)
        lakes.produce(5)
        eventually(lambda: lakes.metrics().get(("rows_total", "lake.db.clicks"), 0) >= 10)
        eventually(lambda: lakes.metrics()["lag_offsets", "lake.db.orders"] == 0)
        eventually(lakes.is_complete)
        found = lakes.metrics()
    assert found["failing", "lake.db.bids"] == 1
    assert found["lag_offsets", "lake.db.bids"] > 0
    assert found["failing", "lake.db.orders"] == found["failures_total", "lake.db.orders"] == 0
    assert found["written_bytes_total", "lake.db.orders"] > 0
    assert found["newest_record_timestamp_seconds", "lake.db.orders"] >= (START_MS + 4) / 1000
    assert ("rows_total", "lake.db.bids") in found


def test_a_followed_table_is_maintained(lakes: Lakes) -> None:
    def was_rewritten() -> bool:
        lakes.produce(1)
        if not lakes.catalog().table_exists("db.clicks"):
            return False
        snapshots = lakes.catalog().load_table("db.clicks").snapshots()
        operations = [each.summary.operation.value for each in snapshots if each.summary]
        return "replace" in operations

    with lakes.followed():
        eventually(was_rewritten)
        eventually(lakes.is_complete)


def test_a_table_that_is_repaired_continues(lakes: Lakes) -> None:
    lakes.produce(10)
    assert lakes.run().returncode == 1
    lakes.file.write_text(FILE.replace("bad_records: fail", "bad_records: dead-letter"))
    done = lakes.run()
    assert done.returncode == 0, done.stderr
    letters = lakes.rows("db.bids_dead_letters")
    assert letters is not None
    assert letters.num_rows == 10
    assert lakes.is_complete()


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("into: db.bids", "into: db.orders", "the table db.orders is already in line 11"),
        ("id int", "id in", "table db.bids: "),
        ("bucket(4, id)", "bucket(id)", "the transform bucket needs a number"),
        ("bucket(4, id)", "month(id)", "but 'id' is a string"),
        ("epoch_unit: milliseconds", "epoch_unit: weeks", "the epoch unit 'weeks'"),
        ("every: 100ms", "evry: 100ms", "unknown key 'evry': did you mean 'every'?"),
        ("${LAKE_FOLDER}/log", "${LAKE_FOLDER}/log\noptions: {a: b}", "unknown option 'a'"),
    ],
)
def test_nothing_begins_with_a_wrong_file(
    lakes: Lakes,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    old: str,
    new: str,
    told: str,
) -> None:
    monkeypatch.setenv("LAKE_FOLDER", str(lakes.folder))
    command = ["table", "run-all", str(lakes.file)]
    assert main([*command, "--check"]) == 0
    assert "3 tables, no errors" in capsys.readouterr().out
    assert FILE.count(old) == 1
    lakes.file.write_text(FILE.replace(old, new))
    for arguments in (["--check"], []):
        assert main([*command, *arguments]) == 2
        refused = capsys.readouterr().err
        assert told in refused
        assert "tables.yaml, line " in refused
    assert not (lakes.folder / "catalog.db").exists()
