"""`bucketlog topic`: create, list, describe, alter, add-partitions, trim, delete."""

from typing import Annotated

import typer

from bucketlog.cli.options import (
    DEFAULT_BOOTSTRAP,
    Bootstrap,
    DryRun,
    OutputFormat,
    Partitions,
    Yes,
    assignment,
    position,
)
from bucketlog.cli.security import connected, secured
from bucketlog.cli.topic_names import known_config, known_topic
from bucketlog.cli.topic_trim import TrimRow, trim_plan
from bucketlog.cli.watching import DEFAULT_INTERVAL_S, IntervalS, Watch, looks
from bucketlog.log_format.errors import ConfigurationError
from bucketlog.terminal import Output, confirm, counted, note, print_rows

app = typer.Typer(
    help="Create, list, describe, change, trim and delete topics.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
Name = Annotated[str, typer.Argument(metavar="TOPIC")]
Config = Annotated[
    list[str] | None,
    typer.Option("--config", "-c", metavar="NAME=VALUE", help="Topic setting; repeatable."),
]
GROUPS_MAX = 100
RETENTION_MS = "retention.ms"


@app.command("create")
@secured
def create(
    name: Name,
    partitions: Annotated[
        int | None,
        typer.Option(
            "--partitions", "-p", min=1, help="Number of partitions; default: the broker's."
        ),
    ] = None,
    config: Config = None,
    if_not_exists: Annotated[
        bool,
        typer.Option("--if-not-exists", help="Succeed if the topic exists, and do not change it."),
    ] = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Create a topic."""

    configs = dict(assignment(text, "--config") for text in config or ())
    with connected(bootstrap) as log, known_topic(log, name, is_wanted=True):
        create_it = log.topics.ensure if if_not_exists else log.topics.create
        made = create_it(name, partitions=partitions, configs=configs)
    note(f"topic {made.name}: {counted(made.partitions, 'partition')}")


@app.command("list")
@secured
def list_topics(
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP, output: OutputFormat = Output.TABLE
) -> None:
    """List all topics."""
    with connected(bootstrap) as log:
        rows = [{"topic": info.name, "partitions": info.partitions} for info in log.topics.list()]
    print_rows(rows, ("topic", "partitions"), output)


@app.command("describe")
@secured
def describe(
    name: Name,
    groups_max: Annotated[
        int,
        typer.Option(
            "--groups-max", metavar="N", min=0, help="Limit of groups whose offsets are read."
        ),
    ] = GROUPS_MAX,
    all_configs: Annotated[
        bool, typer.Option("--all-configs", help="Also show configs that have their default.")
    ] = False,
    watch: Watch = False,
    interval_s: IntervalS = DEFAULT_INTERVAL_S,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    output: OutputFormat = Output.TABLE,
) -> None:
    """Show a topic's partitions, bytes, rates, settings and groups.

    The rate counts the records of the last minute by their timestamps."""
    from bucketlog.cli.topic_description import figures_of, print_figures

    with connected(bootstrap) as log, known_topic(log, name, is_wanted=False):
        for _ in looks(output, watch=watch, interval_s=interval_s):
            figures = figures_of(log, name, groups_max=groups_max)
            print_figures(figures, output, all_configs=all_configs)


@app.command("alter")
@secured
def alter(
    name: Name,
    config: Config = None,
    retention: Annotated[
        str | None,
        typer.Option(
            "--retention",
            metavar="DURATION",
            help="Time for which records are kept: 7d, 12h, or forever.",
        ),
    ] = None,
    unset: Annotated[
        list[str] | None,
        typer.Option("--unset", metavar="NAME", help="Config that gets the default; repeatable."),
    ] = None,
    dry_run: DryRun = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    output: OutputFormat = Output.TABLE,
) -> None:
    """Change a topic's configs, and show the values before and after."""
    configs = dict(assignment(text, "--config") for text in config or ())
    if not configs and retention is None and not unset:
        raise ConfigurationError(
            "nothing to change", remedy="give --config NAME=VALUE, --retention or --unset NAME"
        )
    with connected(bootstrap) as log, known_topic(log, name, is_wanted=False):
        before = log.topics.describe(name).configs
        with known_config(before):
            log.topics.configure(
                name, configs, retention=retention, unset=unset or (), dry_run=dry_run
            )
        after = dict(before) if dry_run else log.topics.describe(name).configs
    if dry_run:
        after |= configs | ({} if retention is None else {RETENTION_MS: _retention_text(retention)})
        after |= dict.fromkeys(unset or (), "(default)")
    rows = [
        {"config": key, "before": before.get(key), "after": value}
        for key, value in sorted(after.items())
        if before.get(key) != value
    ]
    print_rows(rows, ("config", "before", "after"), output)
    verb = "would change" if dry_run else "changed"
    note(f"topic {name}: {counted(len(rows), 'config')} {verb}")


@app.command("add-partitions")
@secured
def add_partitions(
    name: Name,
    total: Annotated[
        int, typer.Argument(metavar="TOTAL", min=1, help="Number of partitions afterwards.")
    ],
    dry_run: DryRun = False,
    yes: Yes = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Raise a topic's number of partitions.

    Later records of a key may go to another partition. The number cannot be lowered again."""
    with connected(bootstrap) as log, known_topic(log, name, is_wanted=False):
        has = log.topics.partition_count(name)
        if total <= has:
            raise ConfigurationError(
                f"topic {name!r} has {counted(has, 'partition')}",
                remedy=f"give a total above {has}; a topic's partitions are never removed",
            )
        log.topics.add_partitions(name, total, dry_run=True)
        if not dry_run:
            if not yes:
                confirm(
                    f"Raise topic {name} from {has} to {counted(total, 'partition')}? "
                    "Keys may move to other partitions."
                )
            log.topics.add_partitions(name, total)
    note(f"topic {name} {'would have' if dry_run else 'has'} {counted(total, 'partition')}")


@app.command("trim")
@secured
def trim(
    name: Name,
    before: Annotated[
        str,
        typer.Option(
            "--before",
            envvar="BUCKETLOG_TOPIC_TRIM_BEFORE",
            metavar="WHERE",
            help="An offset, a time (ISO 8601), or end.",
        ),
    ],
    partition: Partitions = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    output: OutputFormat = Output.TABLE,
) -> None:
    """Delete the records of a topic before an offset or a time."""
    where = position(before, "--before")
    with connected(bootstrap) as log, known_topic(log, name, is_wanted=False):
        plan = trim_plan(log, name, where, partition)
        count = sum(row.records for row in plan)
        if not dry_run and count:
            if not yes:
                confirm(f"Delete {counted(count, 'record')} of topic {name}?")
            log.topics.trim(name, {row.partition: row.after for row in plan if row.records})
    print_rows([row._asdict() for row in plan], TrimRow._fields, output)
    verb = "would be" if dry_run else "are"
    note(f"topic {name}: {counted(count, 'record')} {verb} deleted")


@app.command("delete")
@secured
def delete(
    name: Name,
    yes: Yes = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Delete a topic and all its records."""
    with connected(bootstrap) as log, known_topic(log, name, is_wanted=False):
        if not yes:
            log.topics.partition_count(name)
            confirm(f"Delete topic {name} and all its records?")
        log.topics.delete(name)
    note(f"topic {name} is deleted")


def _retention_text(retention: str) -> str:
    from bucketlog.client.retention import retention_ms

    return str(retention_ms(retention))
