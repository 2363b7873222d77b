"""Options that several commands share."""

from datetime import datetime
from pathlib import Path
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
        help="Address of a broker; several: comma-separated.",
    ),
]
DEFAULT_BOOTSTRAP = "localhost:9092"

OutputFormat = Annotated[
    Output,
    typer.Option("--output", "-o", envvar="BUCKETLOG_OUTPUT", help="Format of the output."),
]
EncryptionKeyFile = Annotated[
    Path | None,
    typer.Option(
        "--encryption-key-file",
        envvar="BUCKETLOG_ENCRYPTION_KEY_FILE",
        metavar="FILE",
        help="File with the local keys of encrypted topics.",
    ),
]
SafetyAgeMs = Annotated[
    int | None,
    typer.Option(
        envvar="BUCKETLOG_DELETION_SAFETY_AGE_MS",
        metavar="MS",
        min=0,
        help="The brokers' deletion_safety_age_ms, in milliseconds; default: a day.",
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
Partitions = Annotated[
    list[int] | None,
    typer.Option(
        "--partition",
        "-p",
        min=0,
        help="Number of a partition; repeatable. Default: all partitions.",
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be done.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


def safety_age(given_ms: int | None) -> int:
    """The safety age of deletions in milliseconds, as given or as brokers have it by default."""
    from bucketlog.stateless_broker.settings.broker import BrokerSettings

    if given_ms is None:
        return int(BrokerSettings.model_fields["deletion_safety_age_ms"].default)
    return given_ms


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
