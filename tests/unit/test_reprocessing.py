"""Dead letters that fit become rows once: after kills, beside others, and after deletions."""

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import Transaction

from bucketlog.log_format.errors import ConfigurationError, CorruptObjectError
from bucketlog.log_reader.tables import reprocessing
from bucketlog.log_reader.tables.iceberg_schema import prepared_table
from bucketlog.log_reader.tables.reprocessing import (
    PROPERTY,
    ReprocessConflictError,
    Reprocessor,
    ReprocessReport,
)
from bucketlog.log_reader.tables.rows import (
    BATCH,
    DAY,
    RowShape,
)
from bucketlog.log_reader.tables.table_target import TableName
from tests.rigs.batched_table import NAME, BatchedTable

NEW = RowShape(pa.schema([("id", pa.int64()), ("note", pa.string())]))
GOOD, WIDE, NOTED, BAD = b'{"id":1}', b'{"id":3000000000}', b'{"id":4e9,"note":"n"}', b"{"


class DiedError(Exception):
    """Error in place of the death of the process."""


class Lake(BatchedTable):
    """A table whose dead letters are reprocessed."""

    def reprocess(self, shape: RowShape = NEW, *, letters_max: int = 1_000) -> ReprocessReport:
        ids = iter(f"{Random().random()}" for _ in range(1_000))
        return Reprocessor(
            NAME,
            lambda: self.catalog,
            lambda: next(ids),
            Random(1),
            sleep=lambda _: None,
            letters_max=letters_max,
        ).run(shape)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    found = Lake(tmp_path)
    found.ingest(GOOD, WIDE, BAD)
    found.ingest(NOTED, GOOD)
    assert found.letters() == [1, 2, 3]
    return found


ROWS = [(0, 1, 1), (1, 1, 3_000_000_000), (3, 2, 4_000_000_000), (4, 2, 1)]


def test_letters_that_fit_become_rows(lake: Lake) -> None:
    report = lake.reprocess()
    assert report == ("lake.db.orders", "lake.db.orders_dead_letters", 2, 1)
    assert (lake.rows(), lake.letters()) == (ROWS, [2])
    row = lake.load().scan(row_filter="_log_offset = 3").to_arrow().to_pylist()[0]
    assert (row["note"], row["_log_key"], row["_log_tombstone"]) == ("n", b"k", False)
    assert row["day"].isoformat() == "1970-01-01"


def test_a_second_run_changes_nothing(lake: Lake) -> None:
    lake.reprocess()
    before = lake.load().current_snapshot(), lake.load(NAME.letters).current_snapshot()
    assert lake.reprocess()[2:] == (0, 1)
    assert (lake.load().current_snapshot(), lake.load(NAME.letters).current_snapshot()) == before


def test_the_ingest_continues(lake: Lake) -> None:
    lake.reprocess()
    lake.ingest(GOOD, BAD, WIDE)
    assert [row[0] for row in lake.rows()] == [0, 1, 3, 4, 5]
    assert lake.letters() == [2, 6, 7]
    lake.reprocess()
    assert [row[0] for row in lake.rows()] == [0, 1, 3, 4, 5, 7]
    assert lake.letters() == [2, 6]


def test_many_letters_are_moved_in_several_commits(lake: Lake) -> None:
    for _ in range(4):
        lake.ingest(*[WIDE] * 5)
    assert lake.reprocess(letters_max=3)[2:] == (22, 1)
    assert len(lake.rows()) == len({row[0] for row in lake.rows()}) == 24
    assert lake.letters() == [2]


def test_a_record_whose_timestamp_is_no_date_stays(lake: Lake) -> None:
    lake.ingest(WIDE, timestamp_us=2**62)
    assert lake.reprocess()[2:] == (2, 2)
    assert lake.letters() == [2, 5]


