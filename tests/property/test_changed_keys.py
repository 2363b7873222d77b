"""The newest changes of keys, compared with a dictionary that takes record after record."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from bucketlog.log_reader.tables.change_rule import ChangeRule
from bucketlog.log_reader.tables.changes.merge import ChangedKeys
from bucketlog.log_reader.tables.rows import LINEAGE, TOMBSTONE

COLUMNS = pa.schema([("a", pa.string()), ("b", pa.int32()), *LINEAGE, (TOMBSTONE, pa.bool_())])
BY_RECORD = ChangeRule(mode="upsert")
BY_FIELDS = ChangeRule(mode="debezium", key=("a", "b"))


class Record(NamedTuple):
    """`fields` None is a tombstone."""

    fields: tuple[str, int] | None
    record_key: bytes
    is_deletion: bool
    partition: int
    offset: int = 0
    time: int | None = None


FIELDS = st.tuples(st.sampled_from(["", "x", "y"]), st.sampled_from([-1, 0, 2]))
KEYS = st.sampled_from([b"", b"k", b"l"])


@st.composite
def histories(draw: st.DrawFn) -> list[list[Record]]:
    """Batches of records. Either all records are in one partition, with any timestamps, or later
    records have later timestamps."""
    is_one = draw(st.booleans())
    ends = [0, 0, 0]
    batches: list[list[Record]] = []
    for size in draw(st.lists(st.integers(1, 12), min_size=1, max_size=5)):
        batch = []
        for _ in range(size):
            fields = draw(st.none() | FIELDS)
            partition = 0 if is_one else draw(st.integers(0, 2))
            time = draw(st.none() | st.integers(0, 9)) if is_one else sum(ends)
            is_deletion = fields is not None and draw(st.booleans())
            batch.append(Record(fields, draw(KEYS), is_deletion, partition, ends[partition], time))
            ends[partition] += 1
        batches.append(batch)
    return batches


def table_of(records: Sequence[Record]) -> pa.Table:
    rows = [
        {
            "a": None if each.fields is None else each.fields[0],
            "b": None if each.fields is None else each.fields[1],
            "_log_topic": f"topic-{each.partition // 2}",
            "_log_partition": each.partition % 2,
            "_log_offset": each.offset,
            "_log_timestamp": each.time,
            "_log_key": each.record_key,
            TOMBSTONE: each.fields is None or each.is_deletion,
        }
        for each in records
    ]
    return pa.Table.from_pylist(rows, COLUMNS)


def by_dictionary(batches: Sequence[Sequence[Record]], rule: ChangeRule) -> list[tuple[int, int]]:
    """Return partition and offset of each row."""
    state: dict[Any, Record] = {}
    for record in (each for batch in batches for each in batch):
        if not rule.key:
            state.pop(record.record_key, None)
            if record.fields is not None and not record.is_deletion:
                state[record.record_key] = record
        elif record.fields is None:
            for key, old in list(state.items()):
                if old.record_key == record.record_key:
                    del state[key]
        else:
            state.pop(record.fields, None)
            if not record.is_deletion:
                state[record.fields] = record
    return sorted((each.partition, each.offset) for each in state.values())


def places(rows: pa.Table) -> list[tuple[int, int]]:
    found = rows.select(["_log_topic", "_log_partition", "_log_offset"]).to_pylist()
    return sorted(
        (int(each["_log_topic"][-1]) * 2 + each["_log_partition"], each["_log_offset"])
        for each in found
    )


@settings(max_examples=100)
@given(histories(), st.sampled_from([BY_RECORD, BY_FIELDS]), st.randoms(use_true_random=False))
def test_batches_make_the_state_of_a_dictionary(
    batches: list[list[Record]], rule: ChangeRule, random: Any
) -> None:
    state = table_of([])
    for batch in batches:
        shuffled = random.sample(batch, len(batch))  # files of tasks come in any order
        changes = table_of(shuffled)
        changed = ChangedKeys(rule, changes)
        is_gone, outdone = changed.judged(state)
        marks = np.zeros(changed.keys.count, np.bool_)
        marks[outdone] = True
        kept = changes.filter(pa.array(changed.kept(marks)))
        state = pa.concat_tables([state.filter(pa.array(~is_gone)), kept])
    assert places(state) == by_dictionary(batches, rule)


def test_between_partitions_the_later_timestamp_is_newer() -> None:
    """A record of another partition with an earlier timestamp does not replace the stored row."""
    stored = table_of([Record(("x", 1), b"k", False, partition=0, time=5)])
    for partition, time, is_newer in [(1, 4, False), (1, 5, True), (1, 6, True), (0, 4, True)]:
        change = Record(("x", 1), b"k", False, partition, 7, time)
        changed = ChangedKeys(BY_FIELDS, table_of([change]))
        is_gone, outdone = changed.judged(stored)
        assert (is_gone.tolist(), outdone.tolist()) == ([is_newer], [] if is_newer else [0])
        marks = np.array([not is_newer])
        assert changed.kept(marks).tolist() == [is_newer]
