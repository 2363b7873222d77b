"""`bucketlog table maintain`: small files, old snapshots and orphan files of a table."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from random import Random
from typing import TYPE_CHECKING, Annotated

import typer

from bucketlog.cli.options import OutputFormat
from bucketlog.cli.signals import sigterm_interrupts
from bucketlog.cli.table_flags import Catalog, DeadLetters, Table, pairs
from bucketlog.log_format.durations import parse_duration_ms
from bucketlog.log_format.errors import ConfigurationError
from bucketlog.log_format.extras import check_installed
from bucketlog.terminal import Output, counted, say, say_json

if TYPE_CHECKING:
    from bucketlog.log_reader.tables.maintenance.table_maintenance import (
        MaintenanceReport,
        TableMaintenance,
    )
    from bucketlog.log_reader.tables.table_target import TableName

MIB = 1024 * 1024
SMALL_FILE_BYTES = 32 * MIB
SNAPSHOT_AGE, ORPHAN_AGE = "7d", "3d"
ORPHAN_AGE_LEAST = timedelta(days=1)
SNAPSHOTS_MAX, SNAPSHOTS_MAX_LEAST = 10_000, 10

SmallFileBytes = Annotated[
    int, typer.Option(min=1, help="Data files with fewer bytes are rewritten as larger files.")
]
SnapshotAge = Annotated[
    str, typer.Option(metavar="TIME", help="Age after which snapshots expire, such as 7d.")
]
SnapshotsMax = Annotated[
    int,
    typer.Option(
        min=SNAPSHOTS_MAX_LEAST,
        help="Maximum number of snapshots of any age. If there are more, the oldest ones expire.",
    ),
]
OrphanAge = Annotated[
    str,
    typer.Option(
        metavar="TIME", help="Age after which orphan files are deleted, such as 3d; at least 1d."
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the changes, but do not make them.")]


def maintain(
    into: Table,
    catalog_property: Catalog = None,
    dead_letters: DeadLetters = None,
    small_file_bytes: SmallFileBytes = SMALL_FILE_BYTES,
    snapshot_age: SnapshotAge = SNAPSHOT_AGE,
    snapshots_max: SnapshotsMax = SNAPSHOTS_MAX,
    orphan_age: OrphanAge = ORPHAN_AGE,
    dry_run: DryRun = False,
    output: OutputFormat = Output.TABLE,
) -> None:
    """Rewrite small files of a table, expire old snapshots, and delete orphan files.

    Orphan files belong to no snapshot. The table of dead letters is maintained as well. Ingests and
    readers may run at the same time."""
    check_installed("replay", extra="iceberg")
    check_installed("iceberg")
    from bucketlog.log_reader.tables.maintenance.small_files import RewriteRule
    from bucketlog.log_reader.tables.maintenance.table_maintenance import MaintenanceRules
    from bucketlog.log_reader.tables.table_target import TableName

    name = TableName.parse(into, dead_letters)
    properties = pairs("--catalog-property", catalog_property or [])
    rules = MaintenanceRules(
        RewriteRule(small_bytes=small_file_bytes),
        timedelta(milliseconds=parse_duration_ms(snapshot_age)),
        timedelta(milliseconds=parse_duration_ms(orphan_age)),
        snapshots_max=snapshots_max,
    )
    if rules.orphan_age < ORPHAN_AGE_LEAST:
        raise ConfigurationError(
            f"--orphan-age {orphan_age} is less than a day",
            remedy="give at least 1d: a running ingest may still commit younger files",
        )
    with sigterm_interrupts():
        reports = maintenance_of(name, properties).run(rules, dry_run=dry_run)
    show_maintenance(reports, output, dry_run=dry_run)


def maintenance_of(name: "TableName", properties: Mapping[str, str]) -> "TableMaintenance":
    from bucketlog.log_reader.tables.catalog import open_catalog
    from bucketlog.log_reader.tables.maintenance.table_maintenance import TableMaintenance

    return TableMaintenance(
        name, lambda: open_catalog(name.catalog, properties), Random(), lambda: datetime.now(UTC)
    )


def show_maintenance(
    reports: Sequence["MaintenanceReport"], output: Output, *, dry_run: bool
) -> None:
    if output is not Output.TABLE:
        say_json([report._asdict() for report in reports])
        return
    for report in reports:
        say(_in_a_line(report, dry_run=dry_run))


def _in_a_line(report: "MaintenanceReport", *, dry_run: bool) -> str:
    rewritten = counted(report.small_files, "small file")
    if not dry_run:
        rewritten += f" as {report.larger_files:,}"
    orphans = f"{counted(report.orphans, 'orphan')} of {report.orphan_bytes:,} bytes"
    expired = counted(report.snapshots, "snapshot")
    if dry_run:
        return f"{report.table}: would rewrite {rewritten}, expire {expired}, delete {orphans}"
    return f"{report.table}: rewrote {rewritten}, expired {expired}, deleted {orphans}"
