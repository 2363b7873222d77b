"""`bucketlog table`: topics as Iceberg tables, straight from the bucket, without Spark."""

import os
import threading
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from random import Random
from typing import TYPE_CHECKING, Annotated, Literal
from uuid import uuid4

import typer

from bucketlog.cli.options import BucketUrl, OutputFormat
from bucketlog.cli.signals import sigterm_interrupts
from bucketlog.cli.table_shape import ShapeFlags, with_shape
from bucketlog.log_format.durations import parse_duration_ms
from bucketlog.log_format.errors import BucketlogError, ConfigurationError
from bucketlog.log_format.extras import check_installed
from bucketlog.log_format.local_server import is_local
from bucketlog.terminal import Output, counted, note, say, say_json

if TYPE_CHECKING:
    from bucketlog.ingesting.local_ingest import LocalIngest, RepeatedUpkeep
    from bucketlog.log_reader.tables.ingest_loop import IngestReport
    from bucketlog.log_reader.tables.maintenance.table_maintenance import (
        MaintenanceReport,
        TableMaintenance,
    )
    from bucketlog.log_reader.tables.table_target import TableName

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Topics as Iceberg tables, straight from the bucket.",
)
PROCESSES_MAX = 1_024
MIB = 1024 * 1024
ORPHAN_AGE_LEAST = timedelta(days=1)
DEFAULT_PORT = 8181
"""The usual port of Iceberg REST catalogs."""

Topics = Annotated[str, typer.Option(metavar="LIST", help="Topics, comma-separated.")]
Table = Annotated[
    str, typer.Option("--into", metavar="TABLE", help="Table, as catalog.database.table.")
]
Catalog = Annotated[
    list[str] | None,
    typer.Option(
        "--catalog-property",
        metavar="NAME=VALUE",
        help="Property of the catalog for PyIceberg, such as uri=…; repeatable. "
        "Default: those of PyIceberg's configuration.",
    ),
]
BadValues = Annotated[
    Literal["dead-letter", "fail", "null"],
    typer.Option(
        "--bad-records",
        help="Values that do not fit: put them into a separate table, end the run, or make "
        "fields null.",
    ),
]
DeadLetters = Annotated[
    str | None,
    typer.Option(
        metavar="TABLE",
        help="Table for dead letters, as database.table; default: TABLE_dead_letters.",
    ),
]
Processes = Annotated[
    int | None,
    typer.Option(
        min=1, max=PROCESSES_MAX, help="Processes that run tasks; default: the number of cores."
    ),
]
BatchOffsets = Annotated[
    int | None,
    typer.Option(
        "--max-batch-offsets", min=1, help="Offsets of all partitions in one commit, at most."
    ),
]
AllowLoss = Annotated[
    bool,
    typer.Option(
        "--allow-data-loss",
        help="Continue where retention has deleted records that were not ingested.",
    ),
]
Follow = Annotated[
    bool, typer.Option("--follow", "-f", help="Run again and again, until a signal.")
]
Every = Annotated[
    str, typer.Option(metavar="TIME", help="Time between two commits with --follow, such as 10s.")
]
MaintainEvery = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="With --follow: maintain the table at this interval, such as 1h; default: never.",
    ),
]
CatalogName = Annotated[
    str, typer.Argument(metavar="CATALOG", help="Name of the catalog for PyIceberg.")
]
Host = Annotated[
    str, typer.Option(help="Address to listen on. There is no login, so prefer a local address.")
]
Port = Annotated[int, typer.Option(min=0, max=65_535, help="Port to listen on; 0: any free port.")]
AllowedHosts = Annotated[
    list[str] | None,
    typer.Option(
        "--allowed-host",
        metavar="NAME",
        help="Host name that clients may use, such as *.example.com; '*': any. Repeatable.",
    ),
]
SmallFileBytes = Annotated[
    int, typer.Option(min=1, help="Data files with fewer bytes are rewritten as larger files.")
]
SnapshotAge = Annotated[
    str, typer.Option(metavar="TIME", help="Age after which snapshots expire, such as 7d.")
]
OrphanAge = Annotated[
    str,
    typer.Option(
        metavar="TIME", help="Age after which orphan files are deleted, such as 3d; at least 1d."
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the changes, but do not make them.")]
SourceOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        metavar="NAME=VALUE",
        help="Option of the source, such as startingTimestamp=… or s3.endpoint_url=…; repeatable.",
    ),
]


