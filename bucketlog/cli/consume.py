"""`bucketlog consume`: records as lines."""

import select
import sys
from collections.abc import Callable
from contextlib import nullcontext
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Literal, cast

import typer

from bucketlog.cli.options import DEFAULT_BOOTSTRAP, Bootstrap, position
from bucketlog.cli.security import connected, secured
from bucketlog.cli.signals import sigterm_interrupts, stops
from bucketlog.cli.topic_names import known_topic
from bucketlog.client.lines import to_json_line
from bucketlog.log_format.errors import ConfigurationError
from bucketlog.log_format.printable import printable_lines

if TYPE_CHECKING:
    from datetime import datetime

    from bucketlog.client.consumer import Consumer
    from bucketlog.client.membership import GroupStart
    from bucketlog.client.topic import Record, Topic

BATCH_RECORDS = 1000
PIPE_BUF_LEAST = 512
"""Bytes that every system of POSIX writes to a pipe at once."""


class RecordOutput(StrEnum):
    RAW = "raw"
    JSONL = "jsonl"


RegistryUrl = Annotated[
    str | None,
    typer.Option(
        "--registry-url",
        envvar="BUCKETLOG_SCHEMA_REGISTRY_URL",
        metavar="URL",
        help="Show what was written with this schema registry as JSON.",
    ),
]


@secured
def consume(
    topic: Annotated[str, typer.Argument(metavar="TOPIC")],
    start: Annotated[
        str,
        typer.Option(
            "--from",
            "-f",
            envvar="BUCKETLOG_CONSUME_FROM",
            metavar="WHERE",
            help="start, end, an offset, or a time (ISO 8601).",
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
    group: Annotated[
        str | None,
        typer.Option(
            "--group",
            "-g",
            metavar="NAME",
            help="As a member of this group, from what it committed; --from is for the rest.",
        ),
    ] = None,
    key_separator: Annotated[
        str | None,
        typer.Option("--key-separator", "-K", metavar="TEXT", help="raw: KEY<TEXT>VALUE."),
    ] = None,
    output: Annotated[
        RecordOutput, typer.Option("--output", "-o", help="The value alone, or all of a record.")
    ] = RecordOutput.RAW,
    registry_url: RegistryUrl = None,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Print records, a line each, as tail -f does: what comes from now on, until it is stopped.

    On a terminal, control characters are escaped; a pipe or a file gets the bytes unchanged.

    --from start prints what is there first; -n and --until-end stop by themselves."""
    where = _where(topic, start, group, partition, until_end=until_end)

    show = _json if output is RecordOutput.JSONL else _raw_here(key_separator)
    until: Literal["end"] | None = "end" if until_end else None
    shown = _shown(topic, registry_url)
    with (
        sigterm_interrupts(),
        connected(bootstrap) as log,
        known_topic(log, topic, is_wanted=True),
    ):
        if group is None:
            consumer: Consumer[bytes, bytes] = log.consumer(
                shown, start=where, partitions=partition, until=until
            )
        else:
            consumer = log.consumer(
                shown, group=group, start=cast("GroupStart", where), until=until
            )
        with consumer:
            stopped = _print(consumer, show, count)
        if stopped is not None:
            raise stopped


def _shown(topic: str, registry_url: str | None) -> "Topic[bytes, bytes]":
    """With a registry its frames as JSON."""
    from bucketlog.client.topic import Topic

    if registry_url is None:
        return Topic(topic)
    from bucketlog.client.schemas.display import DisplayFormat
    from bucketlog.client.schemas.registry import SchemaRegistry

    shown = DisplayFormat(SchemaRegistry(registry_url))
    return Topic(topic, value=shown, key=shown)


def _where(
    topic: str, start: str, group: str | None, partition: list[int] | None, *, until_end: bool
) -> "Literal['earliest', 'latest'] | int | datetime":
    """Raises `ConfigurationError` for flags that do not go together."""
    where = position(start, "--from")
    if group is not None and isinstance(where, int):
        raise ConfigurationError(
            f"--from {start} with --group",
            remedy=f"`bucketlog group reset {group} --topic {topic} --to {start}` sets its offsets",
        )
    if group is not None and partition:
        raise ConfigurationError("--partition with --group", remedy="the group shares them out")
    if until_end and where == "latest" and group is None:
        raise ConfigurationError(
            "--until-end from the end has nothing to print", remedy="add --from start"
        )
    return where


def _print(
    consumer: "Consumer[bytes, bytes]",
    show: "Callable[[Record[bytes, bytes]], bytes]",
    count: int | None,
) -> KeyboardInterrupt | None:
    """Print records until there is no more to print, or a signal comes.

    A signal is returned where all that was polled is printed, so that a group's member commits it.
    It is raised where records are not printed yet: these are not committed.
    """
    out = sys.stdout.buffer
    is_printed = True
    try:
        with stops() as signals:
            while not consumer.finished and count != 0:
                wanted = BATCH_RECORDS if count is None else min(count, BATCH_RECORDS)
                with signals.held():
                    records = consumer.poll(wanted, 0.25)
                    is_printed = not records
                if records:
                    lines = b"".join(map(show, records))
                    # what cannot block is written without a signal between it and its account
                    with signals.held() if _is_taken_at_once(lines) else nullcontext():
                        out.write(lines)
                        out.flush()
                        is_printed = True
                elif _reader_is_gone():
                    raise BrokenPipeError
                if count is not None:
                    count -= len(records)
    except KeyboardInterrupt as signal:
        if is_printed:
            return signal
        raise
    return None


def _reader_is_gone() -> bool:
    """Whether standard output is a pipe that nobody reads: as in `consume | head`, while no record
    comes whose writing would tell."""
    return bool(_stdout_events() & {"POLLERR", "POLLHUP"})


def _is_taken_at_once(lines: bytes) -> bool:
    """Whether standard output takes `lines` without blocking."""
    at_most = getattr(select, "PIPE_BUF", PIPE_BUF_LEAST)
    return len(lines) <= at_most and "POLLOUT" in _stdout_events()


def _stdout_events() -> set[str]:
    """Names of the events of poll(2) that standard output has now."""
    try:
        watched = select.poll()
        watched.register(sys.stdout.fileno(), select.POLLOUT)
    except (AttributeError, OSError, ValueError):
        return set()  # no poll(2) on this system, or no file behind it
    names = ("POLLOUT", "POLLERR", "POLLHUP")
    return {name for _, event in watched.poll(0) for name in names if event & getattr(select, name)}


def _json(record: "Record[bytes, bytes]") -> bytes:
    return to_json_line(record).encode() + b"\n"


def _raw_here(key_separator: str | None) -> "Callable[[Record[bytes, bytes]], bytes]":
    """On a terminal, control characters (except line feeds and tabs) and bytes that are not UTF-8
    are escaped. Elsewhere the bytes are unchanged."""
    show = _raw(key_separator)
    if not sys.stdout.isatty():
        return show
    return lambda record: printable_lines(show(record).decode(errors="backslashreplace")).encode()


def _raw(key_separator: str | None) -> "Callable[[Record[bytes, bytes]], bytes]":
    if key_separator is None:
        return lambda record: (b"" if record.is_tombstone else record.value) + b"\n"
    separator = key_separator.replace("\\t", "\t").encode()
    return lambda record: (
        (record.key or b"") + separator + (b"" if record.is_tombstone else record.value) + b"\n"
    )
