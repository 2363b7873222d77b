"""Rewrites small data files of an Iceberg table into larger ones.

A rewrite is one `replace` snapshot, which readers that follow appends skip. Invariants: the rows of
the table stay the same. A group of files is committed only if all its files are still live, and no
rows of them are deleted by delete files. The commit requires that nobody has committed since this
was checked. The properties of the table about ingests do not change. New files are removed only if
no commit of them was tried: the response of a commit may be lost, and others may then change the
table. Otherwise, files that were not committed are orphans.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import NamedTuple

from pyiceberg.exceptions import CommitFailedException
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.io.pyarrow import ArrowScan, schema_to_pyarrow
from pyiceberg.manifest import DataFile
from pyiceberg.table import FileScanTask, Table
from pyiceberg.table.snapshots import Operation, Summary
from pyiceberg.table.update.snapshot import _OverwriteFiles
from pyiceberg.typedef import EMPTY_DICT

from bucketlog.log_format.errors import ConfigurationError
from bucketlog.log_reader.tables.iceberg_files import TableFiles
from bucketlog.log_reader.tables.iceberg_table import commit_tries, once_only

MIB = 1024 * 1024
BUFFER_BYTES_MAX = 512 * MIB
"""Rows in memory, as Arrow holds them, before a file is written."""
FULL_ROWS = 1_000_000
"""A file with at least this number of rows is not small, however well its rows are compressed."""


@dataclass(frozen=True, slots=True)
class RewriteRule:
    """Files of less than `small_bytes` are rewritten, if a partition has at least `files_min` of
    them. A group has up to about `group_bytes`."""

    small_bytes: int = 32 * MIB
    group_bytes: int = 128 * MIB
    files_min: int = 5


class RewriteCounts(NamedTuple):
    """The files that were rewritten, and the files that replace them. `skipped` counts the files of
    groups that others changed meanwhile."""

    before: int = 0
    after: int = 0
    skipped: int = 0


class _Replacement(_OverwriteFiles):
    """A commit of a `replace` snapshot, for which PyIceberg has no method and no summary."""

    def _summary(self, snapshot_properties: dict[str, str] = EMPTY_DICT) -> Summary:
        found = super()._summary(snapshot_properties)
        return Summary(Operation.REPLACE, **found.additional_properties)


class SmallFiles:
    """Rewrites the small files of the table that `load` gets from its catalog."""

    def __init__(
        self,
        load: Callable[[], Table],
        rule: RewriteRule,
        *,
        random: Random,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._load = load
        self._rule = rule
        self._random = random
        self._sleep = sleep

    def groups(self) -> list[list[FileScanTask]]:
        """Return the groups of files that `rewrite` would rewrite."""
        return small_groups(_planned(self._load()), self._rule)

    def rewrite(self) -> RewriteCounts:
        """Rewrite each group by a separate commit. Raises the errors of PyIceberg."""
        counts = RewriteCounts()
        for group in self.groups():
            found = self._rewritten(group)
            counts = RewriteCounts(*(sum(pair) for pair in zip(counts, found, strict=True)))
        return counts

    def _rewritten(self, group: Sequence[FileScanTask]) -> RewriteCounts:
        table = self._load()
        old, spec = [task.file for task in group], table.metadata.default_spec_id
        files = _written(table, group)
        if len(files) >= len(group):
            _remove(table, files)  # rewriting would not help
            return RewriteCounts()
        done = RewriteCounts(before=len(group), after=len(files))
        was_tried = False
        for _ in commit_tries(self._random, self._sleep):
            table = self._load()
            if table.metadata.default_spec_id != spec or not _are_live(table, old):
                break
            was_tried = True
            try:
                _replace(once_only(table), old, files)
            except CommitFailedException:
                continue
            return done
        if not was_tried:
            _remove(table, files)
        elif _is_any_live(self._load(), files):  # the response of a commit was lost
            return done
        return RewriteCounts(skipped=len(group))


def small_groups(tasks: Iterable[FileScanTask], rule: RewriteRule) -> list[list[FileScanTask]]:
    """Group the small files of each partition. Files with deleted rows are left out. Pure."""
    by_partition: dict[tuple[object, ...], list[FileScanTask]] = {}
    for task in tasks:
        file = task.file
        is_small = file.file_size_in_bytes < rule.small_bytes and file.record_count < FULL_ROWS
        if is_small and not task.delete_files:
            values = tuple(file.partition[at] for at in range(len(file.partition)))
            by_partition.setdefault((file.spec_id, *values), []).append(task)
    found = []
    for small in by_partition.values():
        found += _groups(sorted(small, key=lambda task: task.file.file_path), rule)
    return found


def _groups(small: Sequence[FileScanTask], rule: RewriteRule) -> list[list[FileScanTask]]:
    groups: list[list[FileScanTask]] = [[]]
    size = 0
    for task in small:
        if size >= rule.group_bytes:
            groups.append([])
            size = 0
        groups[-1].append(task)
        size += task.file.file_size_in_bytes
    return [group for group in groups if len(group) >= rule.files_min]


def _written(table: Table, group: Sequence[FileScanTask]) -> list[DataFile]:
    """Write the rows of a group as new files, which do not belong to the table yet."""
    files = replace(TableFiles.of(table), buffer_bytes_max=BUFFER_BYTES_MAX)
    writer = files.writer()
    scan = ArrowScan(table.metadata, table.io, table.schema(), AlwaysTrue())
    schema = schema_to_pyarrow(table.schema(), include_field_ids=False)
    for task in group:  # a scan of several files would have all their rows in memory
        for batch in scan.to_record_batches([task]):
            writer.add(batch.cast(schema))  # files of other engines have other types of Arrow
    return writer.finish()


def _planned(table: Table) -> Iterable[FileScanTask]:
    """Return the live files. Raises `ConfigurationError` if their deletes cannot be read."""
    try:
        return table.scan().plan_files()
    except (ValueError, NotImplementedError) as error:
        raise ConfigurationError(
            f"the small files of {'.'.join(table.name())} cannot be rewritten: {error}",
            remedy="let the engine that wrote these files rewrite them, such as Spark by "
            "rewrite_data_files",
        ) from error


def _are_live(table: Table, files: Sequence[DataFile]) -> bool:
    """Return True if the table has all files, and no rows of them are deleted."""
    live = {task.file.file_path for task in _planned(table) if not task.delete_files}
    return live.issuperset(file.file_path for file in files)


def _is_any_live(table: Table, files: Sequence[DataFile]) -> bool:
    """Return True if the table has any of the files, even if rows of them are deleted."""
    paths = {file.file_path for file in files}
    return any(task.file.file_path in paths for task in _planned(table))


def _replace(table: Table, old: Sequence[DataFile], new: Sequence[DataFile]) -> None:
    with (
        table.transaction() as change,
        _Replacement(Operation.OVERWRITE, change, table.io) as update,
    ):
        for file in old:
            update.delete_data_file(file)
        for file in new:
            update.append_data_file(file)


def _remove(table: Table, files: Sequence[DataFile]) -> None:
    """Remove files that no commit names. If this process is killed before, they are orphans."""
    for file in files:
        table.io.delete(file.file_path)