@app.command("run")
@with_shape
def run(
    rows: ShapeFlags,
    bucket: BucketUrl,
    topics: Topics,
    into: Table,
    catalog_property: Catalog = None,
    bad_records: BadValues = "dead-letter",
    dead_letters: DeadLetters = None,
    processes: Processes = None,
    max_batch_offsets: BatchOffsets = None,
    allow_data_loss: AllowLoss = False,
    follow: Follow = False,
    every: Every = "10s",
    maintain_every: MaintainEvery = None,
    option: SourceOptions = None,
    output: OutputFormat = Output.TABLE,
) -> None:
    """Ingest topics into an Iceberg table, each record exactly once.

    A run begins where the last commit ended, and ends where the log ended when the run began."""
    check_installed("replay", extra="iceberg")
    check_installed("iceberg")
    from bucketlog.ingesting.local_ingest import LocalIngest, RepeatedUpkeep, ShapedTarget
    from bucketlog.ingesting.task_processes import TaskProcesses
    from bucketlog.log_reader.tables.catalog import open_catalog
    from bucketlog.log_reader.tables.ingest_loop import MAX_BATCH_LOG_OFFSETS
    from bucketlog.log_reader.tables.ingested_log import IngestedLog
    from bucketlog.log_reader.tables.maintenance.table_maintenance import MaintenanceRules
    from bucketlog.log_reader.tables.table_target import TableName, TableTarget

    every_s = parse_duration_ms(every) / 1000
    name = TableName.parse(into, dead_letters)
    properties = pairs("--catalog-property", catalog_property or [])
    names = [topic.strip() for topic in topics.split(",") if topic.strip()]
    shapes = rows.shapes(names, bad_records)
    upkeep = None
    if maintain_every is not None and not follow:
        raise ConfigurationError(
            "--maintain-every is for --follow", remedy="add --follow, or run `table maintain`"
        )
    if maintain_every is not None:
        maintenance = _maintenance(name, properties)
        upkeep = RepeatedUpkeep(
            parse_duration_ms(maintain_every) / 1000,
            lambda: _show_maintenance(maintenance.run(MaintenanceRules()), output, dry_run=False),
        )
    log = IngestedLog(bucket, names, pairs("--option", option or []))
    with closing(TaskProcesses(processes or os.cpu_count() or 1)) as running:
        target = TableTarget(
            name,
            lambda: open_catalog(name.catalog, properties),
            running.run,
            new_id=lambda: uuid4().hex,
        )
        ingest = LocalIngest(
            log,
            ShapedTarget(target, shapes),
            running.processes,
            max_batch_offsets or MAX_BATCH_LOG_OFFSETS,
            fail_on_data_loss=not allow_data_loss,
        )
        with sigterm_interrupts():
            if follow:
                _follow(ingest, every_s, output, upkeep)
            else:
                _show(ingest.run(), output)


@app.command("reprocess")
@with_shape
def reprocess(
    rows: ShapeFlags,
    into: Table,
    catalog_property: Catalog = None,
    dead_letters: DeadLetters = None,
    output: OutputFormat = Output.TABLE,
) -> None:
    """Convert the dead letters of a table again, with another schema or other rules.

    Each dead letter that now fits becomes one row of the table. The others stay dead letters."""
    check_installed("replay", extra="iceberg")
    check_installed("iceberg")
    from bucketlog.log_reader.tables.catalog import open_catalog
    from bucketlog.log_reader.tables.reprocessing import Reprocessor
    from bucketlog.log_reader.tables.table_target import TableName

    name = TableName.parse(into, dead_letters)
    properties = pairs("--catalog-property", catalog_property or [])
    shapes = rows.shapes((), "dead-letter")
    reprocessor = Reprocessor(
        name,
        lambda: open_catalog(name.catalog, properties),
        lambda: uuid4().hex,
        Random(),
    )
    with sigterm_interrupts():
        report = reprocessor.run(shapes())
    if output is not Output.TABLE:
        say_json(report._asdict())
        return
    left = counted(report.left, "dead letter")
    say(f"{report.table}: {counted(report.rows, 'row')} from {report.dead_letters}, {left} left")


