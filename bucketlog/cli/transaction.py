"""`bucketlog transaction`: list, describe, abort."""

from dataclasses import asdict
from typing import Annotated

import typer

from bucketlog.cli.options import DEFAULT_BOOTSTRAP, Bootstrap, OutputFormat
from bucketlog.cli.security import connected, secured
from bucketlog.terminal import Output, confirm, note, print_rows, time_text

app = typer.Typer(
    help="List, describe and abort transactions.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
Name = Annotated[str, typer.Argument(metavar="TRANSACTIONAL_ID")]
LIST_COLUMNS = ("transactional_id", "producer_id", "state")
COLUMNS = (*LIST_COLUMNS, "producer_epoch", "timeout_ms", "started", "partitions")


@app.command("list")
@secured
def list_transactions(
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP, output: OutputFormat = Output.TABLE
) -> None:
    """List all transactional ids."""
    with connected(bootstrap) as log:
        rows = [asdict(row) for row in log.transactions.list()]
    print_rows(rows, LIST_COLUMNS, output)


@app.command("describe")
@secured
def describe(
    name: Name, bootstrap: Bootstrap = DEFAULT_BOOTSTRAP, output: OutputFormat = Output.TABLE
) -> None:
    """Show a transactional id, and the partitions of its open transaction."""
    with connected(bootstrap) as log:
        row = asdict(log.transactions.describe(name))
    if output is Output.TABLE:
        parts = (f"{topic}[{partition}]" for topic, partition in row["partitions"])
        row["partitions"] = " ".join(parts) or "none"
        if row["started_ms"] is not None:
            row["started"] = time_text(row["started_ms"])
    print_rows([row], COLUMNS, output)


@app.command("abort")
@secured
def abort(
    name: Name,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Abort the open transaction of a transactional id."""
    with connected(bootstrap) as log:
        if not yes:
            confirm(f"Abort the transaction of {name}?")
        log.transactions.abort(name)
    note(f"the transaction of {name} is aborted")
