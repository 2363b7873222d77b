"""`bucketlog broker`: run one or several brokers; and `broker list`."""

import os
import sys
from typing import Annotated

import typer

from bucketlog.cli.options import DEFAULT_BOOTSTRAP, Bootstrap, OutputFormat
from bucketlog.cli.security import connected, secured
from bucketlog.log_format.extras import check_installed
from bucketlog.terminal import Output, print_rows

app = typer.Typer(
    help="Run a broker, or list the brokers of a cluster.",
    epilog="\b\nExample:\n  BUCKETLOG_BUCKET_URL=s3://bucket/prefix bucketlog broker --workers 4",
    invoke_without_command=True,
    rich_markup_mode=None,
)
COLUMNS = ("broker", "address", "zone", "controller")


@app.callback()
def broker(
    context: typer.Context,
    workers: Annotated[
        int,
        typer.Option(
            envvar="BUCKETLOG_WORKERS",
            min=1,
            help="Number of brokers, one per core. They use the ports from BUCKETLOG_PORT on.",
        ),
    ] = 1,
) -> None:
    """Run a broker in this process, configured by BUCKETLOG_* in the environment.

    `broker list` lists the brokers of a cluster instead."""
    if context.invoked_subcommand is not None:
        return
    check_installed("broker")
    package = "bucketlog.stateless_broker"
    module = [package] if workers == 1 else [f"{package}.process.workers", str(workers)]
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-P", "-m", *module])


@app.command("list")
@secured
def list_brokers(
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP, output: OutputFormat = Output.TABLE
) -> None:
    """List the live brokers of a cluster, their addresses and zones."""
    with connected(bootstrap) as log:
        details = log.cluster.describe()
    rows = [
        {
            "broker": each.node_id,
            "address": each.address,
            "zone": each.zone,
            "controller": "yes" if each.is_controller else "no",
        }
        for each in details.brokers
    ]
    print_rows(rows, COLUMNS, output)
