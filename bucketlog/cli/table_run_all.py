"""`bucketlog table run-all`: ingest into many tables in one process, from a YAML file."""

import functools
import os
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Annotated
from uuid import uuid4

import typer

from bucketlog.cli.options import OutputFormat
from bucketlog.cli.registry_flags import AUTH_VARIABLE, CA_FILE_VARIABLE, URL_VARIABLE
from bucketlog.cli.signals import sigterm_interrupts
from bucketlog.cli.table_flags import Follow, MetricsHost, MetricsPort, Processes, shown_metrics
from bucketlog.cli.table_maintain import show_maintenance
from bucketlog.cli.table_run import CHANGES_BATCH_OFFSETS, change_rule, show_report
from bucketlog.log_format.errors import BucketlogError, ConfigurationError
from bucketlog.log_format.extras import check_installed
from bucketlog.terminal import EXIT_FAILED, EXIT_OK, Output, counted, note, say

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog

    from bucketlog.cli.tables_file import MaintainSettings, ReadTables, WantedTable
    from bucketlog.ingesting.local_ingest import RepeatedUpkeep
    from bucketlog.ingesting.table_turns import TableFailure, TableTurns
    from bucketlog.ingesting.task_processes import TaskProcesses
    from bucketlog.log_reader.tables.ingested_log import LogConnection
    from bucketlog.log_reader.tables.table_target import TableName

Check = Annotated[
    bool, typer.Option("--check", help="Check the file only. Neither bucket nor catalog is read.")
]


def run_all(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="YAML file; -: standard input.")],
    check: Check = False,
    processes: Processes = None,
    follow: Follow = False,
    metrics_port: MetricsPort = None,
    metrics_host: MetricsHost = "127.0.0.1",
    output: OutputFormat = Output.TABLE,
) -> int:
    """Ingest into the Iceberg tables that a YAML file describes.

    The tables take turns, batch by batch. A table that fails does not stop the others. With
    --follow, the table is tried again. Without --follow, the exit code is then 1."""
    check_installed("replay", extra="iceberg")
    check_installed("iceberg")
    from bucketlog.ingesting.table_turns import TableFleet
    from bucketlog.ingesting.task_processes import TaskProcesses

    read = _read(file)
    with closing(TaskProcesses(processes or os.cpu_count() or 1)) as running:
        tables = _tables(read, running, output, with_upkeep=follow)
        if check:
            say(f"{file}: {counted(len(tables), 'table')}, no errors")
            return EXIT_OK
        failed: dict[str, None] = {}

        def show_failure(failure: "TableFailure") -> None:
            failed[failure.table] = None
            note(read.hidden(_in_a_line(failure)))

        fleet = TableFleet(tables, failed=show_failure, hidden=read.hidden)
        figures = [table.figures for table in tables.values()]
        with sigterm_interrupts(), shown_metrics(figures, metrics_host, metrics_port):
            if follow:
                for report in fleet.follow(threading.Event()):
                    if report.batches:
                        show_report(report, output)
                return EXIT_OK
            for report in fleet.run():
                show_report(report, output)
    if failed:
        note(f"{len(failed)} of {counted(len(tables), 'table')} failed: {', '.join(failed)}")
        return EXIT_FAILED
    return EXIT_OK


def _read(file: Path) -> "ReadTables":
    from bucketlog.cli.tables_file import read_tables
    from bucketlog.cli.yaml_document import FILE_BYTES_MAX

    if str(file) == "-":
        return read_tables("stdin", sys.stdin.buffer.read(FILE_BYTES_MAX + 1), os.environ)
    with file.open("rb") as opened:
        return read_tables(str(file), opened.read(FILE_BYTES_MAX + 1), os.environ)


