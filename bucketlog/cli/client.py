"""`bucketlog client`: list.

Kafka's protocol reports the clients that are members of groups, and no others.
"""

from typing import Any

import typer

from bucketlog.cli.options import DEFAULT_BOOTSTRAP, Bootstrap, OutputFormat
from bucketlog.cli.security import connected, secured
from bucketlog.terminal import Output, print_rows

app = typer.Typer(help="Show clients.", no_args_is_help=True, rich_markup_mode=None)
COLUMNS = ("client", "host", "group", "topics", "partitions", "instance")


@app.command("list")
@secured
def list_clients(
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP, output: OutputFormat = Output.TABLE
) -> None:
    """List the clients that are members of consumer groups.

    Kafka's protocol does not report producers and other clients."""
    rows: list[dict[str, Any]] = []
    with connected(bootstrap) as log:
        for group in log.groups.list():
            if group.state in ("Empty", "Dead"):
                continue
            rows += [
                {
                    "client": member.client_id,
                    "host": member.host,
                    "group": group.group,
                    "topics": len({topic for topic, _ in member.partitions}),
                    "partitions": len(member.partitions),
                    "instance": member.instance_id,
                    "member": member.member_id,
                }
                for member in log.groups.members(group.group)
            ]
    rows.sort(key=lambda row: (row["client"], row["host"], row["group"], row["member"]))
    print_rows(rows, COLUMNS, output)
