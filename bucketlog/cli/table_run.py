"""`bucketlog table run`: ingest topics into an Iceberg table, once or continuously."""

import os
import threading
from collections.abc import Mapping
from contextlib import closing
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Literal
from uuid import uuid4

import typer

from bucketlog.cli.options import BucketUrl, OutputFormat
from bucketlog.cli.signals import sigterm_interrupts
from bucketlog.cli.table_flags import (
    Catalog,
    DeadLetters,
    Follow,
    MetricsHost,
    MetricsPort,
    PartitionBy,
    Processes,
    Table,
    pairs,
    shown_metrics,
)
from bucketlog.cli.table_maintain import maintenance_of, show_maintenance
from bucketlog.cli.table_shape import ShapeFlags, with_shape
from bucketlog.log_format.durations import parse_duration_ms
from bucketlog.log_format.errors import BucketlogError, ConfigurationError
from bucketlog.log_format.extras import check_installed
from bucketlog.terminal import Output, counted, note, say, say_json

if TYPE_CHECKING:
    from bucketlog.ingesting.ingest_figures import TableFigures
    from bucketlog.ingesting.local_ingest import LocalIngest, RepeatedUpkeep
    from bucketlog.ingesting.task_processes import TaskProcesses
    from bucketlog.log_reader.tables.change_rule import ChangeRule
    from bucketlog.log_reader.tables.ingest_loop import IngestReport
    from bucketlog.log_reader.tables.partitioning import PartitionTerms
    from bucketlog.log_reader.tables.table_target import TableName, TableTarget

CHANGES_BATCH_OFFSETS = 1_000_000
"""The default of --max-batch-offsets for a table of changes. The keys of a batch are in memory."""

Topics = Annotated[str, typer.Option(metavar="LIST", help="Topics, comma-separated.")]
BadValues = Annotated[
    Literal["dead-letter", "fail", "null"],
    typer.Option(
        "--bad-records",
        help="Values that do not fit: put them into a separate table, end the run, or make "
        "fields null.",
    ),
]
BatchOffsets = Annotated[
    int | None,
    typer.Option(
        "--max-batch-offsets",
        min=1,
        help="Offsets of all partitions in one commit, at most; default: 10000000, or 1000000 with "
        "--changes.",
    ),
]
AllowLoss = Annotated[
    bool,
    typer.Option(
        "--allow-data-loss",
        help="Continue where retention has deleted records that were not ingested.",
    ),
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
Changes = Annotated[
    Literal["append", "upsert", "debezium"],
    typer.Option(
        help="How records change the table: append a row, replace the row of a key, or apply an "
        "event of Debezium."
    ),
]
Key = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FIELD",
        help="With --changes: field of a row's key; repeatable. Default: the record's key.",
    ),
]
BatchKeyBytes = Annotated[
    int,
    typer.Option(
        "--max-batch-key-bytes",
        min=1,
        help="With --changes: maximum number of bytes of the keys of one commit.",
    ),
]
SourceOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        metavar="NAME=VALUE",
        help="Option of the source, such as startingTimestamp=… or s3.endpoint_url=…; repeatable.",
    ),
]


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
    changes: Changes = "append",
    key: Key = None,
    max_batch_key_bytes: BatchKeyBytes = 512 * 1024 * 1024,
    partition_by: PartitionBy = None,
    metrics_port: MetricsPort = None,
    metrics_host: MetricsHost = "127.0.0.1",
    option: SourceOptions = None,
    output: OutputFormat = Output.TABLE,
) -> None:
    """Ingest topics into an Iceberg table, each record exactly once.

    A run begins where the last commit ended, and ends where the log ended when the run began. With
    --changes, the table has one row for each key: the newest one."""
    check_installed("replay", extra="iceberg")
    check_installed("iceberg")
    from bucketlog.ingesting.ingest_figures import TableFigures
    from bucketlog.ingesting.local_ingest import LocalIngest, ShapedTarget
    from bucketlog.ingesting.task_processes import TaskProcesses
    from bucketlog.log_reader.tables.ingest_loop import MAX_BATCH_LOG_OFFSETS
    from bucketlog.log_reader.tables.ingested_log import IngestedLog
    from bucketlog.log_reader.tables.partitioning import PartitionTerms
    from bucketlog.log_reader.tables.table_target import TableName

    every_s = parse_duration_ms(every) / 1000
    name = TableName.parse(into, dead_letters)
    properties = pairs("--catalog-property", catalog_property or [])
    names = [topic.strip() for topic in topics.split(",") if topic.strip()]
    rule = change_rule(changes, key or [])
    shapes = rows.shapes(names, bad_records, rule)
    partitions = None if partition_by is None else PartitionTerms.parse(partition_by)
    upkeep = _upkeep(name, properties, maintain_every, output, follow=follow)
    log = IngestedLog(bucket, names, pairs("--option", option or []))
    with closing(TaskProcesses(processes or os.cpu_count() or 1)) as running:
        target = _target(name, properties, running, partitions, max_batch_key_bytes)
        ingest = LocalIngest(
            log,
            ShapedTarget(target, shapes),
            running.processes,
            max_batch_offsets or (CHANGES_BATCH_OFFSETS if rule else MAX_BATCH_LOG_OFFSETS),
            fail_on_data_loss=not allow_data_loss,
        )
        figures = TableFigures(str(name))
        with sigterm_interrupts(), shown_metrics([figures], metrics_host, metrics_port):
            if follow:
                _follow(ingest, every_s, output, upkeep, figures)
            else:
                show_report(ingest.run(figures), output)