@app.command("maintain")
def maintain(
    into: Table,
    catalog_property: Catalog = None,
    dead_letters: DeadLetters = None,
    small_file_bytes: SmallFileBytes = 32 * MIB,
    snapshot_age: SnapshotAge = "7d",
    orphan_age: OrphanAge = "3d",
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
    )
    if rules.orphan_age < ORPHAN_AGE_LEAST:
        raise ConfigurationError(
            f"--orphan-age {orphan_age} is less than a day",
            remedy="give at least 1d: a running ingest may still commit younger files",
        )
    with sigterm_interrupts():
        reports = _maintenance(name, properties).run(rules, dry_run=dry_run)
    _show_maintenance(reports, output, dry_run=dry_run)


@app.command("serve")
def serve(
    catalog: CatalogName,
    catalog_property: Catalog = None,
    host: Host = "127.0.0.1",
    port: Port = DEFAULT_PORT,
    allowed_host: AllowedHosts = None,
) -> None:
    """Serve a catalog to other engines, as a read-only Iceberg REST catalog.

    Readers need their own access to the files of the tables."""
    check_installed("iceberg")
    check_installed("console", extra="console,iceberg")
    from bucketlog.ingesting.catalog_server import serve_catalog
    from bucketlog.log_reader.tables.catalog import open_catalog
    from bucketlog.log_reader.tables.catalog_failure import catalog_failures

    if not is_local(host):
        note(f"there is no login: everyone who reaches {host}:{port} can list these tables")
    with catalog_failures(catalog):
        opened = open_catalog(catalog, pairs("--catalog-property", catalog_property or []))
    serve_catalog(
        opened,
        host=host,
        port=port,
        allowed_hosts=allowed_host or (),
        on_ready=lambda address: say(f"catalog at {address} (Ctrl-C stops it)"),
    )


def _follow(
    ingest: "LocalIngest", every_s: float, output: Output, upkeep: "RepeatedUpkeep | None"
) -> None:
    def failed(error: BucketlogError | OSError) -> None:
        note(f"{error}; the next run tries again")

    for report in ingest.follow(every_s, threading.Event(), failed=failed, upkeep=upkeep):
        if report.batches:
            _show(report, output)


def _show(report: "IngestReport", output: Output) -> None:
    if output is not Output.TABLE:
        say_json({**asdict(report), "gaps": [gap._asdict() for gap in report.gaps]})
        return
    letters = counted(report.dead_letters, "dead letter")
    say(
        f"{report.target}: {counted(report.records, 'row')} and {letters} in "
        f"{counted(report.batches, 'batch')}, {report.seconds:.1f} s"
    )


def _maintenance(name: "TableName", properties: Mapping[str, str]) -> "TableMaintenance":
    from bucketlog.log_reader.tables.catalog import open_catalog
    from bucketlog.log_reader.tables.maintenance.table_maintenance import TableMaintenance

    return TableMaintenance(
        name, lambda: open_catalog(name.catalog, properties), Random(), lambda: datetime.now(UTC)
    )


def _show_maintenance(
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


def pairs(flag: str, given: list[str]) -> dict[str, str]:
    """The values of a repeatable `flag`, by name. Raises `ConfigurationError`, without the value,
    which may be a secret."""
    found: dict[str, str] = {}
    for item in given:
        name, separator, value = item.partition("=")
        if not separator:
            raise ConfigurationError(f"{flag}: NAME=VALUE is expected", remedy="add a name and '='")
        if name in found:
            raise ConfigurationError(f"{flag} {name} is given twice", remedy="give it once")
        found[name] = value
    return found
