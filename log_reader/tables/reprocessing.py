"""Turns dead letters that now fit into rows of their table, each once.

Two tables change, one after the other. First, one commit appends the rows to the first table. This
commit also sets the table property `bucketlog.reprocess`, which names the files of the rows. Then
one commit deletes the dead letters of these rows, and sets the same property of the second table to
the attempt. If a run finds different attempts, an earlier run ended between the two commits. The
run then first deletes the dead letters of the earlier run.

Invariants: of two runs at the same time, only one commits rows. No dead letter becomes a row if
others have deleted dead letters since the dead letters were read. An ingest may commit meanwhile:
its offsets do not change. A table of changes is refused: a dead letter may be older than the row of
its key.
"""

import time
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import reduce
from random import Random
from typing import Literal, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pydantic import BaseModel, ConfigDict
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.expressions import And, BooleanExpression, EqualTo, In, NotNull, Or
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation

from bucketlog.log_format.errors import (
    BucketError,
    BucketlogError,
    ConfigurationError,
    CorruptObjectError,
)
from bucketlog.log_reader.tables.catalog_failure import catalog_failures
from bucketlog.log_reader.tables.iceberg_files import TableFiles
from bucketlog.log_reader.tables.iceberg_schema import prepared_table
from bucketlog.log_reader.tables.iceberg_table import (
    COMMIT_TRIES_MAX,
    ancestors_of,
    commit_tries,
    once_only,
    rule_of,
)
from bucketlog.log_reader.tables.rows import (
    BATCH,
    DAY,
    DEAD_LETTERS,
    RowMaker,
    RowShape,
    numbered,
)
from bucketlog.log_reader.tables.table_target import TableName

PROPERTY = "bucketlog.reprocess"
LETTERS_MAX = 100_000
"""Number of dead letters after which a run commits rows. Their offsets are in memory."""
_CONVERTED_TOGETHER = 10_000
_PLACE = ("_log_topic", "_log_partition", "_log_offset")


class ReprocessConflictError(BucketlogError):
    """Others changed a table during a run. The run has committed nothing since that change."""

    code = "REPROCESS_CONFLICT"
    retriable = True

    def __init__(self, table: str) -> None:
        super().__init__(
            f"{table} was changed by others while the dead letters were read",
            remedy="wait until the other run or the deletion has ended, then run the command again",
        )


class ReprocessedRows(BaseModel):
    """The value of the table property: the files of the rows that an attempt appended. Dead letters
    with the same topics, partitions and offsets are deleted from the table `letters`."""

    model_config = ConfigDict(frozen=True)

    format: Literal[1] = 1
    attempt: str
    letters: str
    files: tuple[str, ...]


class ReprocessReport(NamedTuple):
    """The result of a run. `rows` counts the dead letters that became rows. `left` counts the dead
    letters that still do not fit."""

    table: str
    dead_letters: str
    rows: int
    left: int


@dataclass(frozen=True)
class Reprocessor:
    """Turns dead letters into rows. Each run calls `open_catalog` once. `new_id` makes the id of an
    attempt."""

    name: TableName
    open_catalog: Callable[[], Catalog]
    new_id: Callable[[], str]
    random: Random
    sleep: Callable[[float], None] = time.sleep
    letters_max: int = LETTERS_MAX

    def run(self, shape: RowShape) -> ReprocessReport:
        """Convert all dead letters again, by `shape`. The rule of `shape` for bad records is
        ignored. Raises `ConfigurationError`, `ReprocessConflictError`, `CorruptObjectError` and
        `BucketError`. Rows that were committed before the error stay."""
        maker = RowMaker(replace(shape, bad_records="dead-letter"))
        with catalog_failures(str(self.name)):
            catalog = self.open_catalog()
            present = catalog.load_table(self.name.table)
            if rule_of(str(self.name), present.metadata) is not None:
                raise _refused_for_changes(str(self.name))
            catalog.load_table(self.name.letters)
            columns = pa.schema([*shape.columns, (BATCH, pa.int64())])
            prepared_table(catalog, self.name.table, columns, partition_by=DAY)
            self._delete_reprocessed(catalog)
            rows = moved = self._moved(catalog, maker)
            while moved >= self.letters_max:
                moved = self._moved(catalog, maker)
                rows += moved
            left = catalog.load_table(self.name.letters).scan().count()
        return ReprocessReport(
            str(self.name), f"{self.name.catalog}.{self.name.letters}", rows, left
        )

    def _moved(self, catalog: Catalog, maker: RowMaker) -> int:
        """Turn dead letters that fit into rows, and end soon after `letters_max` of them. Returns
        their number."""
        table, letters = (catalog.load_table(each) for each in (self.name.table, self.name.letters))
        snapshot = letters.current_snapshot()
        if snapshot is None:
            return 0
        writer = TableFiles.of(table).writer()
        count = 0
        with closing(_batches(letters)) as batches:
            for number, records in batches:
                rows = maker.rows(records).rows
                writer.add(numbered(rows, number))
                count += rows.num_rows
                if count >= self.letters_max:
                    break
        files = writer.finish()
        if not files:
            return 0
        self._append(catalog, files, reprocessed(table), snapshot.snapshot_id)
        self._delete_reprocessed(catalog)
        return count

    def _append(
        self,
        catalog: Catalog,
        files: Sequence[DataFile],
        before: ReprocessedRows | None,
        letters_snapshot: int,
    ) -> None:
        done = ReprocessedRows(
            attempt=self.new_id(),
            letters=self.name.letters,
            files=tuple(each.file_path for each in files),
        )
        for _ in commit_tries(self.random, self.sleep):
            table = catalog.load_table(self.name.table)
            if reprocessed(table) != before:
                raise ReprocessConflictError(str(self.name))
            if not only_appended(catalog.load_table(self.name.letters), letters_snapshot):
                raise ReprocessConflictError(f"{self.name.catalog}.{self.name.letters}")
            try:
                with once_only(table).transaction() as change:
                    with change.update_snapshot({PROPERTY: done.attempt}).fast_append() as append:
                        for file in files:
                            append.append_data_file(file)
                    change.set_properties({PROPERTY: done.model_dump_json()})
            except CommitFailedException:
                continue
            except Exception:
                # the commit may have succeeded, although its response is lost
                if reprocessed(catalog.load_table(self.name.table)) == done:
                    return
                raise
            return
        raise self._contention(self.name.table)

    def _delete_reprocessed(self, catalog: Catalog) -> None:
        """Delete the dead letters of the rows that were appended last, if this is not done yet."""
        table = catalog.load_table(self.name.table)
        done = reprocessed(table)
        if done is None:
            return
        wanted: BooleanExpression | None = None
        for _ in commit_tries(self.random, self.sleep):
            letters = catalog.load_table(done.letters)
            if letters.properties.get(PROPERTY) == done.attempt:
                return
            if wanted is None:
                wanted = at_places(_places(table, done.files))
            try:
                with warnings.catch_warnings(), once_only(letters).transaction() as change:
                    warnings.simplefilter("ignore", UserWarning)  # others deleted all of them
                    change.delete(wanted, {PROPERTY: done.attempt})
                    change.set_properties({PROPERTY: done.attempt})
            except CommitFailedException:
                continue
            return
        raise self._contention(done.letters)

    def _contention(self, table: str) -> BucketError:
        return BucketError(
            f"others changed {self.name.catalog}.{table} during each of "
            f"{COMMIT_TRIES_MAX} tries to commit",
            remedy="run the command again when maintenance and other writers are idle",
        )


