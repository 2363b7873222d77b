"""Options that several commands share."""

from datetime import datetime
from typing import Annotated, Literal

import typer

from bucketlog.log_format.errors import ConfigurationError
from bucketlog.terminal import Output

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
    Output,
    typer.Option(
        "--output", "-o", envvar="BUCKETLOG_OUTPUT", help="How to print: for people or for a pipe."
    ),
]
BucketUrl = Annotated[
    str,
    typer.Argument(
        envvar="BUCKETLOG_BUCKET_URL",
        metavar="BUCKET",
        help="s3://bucket/prefix or file:///folder",
    ),
]


def position(text: str, option: str) -> Literal["earliest", "latest"] | int | datetime:
    """Where in a partition, as `option` gives it: an end, an offset, a time (local if no zone)."""
    match text:
        case "start" | "earliest":
            return "earliest"
        case "end" | "latest":
            return "latest"
        case digits if digits.isdecimal():
            return int(digits)
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigurationError(
            f"{option} {text}", remedy="start, end, an offset, or a time as 2026-01-31T12:00"
        ) from None
    return when if when.tzinfo else when.astimezone()


def assignment(text: str, option: str) -> tuple[str, str]:
    """The name and the value of `option NAME=VALUE`."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise ConfigurationError(f"{option} {text}", remedy="give it as NAME=VALUE")
    return name, value
