"""`bucketlog consume`: records as lines."""

import select
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import typer

from bucketlog.cli.options import DEFAULT_BOOTSTRAP, Bootstrap, Partitions, position
from bucketlog.cli.record_format import record_format
from bucketlog.cli.registry_flags import (
    RegistryAuth,
    RegistryCaFile,
    ShowingRegistryUrl,
    registry_login,
)
from bucketlog.cli.security import connected, secured
from bucketlog.cli.signals import sigterm_interrupts, stops
from bucketlog.cli.topic_names import known_topic
from bucketlog.client.lines import to_json_line
from bucketlog.log_format.errors import ConfigurationError
from bucketlog.log_format.printable import printable_lines

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from bucketlog.client.consumer import Consumer
    from bucketlog.client.membership import GroupStart
    from bucketlog.client.schemas.registry import SchemaRegistry
    from bucketlog.client.topic import Record

BATCH_RECORDS = 1000
PATTERN = "^"
"""Begins a pattern of topics, as in librdkafka."""
PIPE_BUF_LEAST = 512
"""Bytes that every system of POSIX writes to a pipe at once."""


class RecordOutput(StrEnum):
    RAW = "raw"
    JSONL = "jsonl"
    JSON = "json"
    """The same: a line for each record."""


Template = Annotated[
    str | None,
    typer.Option(
        "--format",
        "-F",
        envvar="BUCKETLOG_CONSUME_FORMAT",
        metavar="TEXT",
        help="Print by a template: %t topic, %p partition, %o offset, %T timestamp, %k key, %v "
        "value, %h headers; "
        r"%k{hex}, %v{base64}; \n, \t.",
    ),
]

StartPosition = Annotated[
    str,
    typer.Option(
        "--from",
        "-f",
        envvar="BUCKETLOG_CONSUME_FROM",
        metavar="WHERE",
        help="Position: start, end, an offset, or a time (ISO 8601).",
    ),
]

KeySeparator = Annotated[
    str | None,
    typer.Option(
        "--key-separator",
        "-K",
        metavar="TEXT",
        help="Print lines as KEY<TEXT>VALUE, with -o raw.",
    ),
]

GroupName = Annotated[
    str | None,
    typer.Option(
        "--group",
        "-g",
        metavar="NAME",
        help="Read as a member of this group, from its committed offsets.",
    ),
]


@secured
def consume(
    topics: Annotated[
        list[str],
        typer.Argument(
            metavar="TOPIC...", help="Topics; ^REGEX: all topics whose whole name matches."
        ),
    ],
    start: StartPosition = "end",
    count: Annotated[
        int | None, typer.Option("-n", "--count", min=0, help="Stop after this number of records.")
    ] = None,
    until_end: Annotated[
        bool, typer.Option("--until-end", help="Stop at the present end of each partition.")
    ] = False,
    partition: Partitions = None,
    group: GroupName = None,
    key_separator: KeySeparator = None,
    template: Template = None,
    output: Annotated[
        RecordOutput, typer.Option("--output", "-o", help="The value alone, or all of a record.")
    ] = RecordOutput.RAW,
    registry_url: ShowingRegistryUrl = None,
    registry_auth: RegistryAuth = None,
    registry_ca_file: RegistryCaFile = None,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Print each new record as a line, until the command is stopped, as tail -f does.

    On a terminal, control characters are escaped. A pipe or a file gets the bytes unchanged.

    --from start prints the existing records first. -n and --until-end end the command."""
    where = _where(topics, start, group, partition, until_end=until_end)

    show = _shape(output, template, key_separator)
    until: Literal["end"] | None = "end" if until_end else None
    shown = _shown(topics, _registry(registry_url, registry_auth, registry_ca_file))
    with (
        sigterm_interrupts(),
        connected(bootstrap) as log,
        known_topic(log, topics[0], is_wanted=True) if len(topics) == 1 else nullcontext(),
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


def _registry(url: str | None, auth: str | None, ca_file: "Path | None") -> "SchemaRegistry | None":
    if url is None:
        return None
    from bucketlog.client.schemas.registry import SchemaRegistry

    return SchemaRegistry(
        url, auth=registry_login(auth), ca_file=None if ca_file is None else str(ca_file)
    )


def _shown(topics: Sequence[str], registry: "SchemaRegistry | None") -> Any:
    """Return the topic, or a list of topics and patterns. A registry's frames are shown as JSON."""
    from bucketlog.client.topic import Topic
    from bucketlog.client.topic_pattern import TopicPattern

    formats: dict[str, Any] = {}
    if registry is not None:
        from bucketlog.client.schemas.display import DisplayFormat

        shown = DisplayFormat(registry)
        formats = {"value": shown, "key": shown}
    sources: list[Any] = [
        TopicPattern(name, **formats) if name.startswith(PATTERN) else Topic(name, **formats)
        for name in dict.fromkeys(topics)
    ]
    return sources[0] if _is_one(topics) else sources


def _is_one(topics: Sequence[str]) -> bool:
    return len(set(topics)) == 1 and not topics[0].startswith(PATTERN)


def _where(
    topics: Sequence[str],
    start: str,
    group: str | None,
    partition: list[int] | None,
    *,
    until_end: bool,
) -> "Literal['earliest', 'latest'] | int | datetime":
    """Raises `ConfigurationError` for flags that do not go together."""
    where = position(start, "--from")
    if group is not None and isinstance(where, int):
        raise ConfigurationError(
            f"--from {start} with --group",
            remedy=f"`bucketlog group reset {group} --topic {topics[0]} --to {start}` sets its "
            "offsets",
        )
    if partition and not _is_one(topics):
        raise ConfigurationError("--partition with several topics", remedy="name one topic")
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


def _shape(
    output: RecordOutput, template: str | None, key_separator: str | None
) -> "Callable[[Record[bytes, bytes]], bytes]":
    """Raises `ConfigurationError`."""
    if template is None:
        return _json if output is not RecordOutput.RAW else _raw_here(_raw(key_separator))
    if output is not RecordOutput.RAW or key_separator is not None:
        other = "--key-separator" if key_separator is not None else "-o jsonl"
        raise ConfigurationError(f"--format with {other}", remedy="leave one out")
    return _raw_here(record_format(template))


def _raw_here(
    show: "Callable[[Record[bytes, bytes]], bytes]",
) -> "Callable[[Record[bytes, bytes]], bytes]":
    """On a terminal, control characters (except line feeds and tabs) and bytes that are not UTF-8
    are escaped. Elsewhere the bytes are unchanged."""
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
