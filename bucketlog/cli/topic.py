"""`bucketlog topic`: create, list, describe, delete."""

from typing import Annotated

import typer

from bucketlog.cli.options import DEFAULT_BOOTSTRAP, Bootstrap, OutputFormat, assignment
from bucketlog.cli.security import connected, secured
from bucketlog.cli.topic_names import known_topic
from bucketlog.terminal import Output, confirm, counted, note, print_rows, say

app = typer.Typer(
    help="Create, list, describe and delete topics.", no_args_is_help=True, rich_markup_mode=None
)
Name = Annotated[str, typer.Argument(metavar="TOPIC")]


@app.command("create")
@secured
def create(
    name: Name,
    partitions: Annotated[
        int | None, typer.Option("--partitions", "-p", min=1, help="Default: the broker's.")
    ] = None,
    config: Annotated[
        list[str] | None, typer.Option("--config", "-c", metavar="NAME=VALUE")
    ] = None,
    if_not_exists: Annotated[
        bool, typer.Option("--if-not-exists", help="One that exists is left as it is: no error.")
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
    name: Name, bootstrap: Bootstrap = DEFAULT_BOOTSTRAP, output: OutputFormat = Output.TABLE
) -> None:
    """Show a topic's partitions, offsets and configs."""
    with connected(bootstrap) as log, known_topic(log, name, is_wanted=False):
        details = log.topics.describe(name)
    rows = [
        {
            "partition": part.partition,
            "earliest": part.earliest,
            "latest": part.latest,
            "records": part.latest - part.earliest,
        }
        for part in details.partitions
    ]
    if output is Output.TABLE:
        print_rows(rows, ("partition", "earliest", "latest", "records"), output)
        configs = [
            {
                "config": key,
                "value": value,
                "set": "topic" if key in details.overrides else "default",
            }
            for key, value in sorted(details.configs.items())
        ]
        if configs:
            say()
            print_rows(configs, ("config", "value", "set"), output)
        return
    whole = {"topic": details.name, "partitions": rows, "configs": details.configs}
    print_rows([whole], (), Output.JSONL)


@app.command("delete")
@secured
def delete(
    name: Name,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Delete a topic and all its records."""
    with connected(bootstrap) as log, known_topic(log, name, is_wanted=False):
        if not yes:
            log.topics.partition_count(name)
            confirm(f"Delete topic {name} and all its records?")
        log.topics.delete(name)
    note(f"topic {name} is deleted")
