"""`bucketlog group`: list, describe, reset, delete."""

import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bucketlog.cli.options import (
    DEFAULT_BOOTSTRAP,
    Bootstrap,
    DryRun,
    OutputFormat,
    Partitions,
    Yes,
    position,
)
from bucketlog.cli.security import connected, secured
from bucketlog.cli.topic_names import known_topic
from bucketlog.cli.watching import DEFAULT_INTERVAL_S, IntervalS, Watch, looks
from bucketlog.console.figures_text import duration_text
from bucketlog.log_format.errors import ConfigurationError
from bucketlog.terminal import Output, confirm, counted, note, print_rows, say

if TYPE_CHECKING:
    from bucketlog.client.groups import GroupDetails, MemberInfo
    from bucketlog.client.log import Log

app = typer.Typer(
    help="List, describe, reset and delete consumer groups.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
Name = Annotated[str, typer.Argument(metavar="GROUP")]
POSITION_COLUMNS = ("topic", "partition", "committed", "latest", "lag", "lag_time", "member")
MEMBER_COLUMNS = ("member", "client", "host", "instance", "partitions")
MEMBER_DIGITS = 8
"""Least number of characters that are shown of a member's id."""
RESET_COLUMNS = ("topic", "partition", "before", "after")


@app.command("list")
@secured
def list_groups(
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP, output: OutputFormat = Output.TABLE
) -> None:
    """List all groups."""
    with connected(bootstrap) as log:
        rows = [{"group": info.group, "state": info.state} for info in log.groups.list()]
    print_rows(rows, ("group", "state"), output)


@app.command("describe")
@secured
def describe(
    name: Name,
    watch: Watch = False,
    interval_s: IntervalS = DEFAULT_INTERVAL_S,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    output: OutputFormat = Output.TABLE,
) -> None:
    """Show a group's members, committed offsets, and lag in records and time.

    LAG TIME is the age of the first unread record, by its timestamp."""
    with connected(bootstrap) as log:
        for _ in looks(output, watch=watch, interval_s=interval_s):
            details = log.groups.describe(name)
            since_ms = log.groups.unread_since_ms(details)
            _print_group(details, _lag_times(details, since_ms), output)


def _lag_times(
    details: "GroupDetails", since_ms: Mapping[tuple[str, int], int]
) -> dict[tuple[str, int], int]:
    """Ages of the first unread records in ms, 0 if all is read; without those that are unknown."""
    now_ms = time.time_ns() // 1_000_000
    ages = {spot: max(0, now_ms - at_ms) for spot, at_ms in since_ms.items()}
    return ages | {(row.topic, row.partition): 0 for row in details.positions if row.lag == 0}


def _print_group(
    details: "GroupDetails", lag_ms: Mapping[tuple[str, int], int], output: Output
) -> None:
    short = _short_ids(details.members) if output is Output.TABLE else {}
    positions = _positions(details, short, lag_ms)
    members = _members(details, short)
    if details.lag is None:
        note("nothing is committed yet: the lag is not known")
    elif fresh := sum(row.lag is None and row.latest > 0 for row in details.positions):
        note(f"nothing is committed yet in {counted(fresh, 'partition')}: their lag is not known")
    if output is not Output.TABLE:
        whole = {
            "group": details.group,
            "state": details.state,
            "assignor": details.assignor,
            "coordinator": details.coordinator,
            "lag": details.lag,
            "lag_ms": max(lag_ms.values(), default=None),
            "partitions": positions,
            "members": members,
        }
        print_rows([whole], (), Output.JSONL)
        return
    kind = f", {details.assignor}" if details.assignor else ""
    say(
        f"{details.group}: {details.state}{kind}, {counted(len(members), 'member')}, "
        f"lag {'-' if details.lag is None else f'{details.lag:,}'}"
        f"{f' ({duration_text(max(lag_ms.values()))})' if details.lag and lag_ms else ''}, "
        f"coordinator {details.coordinator}"
    )
    if positions:
        say()
        print_rows(positions, POSITION_COLUMNS, output)
    if members:
        say()
        shown = [{**row, "partitions": _in_short(row["partitions"])} for row in members]
        print_rows(shown, MEMBER_COLUMNS, output)


def _positions(
    details: "GroupDetails", short: Mapping[str, str], lag_ms: Mapping[tuple[str, int], int]
) -> list[dict[str, Any]]:
    clients = {member.member_id: member.client_id for member in details.members}
    return [
        {
            "topic": row.topic,
            "partition": row.partition,
            "committed": row.committed,
            "latest": row.latest,
            "lag": row.lag,
            "lag_ms": (age_ms := lag_ms.get((row.topic, row.partition))),
            "lag_time": None if age_ms is None else duration_text(age_ms),
            "client": clients.get(row.member_id or ""),
            "member": short.get(row.member_id or "", row.member_id),
        }
        for row in details.positions
    ]


def _members(details: "GroupDetails", short: Mapping[str, str]) -> list[dict[str, Any]]:
    return [
        {
            "client": member.client_id,
            "host": member.host,
            "instance": member.instance_id,
            "partitions": [list(spot) for spot in member.partitions],
            "member": short.get(member.member_id, member.member_id),
        }
        for member in details.members
    ]


def _short_ids(members: "Sequence[MemberInfo]") -> dict[str, str]:
    """Enough of each id to tell them apart, without the client's or the instance's name in it."""
    rest = {
        member.member_id: member.member_id.removeprefix(f"{member.instance_id}-").removeprefix(
            f"{member.client_id}-"
        )
        for member in members
    }
    longest = max(map(len, rest.values()), default=0)
    for digits in range(MEMBER_DIGITS, longest):
        short = {member_id: text[:digits] for member_id, text in rest.items()}
        if len(set(short.values())) == len(short):
            return short
    return {member_id: member_id for member_id in rest}


def _in_short(spots: list[list[Any]]) -> str:
    """Write partitions as in `orders[0,2] returns[1]`."""
    by_topic: dict[str, list[str]] = {}
    for topic, partition in spots:
        by_topic.setdefault(topic, []).append(str(partition))
    return " ".join(f"{topic}[{','.join(parts)}]" for topic, parts in by_topic.items()) or "none"


@app.command("reset")
@secured
def reset(
    name: Name,
    to: Annotated[
        str | None,
        typer.Option(
            "--to", metavar="WHERE", help="Position: start, end, an offset, or a time (ISO 8601)."
        ),
    ] = None,
    shift: Annotated[
        int | None,
        typer.Option(
            "--shift", metavar="N", help="Number of offsets to move forward; negative: back."
        ),
    ] = None,
    topic: Annotated[
        str | None,
        typer.Option(
            "--topic", "-t", help="Topic; default: all topics in which the group has offsets."
        ),
    ] = None,
    partition: Partitions = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    output: OutputFormat = Output.TABLE,
) -> None:
    """Move a group's committed offsets; it must have no members then."""
    if to is None and shift is None:
        raise ConfigurationError("a reset needs a target", remedy="give --to or --shift")
    if to is not None and shift is not None:
        raise ConfigurationError("--to with --shift", remedy="give --to or --shift, not both")
    if partition and topic is None:
        raise ConfigurationError("--partition of which topic?", remedy="add --topic")
    where = None if to is None else position(to, "--to")
    from bucketlog.client.groups import in_use

    with connected(bootstrap) as log:
        members = len(log.groups.members(name))
        if members and not dry_run:
            raise in_use(f"resetting group {name!r}")
        with nullcontext() if topic is None else known_topic(log, topic, is_wanted=False):
            plan = log.groups.reset(
                name, topic, to=where, shift=shift, partitions=partition, dry_run=True
            )
        has_offsets = any(row.before is not None for row in plan)
        found = bool(members) or has_offsets or _is_listed(log, name)
        if not dry_run:
            if not yes:
                new = "" if found else ", which does not exist yet"
                confirm(f"Reset {counted(len(plan), 'offset')} of group {name}{new}?")
            log.groups.apply(name, plan)
    rows = [{column: getattr(row, column) for column in RESET_COLUMNS} for row in plan]
    print_rows(rows, RESET_COLUMNS, output)
    done = "reset" if found else "created, there was none"
    later = f", when its {counted(members, 'member')} stopped" if members else ""
    note(f"group {name}: {'would be' if dry_run else 'is'} {done}{later}")


def _is_listed(log: "Log", name: str) -> bool:
    return any(row.group == name for row in log.groups.list())


@app.command("delete")
@secured
def delete(name: Name, yes: Yes = False, bootstrap: Bootstrap = DEFAULT_BOOTSTRAP) -> None:
    """Delete a group without members and all its committed offsets."""
    with connected(bootstrap) as log:
        if not yes:
            confirm(f"Delete group {name} and its committed offsets?")
        log.groups.delete(name)
    note(f"group {name} is deleted")
