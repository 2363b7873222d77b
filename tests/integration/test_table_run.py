"""`bucketlog table run`: each record is in the table once, whatever is killed."""

import os
import signal
from functools import partial
from pathlib import Path

import psutil
import pytest

from bucketlog.ingesting.task_processes import TaskProcessError, TaskProcesses
from tests.rigs.patience import PATIENCE_S, eventually
from tests.rigs.table_lake import Lake

pytestmark = pytest.mark.long


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


def test_a_followed_table_is_maintained(lake: Lake) -> None:
    def was_rewritten() -> bool:
        lake.produce(1)
        if not lake.catalog().table_exists("db.orders"):
            return False
        snapshots = lake.catalog().load_table("db.orders").snapshots()
        operations = [each.summary.operation.value for each in snapshots if each.summary]
        return "replace" in operations

    with lake.started("--follow", "--every", "100ms", "--maintain-every", "1s"):
        eventually(was_rewritten)
    lake.run()
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
        (["--maintain-every", "1h"], "--maintain-every is for --follow"),
    ],
)
def test_wrong_usage_is_a_line(lake: Lake, arguments: list[str], told: str) -> None:
    lake.produce(1)
    refused = str(lake.run(*arguments, code=2)["error"])
    assert told in refused
    assert "Traceback" not in refused
    assert "secret" not in refused
    assert not (lake.folder / "warehouse").exists(), "a table was created"


class EndedWork:
    """A task whose process ends."""

    def run(self, pieces: object) -> None:
        os._exit(9)


def test_a_process_that_ends_is_an_error() -> None:
    running = TaskProcesses(1)
    with pytest.raises(TaskProcessError, match="--processes"):
        list(running.run(EndedWork(), [[]]))  # type: ignore[arg-type]  # in place of TaskWork
    running.close()