def dying(call: Callable[..., Any], *, before: bool) -> Callable[..., Any]:
    def died(*arguments: Any, **named: Any) -> Any:
        if not before:
            call(*arguments, **named)
        raise DiedError

    return died


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("step", ["_append", "_delete_reprocessed"])
def test_a_run_that_died_is_finished(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, step: str, before: bool
) -> None:
    """The run dies before or after each commit."""
    with monkeypatch.context() as patch:
        if step == "_append":
            patch.setattr(Reprocessor, step, dying(getattr(Reprocessor, step), before=before))
        else:
            patch.setattr(Transaction, "delete", dying(Transaction.delete, before=before))
        with pytest.raises(DiedError):
            lake.reprocess()
    lake.ingest(GOOD)
    lake.reprocess()
    assert lake.rows() == [*ROWS, (5, 3, 1)]
    assert lake.letters() == [2]


def test_a_lost_answer_is_no_failure(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    commit = Transaction.commit_transaction
    lost: list[bool] = []

    def answered(transaction: Transaction) -> Any:
        found = commit(transaction)
        if PROPERTY in transaction.table_metadata.properties and not lost:
            lost.append(True)
            raise ConnectionResetError
        return found

    monkeypatch.setattr(Transaction, "commit_transaction", answered)
    assert lake.reprocess()[2:] == (2, 1)
    assert lost
    assert (lake.rows(), lake.letters()) == (ROWS, [2])


def changed_before_commit(monkeypatch: pytest.MonkeyPatch, change: Callable[[], object]) -> None:
    """Run `change` once, after the dead letters were read and converted."""
    append = Reprocessor._append
    done: list[bool] = []

    def later(*arguments: Any) -> None:
        if not done:
            done.append(True)
            change()
        append(*arguments)

    monkeypatch.setattr(Reprocessor, "_append", later)


def test_of_two_runs_one_commits(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    changed_before_commit(monkeypatch, lake.reprocess)
    with pytest.raises(ReprocessConflictError, match=r"lake\.db\.orders was changed"):
        lake.reprocess()
    assert (lake.rows(), lake.letters()) == (ROWS, [2])


def test_deleted_letters_do_not_become_rows(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    changed_before_commit(monkeypatch, lambda: lake.load(NAME.letters).delete("_log_offset = 3"))
    with pytest.raises(ReprocessConflictError, match="dead_letters was changed"):
        lake.reprocess()
    assert [row[0] for row in lake.rows()] == [0, 4]
    lake.reprocess()
    assert [row[0] for row in lake.rows()] == [0, 1, 4]
    assert lake.letters() == [2]


def test_an_ingest_meanwhile_is_no_conflict(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    changed_before_commit(monkeypatch, lambda: lake.ingest(GOOD, BAD))
    lake.reprocess()
    assert lake.rows() == [*ROWS, (5, 3, 1)]
    assert lake.letters() == [2, 6]


def test_commits_that_are_lost_to_others_are_tried_again(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = Transaction.commit_transaction
    refused: list[bool] = []

    def sometimes(transaction: Transaction) -> Any:
        refused.append(len(refused) % 3 < 2)
        if refused[-1]:
            raise CommitFailedException("somebody was faster")
        return commit(transaction)

    lake.load()  # columns are there before commits fail
    prepared_table(
        lake.catalog, NAME.table, pa.schema([*NEW.columns, (BATCH, pa.int64())]), partition_by=DAY
    )
    monkeypatch.setattr(Transaction, "commit_transaction", sometimes)
    monkeypatch.setattr(reprocessing, "prepared_table", lambda *_, **__: None)
    assert lake.reprocess()[2:] == (2, 1)
    assert (lake.rows(), lake.letters()) == (ROWS, [2])


def test_files_that_are_gone_are_named(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Transaction, "delete", dying(Transaction.delete, before=True))
        with pytest.raises(DiedError):
            lake.reprocess()
    done = reprocessing.reprocessed(lake.load())
    assert done is not None
    Path(done.files[0].removeprefix("file://")).unlink()
    with pytest.raises(CorruptObjectError, match="gone"):
        lake.reprocess()


def test_a_table_that_is_not_there_is_not_made(lake: Lake) -> None:
    other = Reprocessor(
        TableName.parse("lake.db.other"), lambda: lake.catalog, lambda: "a", Random(1)
    )
    with pytest.raises(ConfigurationError, match=r"lake\.db\.other"):
        other.run(NEW)
    assert lake.catalog.list_tables("db") == [("db", "orders"), ("db", "orders_dead_letters")]