def _tables(
    read: "ReadTables", running: "TaskProcesses", output: Output, *, with_upkeep: bool
) -> "Mapping[str, TableTurns]":
    """The tables by name. They share the processes, the catalog and the reader of the log."""
    from bucketlog.log_reader.tables.catalog import open_catalog

    catalog = read.wanted.catalog
    opened = functools.cache(lambda: open_catalog(catalog.name, catalog.properties))
    made: dict[str, TableTurns] = {}
    connection: LogConnection | None = None
    for at, table in enumerate(read.wanted.tables):
        try:
            turns = _table(read, table, running, opened, connection)
        except ConfigurationError as error:
            raise read.error(at, error) from None  # the cause may show a secret
        connection = turns.ingest.log.connection
        name = turns.ingest.target.name
        if with_upkeep and table.maintain is not None:
            turns.upkeep = _upkeep(_name(read, table), opened, table.maintain, output)
        made[name] = turns
    return made


def _name(read: "ReadTables", table: "WantedTable") -> "TableName":
    from bucketlog.log_reader.tables.table_target import TableName

    return TableName.parse(f"{read.wanted.catalog.name}.{table.into}", table.dead_letters)


def _table(
    read: "ReadTables",
    table: "WantedTable",
    running: "TaskProcesses",
    opened: "Callable[[], Catalog]",
    connection: "LogConnection | None",
) -> "TableTurns":
    from bucketlog.ingesting.ingest_figures import TableFigures
    from bucketlog.ingesting.local_ingest import LocalIngest, ShapedTarget
    from bucketlog.ingesting.table_turns import TableTurns
    from bucketlog.log_reader.tables.changes.merge import ChangeMerge
    from bucketlog.log_reader.tables.ingest_loop import MAX_BATCH_LOG_OFFSETS
    from bucketlog.log_reader.tables.ingested_log import IngestedLog
    from bucketlog.log_reader.tables.partitioning import PartitionTerms
    from bucketlog.log_reader.tables.table_target import TableTarget

    registry = {
        "registry_url": os.environ.get(URL_VARIABLE),
        "registry_auth": os.environ.get(AUTH_VARIABLE),
        "registry_ca_file": os.environ.get(CA_FILE_VARIABLE),
    }
    name = _name(read, table)
    rule = change_rule(table.changes, table.key)
    most = CHANGES_BATCH_OFFSETS if rule else MAX_BATCH_LOG_OFFSETS
    shapes = table.shape_flags(registry).shapes(table.topics, table.bad_records, rule)
    partitions = PartitionTerms.parse(table.partition_by) if table.partition_by else None
    if partitions is not None and table.value_format == "json":
        partitions.check(shapes().columns)  # a registry is not asked here
    target = TableTarget(
        name,
        opened,
        running.run,
        new_id=lambda: uuid4().hex,
        merge=ChangeMerge,
        partition_by=partitions,
    )
    ingest = LocalIngest(
        IngestedLog(
            read.wanted.bucket, table.topics, {**read.wanted.options, **table.options}, connection
        ),
        ShapedTarget(target, shapes),
        running.processes,
        table.max_batch_offsets or most,
        fail_on_data_loss=not table.allow_data_loss,
    )
    return TableTurns(ingest, TableFigures(str(name)), table.every)


def _upkeep(
    name: "TableName", opened: "Callable[[], Catalog]", settings: "MaintainSettings", output: Output
) -> "RepeatedUpkeep":
    from bucketlog.cli.tables_file import ages
    from bucketlog.ingesting.local_ingest import RepeatedUpkeep
    from bucketlog.log_reader.tables.maintenance.small_files import RewriteRule
    from bucketlog.log_reader.tables.maintenance.table_maintenance import (
        MaintenanceRules,
        TableMaintenance,
    )

    rules = MaintenanceRules(
        RewriteRule(small_bytes=settings.small_file_bytes),
        *ages(settings),
        snapshots_max=settings.snapshots_max,
    )
    maintenance = TableMaintenance(name, opened, Random(), lambda: datetime.now(UTC))
    return RepeatedUpkeep(
        settings.every, lambda: show_maintenance(maintenance.run(rules), output, dry_run=False)
    )


def _in_a_line(failure: "TableFailure") -> str:
    error = failure.error
    text = str(error)
    if not isinstance(error, BucketlogError | OSError):
        text = f"{type(error).__name__}: {text}"
    retry = "" if failure.retry_s is None else f"; tries again in {failure.retry_s:.0f} s"
    return f"{failure.table}: {text}{retry}"
