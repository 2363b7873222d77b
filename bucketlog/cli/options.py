"""Options that several commands share."""

from typing import Annotated

import typer

from bucketlog.cli.output import Output

Bootstrap = Annotated[
    str,
    typer.Option(
        "--bootstrap",
        "-b",
        envvar="BUCKETLOG_BOOTSTRAP",
        metavar="HOST:PORT",
        help="Address of any broker; several: comma-separated.",
    ),
]
DEFAULT_BOOTSTRAP = "localhost:9092"

OutputFormat = Annotated[
    Output, typer.Option("--output", "-o", help="How to print: for people or for a pipe.")
]
BucketUrl = Annotated[
    str,
    typer.Argument(
        envvar="BUCKETLOG_BUCKET_URL",
        metavar="BUCKET",
        help="s3://bucket/prefix or file:///folder",
    ),
]
