"""Events of Debezium become rows and deletions, and nothing else."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from bucketlog.log_format.errors import ConfigurationError
from bucketlog.log_reader.tables.change_rule import ChangeRule
from bucketlog.log_reader.tables.changes.debezium import row_fields, row_of
from bucketlog.log_reader.tables.json_text import BadValueError
from bucketlog.log_reader.tables.value_format import RowDeletion
from tests.rigs.changed_table import EVENTS_BY_ID, Change, ChangedTable, tombstone

KEY = ("id",)
ROW = {"id": "a", "n": 1}


def event(op: Any, before: Any = None, after: Any = None) -> dict[str, Any]:
    source = {"connector": "postgresql", "table": "state"}
    return {"before": before, "after": after, "op": op, "source": source, "ts_ms": 1}


def wrapped(payload: Any) -> dict[str, Any]:
    return {"schema": {"type": "struct"}, "payload": payload}


@pytest.mark.parametrize("op", ["c", "r", "u"])
def test_the_row_is_after(op: str) -> None:
    for before in (None, ROW, {"id": "a"}):
        assert row_of(event(op, before, ROW), KEY) == ROW
        assert row_of(wrapped(event(op, before, ROW)), KEY) == ROW


def test_a_deletion_has_the_key_of_before() -> None:
    found = row_of(event("d", ROW), KEY)
    assert found == {"id": "a"}
    assert isinstance(found, RowDeletion)
    by_record = row_of(event("d", None), ())
    assert isinstance(by_record, RowDeletion)
    assert by_record == {}
    assert isinstance(row_of(wrapped(None), KEY), RowDeletion)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (event("t"), "op 't': the event truncates the source table"),
        (event("m"), "op 'm': the event is a message"),
        (event("x", None, ROW), "op 'x': Debezium has no such operation"),
        (event(None, None, ROW), "op: an operation of Debezium is expected, not null"),
        (event(["c"], None, ROW), "op: an operation of Debezium is expected, not an array"),
        (ROW, "op: an operation of Debezium is expected, not null"),
        (wrapped([1]), "payload: an object is expected, not an array"),
        (event("c", None, None), "after: an object is expected, not null"),
        (event("d", None, None), "before: an object is expected, not null"),
        (event("d", {"n": 1}, None), "before.id: the key of the deletion is null"),
        (event("u", {"id": "b"}, ROW), "id: the event changes the key"),
        (event("u", None, ROW | {"n": "__debezium_unavailable_value"}), "n: the event lacks"),
    ],
)
def test_other_events_are_refused(value: dict[str, Any], reason: str) -> None:
    with pytest.raises(BadValueError) as refused:
        row_of(value, KEY)
    assert reason in refused.value.message


@pytest.mark.parametrize(
    "missing",
    [
        "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ==",
        b"__debezium_unavailable_value",
        ["__debezium_unavailable_value"],
        list(b"__debezium_unavailable_value"),
        {"__debezium_unavailable_value": "__debezium_unavailable_value"},
    ],
)
def test_values_that_an_update_lacks_are_not_stored(missing: Any) -> None:
    with pytest.raises(BadValueError, match="n: the event lacks the value"):
        row_of(event("u", None, ROW | {"n": missing}), KEY)


def change(value: dict[str, Any] | None, key: str = "a") -> Change:
    return Change(
        json.dumps({"id": key}).encode(), None if value is None else json.dumps(value).encode()
    )


@pytest.mark.parametrize("rule", [EVENTS_BY_ID, ChangeRule(mode="debezium")])
def test_events_make_the_state_of_the_source(tmp_path: Path, rule: ChangeRule) -> None:
    table = ChangedTable(tmp_path, rule)
    table.ingest(change(event("r", None, ROW)), change(event("c", None, {"id": "b", "n": 2}), "b"))
    assert table.state() == {"a": 1, "b": 2}
    table.ingest(
        change(event("u", None, {"id": "b", "n": 3}), "b"),
        change(wrapped(event("d", {"id": "a", "n": None}))),
        change(None),
        change(event("t")),
    )
    assert table.state() == {"b": 3}
    assert len(table.reasons()) == 1
    table.ingest(change(event("c", None, ROW)), change(None, "b"))
    assert table.state() == {"a": 1}, "a deletion may be left only as a tombstone"
    rows = table.load().scan().to_arrow()
    assert rows["_log_tombstone"].to_pylist() == [False]


def test_any_reason_can_be_published(tmp_path: Path) -> None:
    """The bound of a text is cut after 16 characters, and the last one replaced by the next one.
    After U+D7FF comes half of a surrogate pair."""
    table = ChangedTable(tmp_path, EVENTS_BY_ID)
    after = ROW | {"z" * 15 + "\ud7ff": "__debezium_unavailable_value"}
    for _ in range(2):
        table.ingest(change(event("u", None, after)), change(event("c", None, ROW)))
    assert table.state() == {"a": 1}
    assert len(table.reasons()) == 2


def test_the_row_of_a_deletion_needs_only_the_key(tmp_path: Path) -> None:
    table = ChangedTable(tmp_path, EVENTS_BY_ID)
    table.ingest(change(event("c", None, ROW)))
    table.ingest(change(event("d", {"id": "a", "n": "not a number"})), tombstone("other"))
    assert (table.state(), table.reasons()) == ({}, [])
    table.ingest(change(event("d", {"id": 5})))
    assert table.reasons() == ["id: a string is expected, not a number"]


def test_the_fields_of_the_row_come_from_the_envelope() -> None:
    row = pa.struct([("id", pa.string())])
    assert row_fields(pa.schema([("before", row), ("after", row), ("op", pa.string())])) == (
        pa.schema([("id", pa.string())])
    )
    with pytest.raises(ConfigurationError, match="no struct 'after'"):
        row_fields(pa.schema([("id", pa.string())]))
