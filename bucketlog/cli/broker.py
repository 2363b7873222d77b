"""`bucketlog broker`: one broker, or a row of them, as configured."""

import os
import sys
from typing import Annotated

import typer

from bucketlog.log_format.extras import check_installed


def broker(
    workers: Annotated[
        int,
        typer.Option(
            envvar="BUCKETLOG_WORKERS",
            min=1,
            help="So many brokers, on the ports from BUCKETLOG_PORT on: one for each core.",
        ),
    ] = 1,
) -> None:
    """Run a broker in this process, configured by BUCKETLOG_* in the environment."""
    check_installed("broker")
    package = "bucketlog.stateless_broker"
    module = [package] if workers == 1 else [f"{package}.process.workers", str(workers)]
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-P", "-m", *module])
