"""The checks of the proof `tables` find planted errors."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest

from tests.scenarios.lake_tables import placed, reader_problems, table_problems
from tests.scenarios.lake_topics import Acknowledged, LakeTopic


def rows_by_id(ids: Sequence[int], schema: pa.Schema) -> pa.Table:
    return pa.Table.from_pylist([{"id": each, "text": f"t{each}"} for each in ids], schema)


TOPIC = LakeTopic("orders", (), lambda number: b"", rows_by_id, 1.0)


def acknowledged(count: int) -> pa.Table:
    found = Acknowledged()
    for number in range(count):
        found.partitions.append(number % 2)
        found.offsets.append(number // 2)
        found.ids.append(number)
    return placed(found)


def table_of(ids: Sequence[int], *, text: str | None = None) -> pa.Table:
    """Return a table as a scan returns tables: 32-bit partitions, and rows in any order."""
    rows = [
        {
            "id": each,
            "text": text or f"t{each}",
            "_log_partition": each % 2,
            "_log_offset": each // 2,
            "day": None,
        }
        for each in ids
    ]
    fields = [("id", pa.int64()), ("text", pa.large_string()), ("_log_partition", pa.int32())]
    schema = pa.schema([*fields, ("_log_offset", pa.int64()), ("day", pa.date32())])
    return pa.Table.from_pylist(rows, schema)


def test_equal_tables_have_no_problems() -> None:
    assert table_problems(TOPIC, acknowledged(4), table_of([3, 1, 0, 2]), set()) == []
    assert table_problems(TOPIC, acknowledged(4), table_of([3, 0]), {1, 2}) == []
    assert reader_problems("r", acknowledged(3), table_of([2, 0, 1])) == []


@pytest.mark.parametrize(
    ("found", "deleted", "problem"),
    [
        ([0, 1, 2], set(), "the table of orders: 3 rows, not the 4 expected rows"),
        ([0, 1, 2, 3, 3], set(), "5 rows, not the 4 expected rows"),
        ([0, 1, 2, 4], set(), "4 rows, not the 4 expected rows"),
        ([0, 1, 2, 3], {2}, "1 deleted rows of orders are back"),
    ],
)
def test_other_rows_are_found(found: list[int], deleted: set[int], problem: str) -> None:
    problems = table_problems(TOPIC, acknowledged(4), table_of(found), deleted)
    assert any(problem in each for each in problems)


def test_other_values_are_found() -> None:
    found = table_of([0, 1, 2, 3], text="x")
    problems = table_problems(TOPIC, acknowledged(4), found, set())
    assert problems == ["the table of orders has other values"]
