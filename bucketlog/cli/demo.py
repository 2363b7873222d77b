"""`bucketlog demo`: the whole way on real data."""

from pathlib import Path
from typing import Annotated

import typer


def demo(
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Folder that keeps the data; default: the data is deleted at the end.",
        ),
    ] = None,
    bucket: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Bucket, as s3://bucket/prefix (AWS_* apply); default: a folder in --data.",
        ),
    ] = None,
    bootstrap: Annotated[
        str | None,
        typer.Option(
            "--bootstrap",
            "-b",
            metavar="HOST:PORT",
            help="Brokers that run, on the bucket of --bucket; default: starts one.",
        ),
    ] = None,
    partitions: Annotated[
        int, typer.Option("--partitions", "-p", min=1, help="Number of partitions of the topic.")
    ] = 4,
    flights: Annotated[
        int | None,
        typer.Option(min=1, help="Number of flights, from the first; default: all 336,776."),
    ] = None,
    spark: Annotated[bool, typer.Option(help="Replay with Spark, too.")] = True,
) -> int:
    """Produce a year of real flights, consume them, replay them with Spark, compare every record.

    The last line on stdout is JSON. Exit code 1 on any mismatch.
    """
    from bucketlog.demo.run import DemoOptions, run_demo

    return run_demo(DemoOptions(bootstrap, data, bucket, partitions, flights, spark))
