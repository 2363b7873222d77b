"""The maintenance of a table that an ingest fills, and of its dead letters.

The steps are in this order: small files are rewritten, old snapshots expire, and orphans are
deleted. Ingests, readers and other maintenance may run at the same time.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from typing import NamedTuple

from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.table import Table

from bucketlog.log_format.errors import ConfigurationError
from bucketlog.log_reader.tables.catalog_failure import catalog_failures
from bucketlog.log_reader.tables.maintenance.orphans import check_may_delete, orphans, remove
from bucketlog.log_reader.tables.maintenance.small_files import (
    RewriteCounts,
    RewriteRule,
    SmallFiles,
)
from bucketlog.log_reader.tables.maintenance.snapshots import (
    SnapshotRule,
    expire,
    expired_snapshots,
)
from bucketlog.log_reader.tables.rows import BATCH, DEAD_LETTERS
from bucketlog.log_reader.tables.table_target import TableName

SNAPSHOTS_MIN = 10
_BEGIN = datetime.fromtimestamp(0, UTC)


@dataclass(frozen=True, slots=True)
class MaintenanceRules:
    """Snapshots older than `snapshot_age` expire, but the newest `snapshots_min` stay. No more than
    `snapshots_max` stay, however young they are. Orphans older than `orphan_age` are deleted."""

    rewrite: RewriteRule = field(default_factory=RewriteRule)
    snapshot_age: timedelta = timedelta(days=7)
    orphan_age: timedelta = timedelta(days=3)
    snapshots_min: int = SNAPSHOTS_MIN
    snapshots_max: int = 10_000


class MaintenanceReport(NamedTuple):
    """What was done to a table, or would be done. `small_files` became `larger_files`. Files of
    `skipped_files` were changed by others meanwhile."""

    table: str
    small_files: int
    larger_files: int
    skipped_files: int
    snapshots: int
    orphans: int
    orphan_bytes: int


@dataclass(frozen=True)
class TableMaintenance:
    """`now` is the time of the clock, with a zone."""

    name: TableName
    open_catalog: Callable[[], Catalog]
    random: Random
    now: Callable[[], datetime]
    sleep: Callable[[float], None] = time.sleep

    def run(self, rules: MaintenanceRules, *, dry_run: bool = False) -> list[MaintenanceReport]:
        """Take care of the table, and of the table of dead letters if there is one. A dry run
        changes nothing; its report has no `larger_files`, and no orphans of snapshots that would
        expire. Raises `ConfigurationError` and `BucketError`. Steps that were done before stay."""
        with catalog_failures(str(self.name)):
            catalog = self.open_catalog()
            _check_not_letters(catalog.load_table(self.name.table))
            reports = [self._run(catalog, self.name.table, rules, dry_run=dry_run)]
            if catalog.table_exists(self.name.letters):
                reports.append(self._run(catalog, self.name.letters, rules, dry_run=dry_run))
        return reports

    def _run(
        self, catalog: Catalog, identifier: str, rules: MaintenanceRules, *, dry_run: bool
    ) -> MaintenanceReport:
        def load() -> Table:
            return catalog.load_table(identifier)

        def rows() -> list[Table]:
            return [catalog.load_table(self.name.table)]

        check_may_delete(load())
        small = SmallFiles(load, rules.rewrite, random=self.random, sleep=self.sleep)
        counts = RewriteCounts(before=sum(map(len, small.groups()))) if dry_run else small.rewrite()
        now = self.now()
        before = _earlier(now, rules.snapshot_age)
        rule = SnapshotRule(before, rules.snapshots_min, rules.snapshots_max)
        if dry_run:
            old = len(expired_snapshots(load().metadata, rule))
        else:
            old = expire(load, rule, random=self.random, sleep=self.sleep)
        found = orphans(
            load,
            rows,
            _earlier(now, rules.orphan_age),
            neighbours=lambda: _in_same_namespace(catalog, identifier),
        )
        if not dry_run:
            remove(load(), found)
        return MaintenanceReport(
            f"{self.name.catalog}.{identifier}",
            counts.before,
            counts.after,
            counts.skipped,
            old,
            len(found),
            sum(file.size_bytes for file in found),
        )


def _check_not_letters(table: Table) -> None:
    """Only the table of the rows names dead letters that are not in their own table yet. Without
    it, they would look like orphans. Raises `ConfigurationError`."""
    names = {each.name for each in table.schema().fields}
    if names == {*DEAD_LETTERS.names, BATCH}:
        raise ConfigurationError(
            f"{'.'.join(table.name())} is a table of dead letters",
            remedy="name the table of the rows with --into, and this one with --dead-letters",
        )


def _in_same_namespace(catalog: Catalog, identifier: str) -> Iterator[Table]:
    for each in catalog.list_tables(catalog.namespace_from(identifier)):
        with suppress(NoSuchTableError):  # dropped meanwhile, or of another format
            yield catalog.load_table(each)


def _earlier(now: datetime, age: timedelta) -> datetime:
    """An age may be longer than the time that Python knows."""
    return _BEGIN if age > now - _BEGIN else now - age
