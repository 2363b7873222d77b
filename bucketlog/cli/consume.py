"""`bucketlog consume`: records as lines."""

import select
import sys
from collections.abc import Callable
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from bucketlog.cli.lines import to_json_line
from bucketlog.cli.options import DEFAULT_BOOTSTRAP, Bootstrap
from bucketlog.errors import ConfigurationError

if TYPE_CHECKING:
    from bucketlog.client.consumer import Consumer
    from bucketlog.client.partition_consumer import Start
    from bucketlog.client.topic import Record

BATCH_RECORDS = 1000


class RecordOutput(StrEnum):
    RAW = "raw"
    JSONL = "jsonl"


def consume(
    topic: Annotated[str, typer.Argument(metavar="TOPIC")],
    start: Annotated[
        str,
        typer.Option(
            "--from", "-f", metavar="WHERE", help="start, end, an offset, or a time (ISO 8601)."
        ),
    ] = "end",
    count: Annotated[
        int | None, typer.Option("-n", "--count", min=0, help="Stop after so many records.")
    ] = None,
    until_end: Annotated[
        bool, typer.Option("--until-end", help="Stop at the end as it is now.")
    ] = False,
    partition: Annotated[
        list[int] | None, typer.Option("--partition", "-p", min=0, help="Default: all.")
    ] = None,
    key_separator: Annotated[
        str | None,
        typer.Option("--key-separator", "-K", metavar="TEXT", help="raw: KEY<TEXT>VALUE."),
    ] = None,
    output: Annotated[
        RecordOutput, typer.Option("--output", "-o", help="The value alone, or all of a record.")
    ] = RecordOutput.RAW,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Print records, a line each; goes on until stopped unless -n or --until-end is given."""
    where = _start(start)
    if until_end and where == "latest":
        raise ConfigurationError(
            "--until-end from the end has nothing to print", remedy="add --from start"
        )
    from bucketlog.client.log import connect
    from bucketlog.client.topic import Topic

    if output is RecordOutput.JSONL:
        show: Callable[[Record[bytes, bytes]], bytes] = _json
    else:
        show = _raw(key_separator)
    with (
        connect(bootstrap) as log,
        log.consumer(
            Topic(topic), start=where, partitions=partition, until="end" if until_end else None
        ) as consumer,
    ):
        _print(consumer, show, count)


def _print(
    consumer: "Consumer[bytes, bytes]",
    show: "Callable[[Record[bytes, bytes]], bytes]",
    count: int | None,
) -> None:
    out = sys.stdout.buffer
    while not consumer.finished and count != 0:
        wanted = BATCH_RECORDS if count is None else min(count, BATCH_RECORDS)
        records = consumer.poll(wanted, 0.25)
        if records:
            out.write(b"".join(map(show, records)))
            out.flush()
        elif _reader_is_gone():
            raise BrokenPipeError
        if count is not None:
            count -= len(records)


def _reader_is_gone() -> bool:
    """Whether standard output is a pipe that nobody reads: as in `consume | head`, while no record
    comes whose writing would tell."""
    try:
        watched = select.poll()
        watched.register(sys.stdout.fileno(), 0)
    except (AttributeError, OSError, ValueError):
        return False  # no poll(2) on this system, or no file behind it
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in watched.poll(0))


def _start(text: str) -> "Start":
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
            f"--from {text}", remedy="start, end, an offset, or a time as 2026-01-31T12:00"
        ) from None
    return when if when.tzinfo else when.astimezone()


def _json(record: "Record[bytes, bytes]") -> bytes:
    return to_json_line(record).encode() + b"\n"


def _raw(key_separator: str | None) -> "Callable[[Record[bytes, bytes]], bytes]":
    if key_separator is None:
        return lambda record: (b"" if record.is_tombstone else record.value) + b"\n"
    separator = key_separator.replace("\\t", "\t").encode()
    return lambda record: (
        (record.key or b"") + separator + (b"" if record.is_tombstone else record.value) + b"\n"
    )