def _upkeep(
    name: "TableName",
    properties: Mapping[str, str],
    every: str | None,
    output: Output,
    *,
    follow: bool,
) -> "RepeatedUpkeep | None":
    from bucketlog.ingesting.local_ingest import RepeatedUpkeep
    from bucketlog.log_reader.tables.maintenance.table_maintenance import MaintenanceRules

    if every is None:
        return None
    if not follow:
        raise ConfigurationError(
            "--maintain-every is for --follow", remedy="add --follow, or run `table maintain`"
        )
    maintenance = maintenance_of(name, properties)
    return RepeatedUpkeep(
        parse_duration_ms(every) / 1000,
        lambda: show_maintenance(maintenance.run(MaintenanceRules()), output, dry_run=False),
    )


def change_rule(
    changes: Literal["append", "upsert", "debezium"], key: list[str]
) -> "ChangeRule | None":
    """Return the rule of --changes and --key, None for append. Raises `ConfigurationError`."""
    from bucketlog.log_reader.tables.change_rule import ChangeRule

    if changes != "append":
        return ChangeRule(mode=changes, key=tuple(key))
    if key:
        raise ConfigurationError(
            "--key is for tables with the current state of keys",
            remedy="add --changes upsert or --changes debezium",
        )
    return None


def _target(
    name: "TableName",
    properties: dict[str, str],
    running: "TaskProcesses",
    partitions: "PartitionTerms | None",
    key_bytes_max: int,
) -> "TableTarget":
    from bucketlog.log_reader.tables.catalog import open_catalog
    from bucketlog.log_reader.tables.changes.merge import ChangeMerge
    from bucketlog.log_reader.tables.table_target import TableTarget

    return TableTarget(
        name,
        lambda: open_catalog(name.catalog, properties),
        running.run,
        new_id=lambda: uuid4().hex,
        merge=lambda rule, staged: ChangeMerge(rule, staged, key_bytes_max),
        partition_by=partitions,
    )


def _follow(
    ingest: "LocalIngest",
    every_s: float,
    output: Output,
    upkeep: "RepeatedUpkeep | None",
    figures: "TableFigures",
) -> None:
    def failed(error: BucketlogError | OSError) -> None:
        note(f"{error}; the next run tries again")

    reports = ingest.follow(
        every_s, threading.Event(), failed=failed, upkeep=upkeep, figures=figures
    )
    for report in reports:
        if report.batches:
            show_report(report, output)


def show_report(report: "IngestReport", output: Output) -> None:
    """Print what a run has done."""
    if output is not Output.TABLE:
        say_json({**asdict(report), "gaps": [gap._asdict() for gap in report.gaps]})
        return
    letters = counted(report.dead_letters, "dead letter")
    say(
        f"{report.target}: {counted(report.records, 'row')} and {letters} in "
        f"{counted(report.batches, 'batch')}, {report.seconds:.1f} s"
    )
