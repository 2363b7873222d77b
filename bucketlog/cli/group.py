"""`bucketlog group`: list, describe, reset, delete."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from bucketlog.cli.options import DEFAULT_BOOTSTRAP, Bootstrap, OutputFormat, position
from bucketlog.cli.output import Output, confirm, counted, note, print_rows
from bucketlog.errors import ConfigurationError

if TYPE_CHECKING:
    from bucketlog.client.groups import GroupDetails

app = typer.Typer(
    help="List, describe, reset and delete consumer groups.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
Name = Annotated[str, typer.Argument(metavar="GROUP")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
POSITION_COLUMNS = ("topic", "partition", "committed", "latest", "lag", "client")
MEMBER_COLUMNS = ("client", "host", "instance", "partitions", "member")


@app.command("list")
def list_groups(
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP, output: OutputFormat = Output.TABLE
) -> None:
    """List all groups."""
    from bucketlog.client.log import connect

    with connect(bootstrap) as log:
        rows = [{"group": info.group, "state": info.state} for info in log.groups.list()]
    print_rows(rows, ("group", "state"), output)


@app.command("describe")
def describe(
    name: Name, bootstrap: Bootstrap = DEFAULT_BOOTSTRAP, output: OutputFormat = Output.TABLE
) -> None:
    """Show a group's members, committed offsets and lag."""
    from bucketlog.client.log import connect

    with connect(bootstrap) as log:
        details = log.groups.describe(name)
    positions, members = _positions(details), _members(details)
    if output is not Output.TABLE:
        whole = {
            "group": details.group,
            "state": details.state,
            "assignor": details.assignor,
            "coordinator": details.coordinator,
            "lag": details.lag,
            "partitions": positions,
            "members": members,
        }
        print_rows([whole], (), Output.JSONL)
        return
    kind = f", {details.assignor}" if details.assignor else ""
    print(
        f"{details.group}: {details.state}{kind}, {counted(len(members), 'member')}, "
        f"lag {details.lag:,}, coordinator {details.coordinator}"
    )
    if positions:
        print()
        print_rows(positions, POSITION_COLUMNS, output)
    if members:
        print()
        shown = [{**row, "partitions": _in_short(row["partitions"])} for row in members]
        print_rows(shown, MEMBER_COLUMNS, output)


def _positions(details: "GroupDetails") -> list[dict[str, Any]]:
    clients = {member.member_id: member.client_id for member in details.members}
    return [
        {
            "topic": row.topic,
            "partition": row.partition,
            "committed": row.committed,
            "latest": row.latest,
            "lag": row.lag,
            "client": clients.get(row.member_id or ""),
            "member": row.member_id,
        }
        for row in details.positions
    ]


def _members(details: "GroupDetails") -> list[dict[str, Any]]:
    return [
        {
            "client": member.client_id,
            "host": member.host,
            "instance": member.instance_id,
            "partitions": [list(spot) for spot in member.partitions],
            "member": member.member_id,
        }
        for member in details.members
    ]


def _in_short(spots: list[list[Any]]) -> str:
    """As in `orders[0,2] returns[1]`."""
    by_topic: dict[str, list[str]] = {}
    for topic, partition in spots:
        by_topic.setdefault(topic, []).append(str(partition))
    return " ".join(f"{topic}[{','.join(parts)}]" for topic, parts in by_topic.items()) or "none"


@app.command("reset")
def reset(
    name: Name,
    to: Annotated[
        str | None,
        typer.Option("--to", metavar="WHERE", help="start, end, an offset, or a time (ISO 8601)."),
    ] = None,
    shift: Annotated[
        int | None, typer.Option("--shift", metavar="N", help="By so many; negative: back.")
    ] = None,
    topic: Annotated[
        str | None, typer.Option("--topic", "-t", help="Default: all it has offsets in.")
    ] = None,
    partition: Annotated[
        list[int] | None, typer.Option("--partition", "-p", min=0, help="Default: all.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be done.")] = False,
    yes: Yes = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    output: OutputFormat = Output.TABLE,
) -> None:
    """Move a group's committed offsets; it must have no members then."""
    if (to is None) == (shift is None):
        raise ConfigurationError("a reset needs a target", remedy="give either --to or --shift")
    if partition and topic is None:
        raise ConfigurationError("--partition of which topic?", remedy="add --topic")
    where = None if to is None else position(to, "--to")
    from bucketlog.client.log import connect

    with connect(bootstrap) as log:
        target: dict[str, Any] = {"to": where, "shift": shift, "partitions": partition}
        plan = log.groups.reset(name, topic, **target, dry_run=True)
        rows = [
            {
                "topic": row.topic,
                "partition": row.partition,
                "before": row.before,
                "after": row.after,
            }
            for row in plan
        ]
        if not dry_run:
            if not yes:
                confirm(f"Reset {counted(len(rows), 'offset')} of group {name}?")
            for at in dict.fromkeys(row.topic for row in plan):
                planned = {row.partition: row.after for row in plan if row.topic == at}
                log.groups.reset(name, at, to=planned)
    print_rows(rows, ("topic", "partition", "before", "after"), output)
    note(f"group {name}: {'would be reset' if dry_run else 'is reset'}")


@app.command("delete")
def delete(name: Name, yes: Yes = False, bootstrap: Bootstrap = DEFAULT_BOOTSTRAP) -> None:
    """Delete a group without members and all its committed offsets."""
    from bucketlog.client.log import connect

    with connect(bootstrap) as log:
        if not yes:
            confirm(f"Delete group {name} and its committed offsets?")
        log.groups.delete(name)
    note(f"group {name} is deleted")
