"""`bucketlog table run --changes`: a table has the current state of keys, whatever is killed."""

import json
import signal
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from random import Random

import duckdb
import pytest

from bucketlog.log_format.records import DecodedRecord
from tests.rigs.patience import eventually
from tests.rigs.table_lake import PARTITIONS, TOPIC, Lake
from tests.rigs.written_log import START_MS

pytestmark = pytest.mark.long

SCHEMA = ("--schema", "id string, amount double")
UPSERT = (*SCHEMA, "--changes", "upsert")
KEYS = 12
KILLS = 3
BATCH = 20


class StateLake(Lake):
    """A log of rows and tombstones, and the state that they make."""

    def __init__(self, folder: Path, flags: Sequence[str] = UPSERT) -> None:
        super().__init__(folder, flags)
        self.state: dict[str, float] = {}
        self.random = Random(1)
        self.written = 0

    def change(self, count: int) -> None:
        """Write `count` records into one new segment."""
        for _ in range(count):
            number = self.random.randrange(KEYS)
            name, amount = f"id {number}", float(self.written)
            value = json.dumps({"id": name, "amount": amount}).encode()
            if self.random.random() < 0.3:
                self.state.pop(name, None)
                self._append(number, name, None)
            else:
                self.state[name] = amount
                self._append(number, name, value)
        self.log.flush()

    def _append(self, number: int, name: str, value: bytes | None) -> None:
        record = DecodedRecord(0, START_MS + self.written, name.encode(), value)
        self.log.append(TOPIC, number % PARTITIONS, [record])
        self.written += 1

    def found(self) -> dict[str, float]:
        rows = self.rows()
        found = dict(zip(rows["id"].to_pylist(), rows["amount"].to_pylist(), strict=True))
        assert len(found) == rows.num_rows, "a key has two rows"
        return found

    def batches(self) -> int:
        if not self.catalog().table_exists("db.orders"):
            return 0
        return len(self.catalog().load_table("db.orders").snapshots())


def test_a_table_has_the_newest_row_of_each_key(tmp_path: Path) -> None:
    lake = StateLake(tmp_path)
    for _ in range(3):
        lake.change(40)
        assert lake.run()["records"] == 40
        assert lake.found() == lake.state
    lake.change(30)
    lake.run("--max-batch-offsets", "10")
    assert lake.found() == lake.state
    files = [
        task.file.file_path.removeprefix("file://")
        for task in lake.catalog().load_table("db.orders").scan().plan_files()
    ]
    query = "SELECT id, amount, _log_tombstone FROM read_parquet(?, union_by_name = true)"
    rows = duckdb.execute(query, [files]).fetchall()
    assert {(name, amount) for name, amount, _ in rows} == set(lake.state.items())
    assert not any(is_tombstone for _, _, is_tombstone in rows)


def test_the_state_is_right_though_runs_are_killed(tmp_path: Path) -> None:
    """Others delete rows meanwhile: a kill brings back none of them."""
    lake = StateLake(tmp_path)
    lake.change(KILLS * 2 * BATCH)
    for _ in range(KILLS):
        before = lake.batches()
        with lake.started("--max-batch-offsets", f"{BATCH}") as process:
            eventually(partial(_has_more, lake, before))
            process.send_signal(signal.SIGKILL)
    lake.run("--max-batch-offsets", f"{BATCH}")
    assert lake.found() == lake.state
    gone = sorted(lake.state)[0]
    lake.catalog().load_table("db.orders").delete(f"id = '{gone}'")
    del lake.state[gone]
    lake.change(2)
    lake.run()
    assert lake.found() == lake.state


def _has_more(lake: StateLake, before: int) -> bool:
    return lake.batches() > before


def test_of_two_runs_at_once_each_batch_is_merged_once(tmp_path: Path) -> None:
    lake = StateLake(tmp_path)
    lake.change(40)
    with (
        lake.started("--max-batch-offsets", "10") as one,
        lake.started("--max-batch-offsets", "10") as other,
    ):
        codes = {process.wait() for process in (one, other)}
    assert codes <= {0, 1}, (lake.folder / "errors").read_text()
    lake.run()
    assert lake.found() == lake.state


def test_events_of_debezium(tmp_path: Path) -> None:
    lake = Lake(tmp_path, (*SCHEMA, "--changes", "debezium", "--key", "id"))
    row = {"id": "a", "amount": 1}
    events = [
        {"op": "c", "before": None, "after": row},
        {"schema": {}, "payload": {"op": "c", "before": None, "after": {"id": "b", "amount": 2}}},
        {"op": "u", "before": row, "after": {"id": "a", "amount": 3}},
        {"op": "d", "before": {"id": "b"}, "after": None},
        {"op": "t"},
    ]
    for event in events:
        lake.put(json.dumps(event).encode())
    report = lake.run()
    assert (report["records"], report["dead_letters"]) == (4, 1)
    assert lake.rows().select(["id", "amount"]).to_pylist() == [{"id": "a", "amount": 3.0}]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--key", "id"], "was written with --changes upsert, and this run has"),
        (["--changes", "append"], "and this run has --changes append"),
        (["--changes", "append", "--key", "id"], "--key is for tables with the current state"),
        (["--key", "none"], "the key 'none' is not a field of the schema"),
        (["--bad-records", "null"], "--bad-records null would replace"),
        (["--changes", "replace"], "replace"),
    ],
)
def test_wrong_usage_is_a_line(tmp_path: Path, arguments: list[str], told: str) -> None:
    lake = StateLake(tmp_path)
    lake.change(1)
    lake.run()
    refused = str(lake.run(*arguments, code=2)["error"])
    assert told in " ".join(refused.split())
    assert "Traceback" not in refused
