"""Merges a batch of changes into an Iceberg table, by copy on write.

Files with rows that the batch replaces or deletes are written again without these rows. The new
rows are in further files. One commit changes all files, and sets the end offsets
(`iceberg_table.IcebergTable.change`).

Invariants: the result depends only on the table's snapshot and on the batch. If another writer
commits first, the merge is done again for the newer snapshot. The work for unchanged files
is kept. Files that no commit names are orphans.

Memory: the columns of the batch's keys, up to `key_bytes_max`, and about as much for their order;
the keys of up to `LOOKUP_ROWS` rows of a file; the rows that a writer buffers.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyiceberg.manifest import DataFile
from pyiceberg.table import FileScanTask, Table

from bucketlog.log_format.errors import BucketlogError
from bucketlog.log_reader.tables.change_rule import RECORD_KEY, ChangeRule
from bucketlog.log_reader.tables.changes.bounds import KeyBounds
from bucketlog.log_reader.tables.changes.file_rows import file_rows, live_files
from bucketlog.log_reader.tables.changes.key_codes import KeyCodes, Numbers
from bucketlog.log_reader.tables.changes.newest import PLACE_COLUMNS, NewestChanges, Places
from bucketlog.log_reader.tables.iceberg_files import TableFiles
from bucketlog.log_reader.tables.iceberg_table import FileChange
from bucketlog.log_reader.tables.rows import TOMBSTONE

KEY_BYTES_MAX = 512 * 1024 * 1024
LOOKUP_ROWS = 1_000_000
Marks = NDArray[np.bool_]


class BatchKeysError(BucketlogError):
    """The keys of a batch need more memory than the limit. Nothing of the batch is committed."""

    code = "BATCH_KEYS_TOO_LARGE"

    def __init__(self, limit_bytes: int) -> None:
        super().__init__(
            f"the keys of one batch have more than {limit_bytes:,} bytes",
            remedy="lower --max-batch-offsets, so that a batch has fewer keys, or raise "
            "--max-batch-key-bytes",
        )


class ChangedKeys:
    """The changes of a batch, by key. `rows` are the columns of `key_columns`, of all changes."""

    def __init__(self, rule: ChangeRule, rows: pa.Table) -> None:
        self._key = rule.columns
        self._places = Places(rows)
        at = self._places.coordinates(rows)
        is_deletion = np.asarray(rows.column(TOMBSTONE))
        # Without key fields, a tombstone has the key of its row. With key fields, a deletion has
        # fields only if it is an event of Debezium.
        by_record = is_deletion & np.asarray(rows.column(self._key[0]).is_null())
        self.keys = KeyCodes(rows.select(self._key).columns)
        self._newest = NewestChanges.of(self.keys.codes, at, self._places.width)
        tombstones = rows.filter(pa.array(by_record)) if rule.key else rows.slice(0, 0)
        self.record_keys = KeyCodes([tombstones.column(RECORD_KEY)])
        self._tombstones = NewestChanges.of(
            self.record_keys.codes,
            at.at(np.flatnonzero(by_record) if rule.key else np.empty(0, np.int64)),
            self._places.width,
        )
        newest = rows.take(pa.array(self._newest.rows))
        is_gone = self._deleted(newest, are_stored=False)
        is_kept = ~is_gone & ~is_deletion[self._newest.rows]
        self._kept_codes = np.flatnonzero(is_kept)
        self._row_count = rows.num_rows

    def kept(self, outdone: Marks) -> Marks:
        """Return for each change of the batch whether it is a row of the table. `outdone` marks the
        codes of keys for which the table has a newer row."""
        codes = self._kept_codes[~outdone[self._kept_codes]]
        found = np.zeros(self._row_count, np.bool_)
        found[self._newest.rows[codes]] = True
        return found

    def judged(self, rows: pa.Table) -> tuple[Marks, Numbers]:
        """Return for each row of a file whether it is replaced or deleted. Return also the codes
        of keys for which the file has a newer row."""
        codes = self.keys.of(rows.select(self._key).columns)
        at = self._places.coordinates(rows)
        is_replaced = self._newest.replaces(codes, at, are_stored=True)
        outdone = codes[(codes >= 0) & ~is_replaced]
        return is_replaced | self._deleted(rows, are_stored=True), outdone

    def _deleted(self, rows: pa.Table, *, are_stored: bool) -> Marks:
        if not self.record_keys.count:
            return np.zeros(rows.num_rows, np.bool_)
        codes = self.record_keys.of([rows.column(RECORD_KEY)])
        at = self._places.coordinates(rows)
        return self._tombstones.replaces(codes, at, are_stored=are_stored)


def key_columns(rule: ChangeRule) -> list[str]:
    """The columns that decide which rows stay."""
    return list(dict.fromkeys([*rule.columns, RECORD_KEY, *PLACE_COLUMNS, TOMBSTONE]))


class _Rewrite(NamedTuple):
    """The result for a file: the files in its place, None if it stays. `outdone` has the codes of
    keys for which the file has a newer row."""

    files: Sequence[DataFile] | None
    outdone: Numbers


class ChangeMerge:
    """Plans the commit of one batch, whose changes are in the files `staged`. A call is one try."""

    def __init__(
        self, rule: ChangeRule, staged: Sequence[DataFile], key_bytes_max: int = KEY_BYTES_MAX
    ) -> None:
        self._rule = rule
        self._staged = [FileScanTask(file) for file in staged]
        self._key_bytes_max = key_bytes_max
        self._changed: ChangedKeys | None = None
        self._done: dict[tuple[str, ...], _Rewrite] = {}
        self._new: tuple[bytes, list[DataFile]] | None = None
        """The files of the new rows, and the marks that they were written by."""
        self._written_for: tuple[int, int] | None = None
        """The ids of the columns and of the partitions that files were written for."""

    def __call__(self, table: Table) -> FileChange:
        """Return the files that the batch adds and removes. Raises `BatchKeysError`,
        `ConfigurationError` and the errors of reading and writing files."""
        written_for = (table.metadata.current_schema_id, table.metadata.default_spec_id)
        if self._written_for != written_for:
            self._written_for, self._changed, self._new = written_for, None, None
            self._done.clear()
        if not self._staged:
            return FileChange([])
        changed = self._changed = self._changed or self._read(table)
        added: list[DataFile] = []
        removed: list[DataFile] = []
        outdone = np.zeros(changed.keys.count, np.bool_)
        bounds = self._bounds(table, changed)
        for task in live_files(table):
            if not any(each.may_have_keys(task.file) for each in bounds):
                continue
            rewrite = self._rewritten(table, task, changed)
            outdone[rewrite.outdone] = True
            if rewrite.files is not None:
                added += rewrite.files
                removed.append(task.file)
        return FileChange([*self._new_files(table, changed, outdone), *added], removed)

    def _bounds(self, table: Table, changed: ChangedKeys) -> list[KeyBounds]:
        """A file is read if its bounds fit one of these."""
        schema = table.schema()
        values = dict(zip(self._rule.columns, changed.keys.values, strict=True))
        by_record = {RECORD_KEY: changed.record_keys.values[0]}
        return [KeyBounds(schema, values), KeyBounds(schema, by_record)]

    def _read(self, table: Table) -> ChangedKeys:
        found: list[pa.RecordBatch] = []
        size = 0
        for task in self._staged:
            with closing(file_rows(table, task, key_columns(self._rule))) as batches:
                for batch in batches:
                    size += batch.nbytes
                    if size > self._key_bytes_max:
                        raise BatchKeysError(self._key_bytes_max)
                    found.append(batch)
        return ChangedKeys(self._rule, pa.Table.from_batches(found))

    def _rewritten(self, table: Table, task: FileScanTask, changed: ChangedKeys) -> _Rewrite:
        known = (task.file.file_path, *sorted(each.file_path for each in task.delete_files))
        if known not in self._done:
            self._done[known] = self._rewrite(table, task, changed)
        return self._done[known]

    def _rewrite(self, table: Table, task: FileScanTask, changed: ChangedKeys) -> _Rewrite:
        marks: list[Marks] = []
        outdone: list[Numbers] = []
        for rows in _in_lookups(table, task, key_columns(self._rule)):
            is_gone, newer = changed.judged(rows)
            marks.append(is_gone)
            outdone.append(newer)
        gone = np.concatenate([np.empty(0, np.bool_), *marks])
        newer_codes = np.concatenate([np.empty(0, np.int64), *outdone])
        files = _written(table, [task], [~gone]) if gone.any() else None
        return _Rewrite(files, newer_codes)

    def _new_files(self, table: Table, changed: ChangedKeys, outdone: Marks) -> list[DataFile]:
        """Return the files of the new rows. A staged file without other rows is one of them."""
        kept = changed.kept(outdone)
        packed = np.packbits(kept).tobytes()
        if self._new is not None and self._new[0] == packed:
            return self._new[1]
        counts = [task.file.record_count for task in self._staged]
        marks = np.split(kept, np.cumsum(counts)[:-1])
        spec = table.metadata.default_spec_id
        is_whole = [
            bool(each.all()) and task.file.spec_id == spec
            for task, each in zip(self._staged, marks, strict=True)
        ]
        parts = [at for at, whole in enumerate(is_whole) if not whole and marks[at].any()]
        files = [task.file for task, whole in zip(self._staged, is_whole, strict=True) if whole]
        files += _written(table, [self._staged[at] for at in parts], [marks[at] for at in parts])
        self._new = packed, files
        return files


def _in_lookups(table: Table, task: FileScanTask, columns: Sequence[str]) -> Iterator[pa.Table]:
    """Yield the rows of a file in large tables: a lookup costs time for each key of the batch."""
    waiting: list[pa.RecordBatch] = []
    count = 0
    with closing(file_rows(table, task, columns)) as batches:
        for batch in batches:
            waiting.append(batch)
            count += batch.num_rows
            if count >= LOOKUP_ROWS:
                yield pa.Table.from_batches(waiting)
                waiting, count = [], 0
    if waiting:
        yield pa.Table.from_batches(waiting)


def _written(table: Table, tasks: Sequence[FileScanTask], marks: Sequence[Marks]) -> list[DataFile]:
    """Write the marked rows of files as new files."""
    writer = TableFiles.of(table).writer()
    for task, marked in zip(tasks, marks, strict=True):
        at = 0
        with closing(file_rows(table, task)) as batches:
            for batch in batches:
                chosen = pa.array(marked[at : at + batch.num_rows])
                writer.add(batch.filter(chosen))
                at += batch.num_rows
    return writer.finish()
