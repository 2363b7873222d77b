"""A table with the current state of keys, as batches of changes leave it."""

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table

from bucketlog.log_reader.tables.change_rule import ChangeRule
from bucketlog.log_reader.tables.changes.debezium import DebeziumValues
from bucketlog.log_reader.tables.changes.merge import KEY_BYTES_MAX, ChangeMerge
from bucketlog.log_reader.tables.ingest_loop import WrittenBatch
from bucketlog.log_reader.tables.progress import TopicEnds
from bucketlog.log_reader.tables.rows import RowMaker, RowShape, numbered
from bucketlog.log_reader.tables.table_target import TableName, TableTarget
from bucketlog.log_reader.tables.task import TaskFiles, TaskWork
from bucketlog.log_reader.tables.value_format import JSON_VALUES

NAME = TableName.parse("lake.db.state")
FIELDS = pa.schema([("id", pa.string()), ("n", pa.int64())])
DAY_US = 86_400_000_000
UPSERT = ChangeRule(mode="upsert")
BY_ID = ChangeRule(mode="upsert", key=("id",))
EVENTS_BY_ID = ChangeRule(mode="debezium", key=("id",))


class Change(NamedTuple):
    """A record. `value` None is a tombstone. `day` is that of the timestamp, after 1970."""

    key: bytes | None
    value: bytes | None
    partition: int = 0
    day: int = 0


def row(name: str | None, n: int = 0, *, key: bytes | None = None, day: int = 0) -> Change:
    """A record with a row. By default, the key of the record is the name."""
    own = None if name is None else name.encode()
    value = json.dumps({"id": name, "n": n}).encode()
    return Change(own if key is None else key, value, day=day)


def tombstone(name: str) -> Change:
    return Change(name.encode(), None)


def shape_of(rule: ChangeRule | None) -> RowShape:
    is_event = rule is not None and rule.mode == "debezium"
    values = DebeziumValues(rule.key) if rule and is_event else JSON_VALUES
    return RowShape(FIELDS, bad_records="dead-letter", values=values, changes=rule)


class ChangedTable:
    """Each call of `ingest` is a run of an ingest with one batch, in this process."""

    def __init__(self, folder: Path, rule: ChangeRule | None = UPSERT) -> None:
        uri, warehouse = f"sqlite:///{folder}/catalog.db", f"file://{folder}/warehouse"
        self.catalog = SqlCatalog("lake", uri=uri, warehouse=warehouse)
        self.rule = rule
        self.attempts = 0
        self.key_bytes_max = KEY_BYTES_MAX
        self.planned: Callable[[], Any] = lambda: None
        """Called when a try of a commit has planned its files."""

    def load(self) -> Table:
        return self.catalog.load_table(NAME.table)

    def ingest(self, *changes: Change, tasks: int = 1) -> WrittenBatch:
        """Commit the changes as one batch. `tasks` share them."""
        target = TableTarget(
            NAME, lambda: self.catalog, _run, new_id=self._new_id, merge=self._merge
        )
        shape = shape_of(self.rule)
        standing = target.prepare(shape)
        known = standing.topics.get("state")
        ends = dict(known.ends) if known else {}
        records = self._records(changes, ends)
        topics = {"state": TopicEnds(topic_id="id", ends=ends)}
        size = max(1, -(-len(changes) // tasks))
        parts: Any = [records.slice(at, size) for at in range(0, len(changes), size)]
        options: Any = None  # the task of this rig does not read a log
        return target.write(options, parts, shape, standing, topics)

    def _records(self, changes: Sequence[Change], ends: dict[int, int]) -> pa.RecordBatch:
        offsets: list[int] = []
        for each in changes:
            offsets.append(ends.get(each.partition, 0))
            ends[each.partition] = offsets[-1] + 1
        times = [each.day * DAY_US for each in changes]
        return pa.record_batch(
            {
                "key": pa.array([each.key for each in changes], pa.binary()),
                "value": pa.array([each.value for each in changes], pa.binary()),
                "topic": pa.array(["state"] * len(changes)),
                "partition": pa.array([each.partition for each in changes], pa.int32()),
                "offset": pa.array(offsets, pa.int64()),
                "timestamp": pa.array(times, pa.timestamp("us", tz="UTC")),
            }
        )

    def _merge(self, rule: ChangeRule, staged: Sequence[Any]) -> Callable[[Table], Any]:
        merge = ChangeMerge(rule, staged, self.key_bytes_max)

        def plan(table: Table) -> Any:
            found = merge(table)
            self.planned()
            return found

        return plan

    def _new_id(self) -> str:
        self.attempts += 1
        return f"attempt {self.attempts}"

    def state(self) -> dict[str, int]:
        """Return `n` by `id`. Fails if an id has two rows."""
        rows = self.load().scan().to_arrow()
        found = dict(zip(rows["id"].to_pylist(), rows["n"].to_pylist(), strict=True))
        assert len(found) == rows.num_rows, rows["id"].to_pylist()
        return found

    def reasons(self) -> list[str]:
        letters = self.catalog.load_table(NAME.letters).scan().to_arrow()
        reasons: list[str] = letters.sort_by("_log_offset")["reason"].to_pylist()
        return reasons

    def paths(self) -> set[str]:
        return {task.file.file_path for task in self.load().scan().plan_files()}

    def operations(self) -> list[str]:
        return [each.summary.operation.value for each in self.load().snapshots() if each.summary]


def _run(work: TaskWork, tasks: Sequence[Any]) -> Iterator[TaskFiles]:
    for records in tasks:
        made = RowMaker(work.shape).rows(records)
        rows = work.rows.writer()
        rows.add(numbered(made.rows, work.batch))
        assert work.dead_letters is not None
        letters = work.dead_letters.writer()
        letters.add(numbered(made.dead, work.batch))
        yield TaskFiles(rows.finish(), letters.finish())