def _refused_for_changes(table: str) -> ConfigurationError:
    return ConfigurationError(
        f"{table} has the current state of keys, and a dead letter may be older than the row of "
        "its key",
        remedy="produce the corrected records again, so that the ingest reads them",
    )


def reprocessed(table: Table) -> ReprocessedRows | None:
    """Return the table property about the rows that were appended last, or None. Raises
    `CorruptObjectError`."""
    stored = table.properties.get(PROPERTY)
    try:
        return None if stored is None else ReprocessedRows.model_validate_json(stored)
    except ValueError as error:
        raise CorruptObjectError(
            ".".join(table.name()), 0, f"property {PROPERTY} cannot be read: {error}"
        ) from error


def only_appended(letters: Table, since: int) -> bool:
    """Return True if all snapshots after the snapshot `since` only appended files."""
    for each in ancestors_of(letters.metadata):
        if each.snapshot_id == since:
            return True
        if each.summary is None or each.summary.operation is not Operation.APPEND:
            return False
    return False


def at_places(places: pa.Table) -> BooleanExpression:
    """Return an expression for the rows at these places: topic, partition and offset."""
    grouped = places.group_by(list(_PLACE[:2])).aggregate([(_PLACE[2], "list")])
    found: list[BooleanExpression] = [
        And(
            EqualTo(term=_PLACE[0], value=row[_PLACE[0]]),
            EqualTo(term=_PLACE[1], value=row[_PLACE[1]]),
            In(term=_PLACE[2], literals=set(row[f"{_PLACE[2]}_list"])),
        )
        for row in grouped.to_pylist()
    ]
    return reduce(Or, found)


def _places(table: Table, files: Sequence[str]) -> pa.Table:
    """Return the places of the rows in files of `table`. Raises `CorruptObjectError`."""
    found = []
    for path in files:
        try:
            with table.io.new_input(path).open() as stream:
                found.append(pq.read_table(stream, columns=list(_PLACE)))
        except FileNotFoundError as error:
            raise CorruptObjectError(
                path,
                0,
                "the file is gone, and the dead letters of its rows are not deleted yet",
                remedy="delete the dead letters that are also rows of the table, then set the "
                f"property {PROPERTY} of the table of dead letters to the attempt that the "
                "same property of the table names",
            ) from error
    return pa.concat_tables(found)


def _batches(letters: Table) -> Generator[tuple[int, pa.RecordBatch], None, None]:
    """Yield dead letters as records of the log, with the number of their ingest's batch. Dead
    letters without a timestamp are left out, because they do not fit any schema."""
    scan = letters.scan(row_filter=NotNull(term="_log_timestamp"))
    with closing(scan.to_arrow_batch_reader()) as batches:
        for batch in batches:
            for start in range(0, batch.num_rows, _CONVERTED_TOGETHER):
                yield from _by_number(batch.slice(start, _CONVERTED_TOGETHER))


def _by_number(letters: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
    kinds = {each.name: each.type for each in DEAD_LETTERS}
    records = pa.RecordBatch.from_arrays(
        [letters.column(name).cast(kinds[name]) for name in _LETTER_COLUMNS], _RECORD_COLUMNS
    )
    numbers = letters.column(BATCH)
    for number in pc.unique(numbers):
        yield number.as_py(), records.filter(pc.equal(numbers, number))


_LETTER_COLUMNS = (
    "_log_key",
    "value",
    "_log_topic",
    "_log_partition",
    "_log_offset",
    "_log_timestamp",
)
_RECORD_COLUMNS = [name.removeprefix("_log_") for name in _LETTER_COLUMNS]
