"""`bucketlog table run`: each record is in the table once, whatever is killed."""

import json
import os
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import psutil
import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog, load_catalog

from bucketlog.ingesting.task_processes import TaskProcessError, TaskProcesses
from bucketlog.log_format.records import DecodedRecord
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.backends.file import FileBucket
from tests.rigs.patience import PATIENCE_S, eventually
from tests.rigs.shell import COMMAND
from tests.rigs.written_log import START_MS, WrittenLog
from tests.unit.test_verify import IDENTITY

TOPIC = "orders"
PARTITIONS = 3


class Lake:
    """A log in a folder, with a catalog for the table `lake.db.orders`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        bucket = FileBucket(folder / "log" / "0")
        assert bucket.create(keys.CLUSTER, [IDENTITY.model_dump_json().encode()])
        self.log = WrittenLog(bucket)
        self.log.create_topic(TOPIC, PARTITIONS)
        self.produced: Counter[str] = Counter()
        self.properties = {
            "type": "sql",
            "uri": f"sqlite:///{folder}/catalog.db",
            "warehouse": f"file://{folder}/warehouse",
        }

    def produce(self, count: int) -> None:
        """In a segment of their own."""
        for number in range(count):
            name = f"{len(self.produced)}"
            value = json.dumps({"id": name, "amount": number / 2}).encode()
            record = DecodedRecord(0, START_MS + number, b"key", value)
            self.log.append(TOPIC, number % PARTITIONS, [record])
            self.produced[name] += 1
        self.log.flush()

    def put(self, value: bytes) -> None:
        self.log.append(TOPIC, 0, [DecodedRecord(0, START_MS, b"key", value)])
        self.log.flush()

    @property
    def command(self) -> list[str]:
        properties = [f"--catalog-property={name}={it}" for name, it in self.properties.items()]
        return [
            *(*COMMAND, "table", "run", f"file://{self.folder}/log", "--topics", TOPIC),
            *("--schema", "id string, amount double", "--into", "lake.db.orders"),
            *(*properties, "--processes", "2", "-o", "json"),
        ]

    def run(self, *arguments: str, code: int = 0) -> dict[str, object]:
        done = subprocess.run([*self.command, *arguments], capture_output=True, check=False)
        assert done.returncode == code, done.stderr.decode()
        return json.loads(done.stdout) if not code else {"error": done.stderr.decode()}

    @contextmanager
    def started(self, *arguments: str) -> Iterator["subprocess.Popen[bytes]"]:
        with (self.folder / "out").open("ab") as out, (self.folder / "errors").open("ab") as errors:
            process = subprocess.Popen([*self.command, *arguments], stdout=out, stderr=errors)
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()
            process.wait(PATIENCE_S)

    def catalog(self) -> Catalog:
        return load_catalog("lake", **self.properties)

    def rows(self, table: str = "db.orders") -> pa.Table:
        return self.catalog().load_table(table).scan().to_arrow()

    def ids(self) -> Counter[str]:
        return Counter(self.rows().column("id").to_pylist())

    def has_rows(self, count: int) -> bool:
        return self.catalog().table_exists("db.orders") and self.rows().num_rows >= count


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path)


def test_runs_continue_where_the_last_one_ended(lake: Lake) -> None:
    lake.produce(60)
    lake.put(b"no JSON")
    first = lake.run("--max-batch-offsets", "30")
    assert (first["batches"], first["records"], first["dead_letters"]) == (3, 60, 1)
    assert lake.run()["batches"] == 0
    lake.produce(5)
    assert lake.run()["records"] == 5
    assert lake.ids() == lake.produced
    (letter,) = lake.rows("db.orders_dead_letters").to_pylist()
    assert letter["value"] == b"no JSON"
    assert "not JSON" in letter["reason"]
    snapshots = lake.catalog().load_table("db.orders").snapshots()
    operations = {each.summary.operation.value for each in snapshots if each.summary}
    assert operations == {"append"}, "readers follow appends alone"


def test_each_record_is_there_once_though_runs_are_killed(lake: Lake) -> None:
    lake.produce(200)
    for kill in range(6):
        with lake.started("--max-batch-offsets", "20") as process:
            eventually(partial(lake.has_rows, 20 * (kill + 1)))
            process.send_signal(signal.SIGKILL)
    lake.run()
    assert lake.ids() == lake.produced


def test_of_two_runs_at_once_each_batch_is_committed_by_one(lake: Lake) -> None:
    lake.produce(60)
    with (
        lake.started("--max-batch-offsets", "5") as one,
        lake.started("--max-batch-offsets", "5") as other,
    ):
        codes = {process.wait(PATIENCE_S) for process in (one, other)}
    assert codes <= {0, 1}, (lake.folder / "errors").read_text()
    lake.run()
    assert lake.ids() == lake.produced


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_following_ends_with_its_processes(lake: Lake, number: signal.Signals) -> None:
    lake.produce(10)
    with lake.started("--follow", "--every", "100ms") as process:
        eventually(lambda: lake.has_rows(10))
        lake.produce(10)
        eventually(lambda: lake.has_rows(20))
        children = psutil.Process(process.pid).children(recursive=True)
        assert children
        process.send_signal(number)
        process.wait(PATIENCE_S)
        _, left = psutil.wait_procs(children, PATIENCE_S)
        assert left == []
    assert process.returncode == (143 if number == signal.SIGTERM else -signal.SIGKILL)
    assert lake.ids() == lake.produced


def test_a_bad_value_can_end_the_run(lake: Lake) -> None:
    lake.put(b'{"id": 5}')
    refused = lake.run("--bad-records", "fail", code=1)
    assert "partition 0 offset 0: id: a string is expected" in str(refused["error"])


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--into", "orders"], "has no catalog and no database"),
        (["--schema", "id strin"], "near character"),
        (["--epoch-unit", "at=weeks"], "the epoch unit 'weeks'"),
        (["--epoch-range", "never"], "--epoch-range never is not two days"),
        (["--catalog-property", "secret"], "--catalog-property: NAME=VALUE"),
        (["--catalog-property", "type=none"], "--catalog-property type is given twice"),
        (["--topics", "missing"], "missing"),
        (["--every", "often"], "often"),
    ],
)
def test_wrong_usage_is_a_line(lake: Lake, arguments: list[str], told: str) -> None:
    lake.produce(1)
    refused = str(lake.run(*arguments, code=2)["error"])
    assert told in refused
    assert "Traceback" not in refused
    assert "secret" not in refused


class EndedWork:
    """A task whose process ends."""

    def run(self, pieces: object) -> None:
        os._exit(9)


def test_a_process_that_ends_is_an_error() -> None:
    running = TaskProcesses(1)
    with pytest.raises(TaskProcessError, match="--processes"):
        list(running.run(EndedWork(), [[]]))  # type: ignore[arg-type]  # in place of TaskWork
    running.close()
