"""`bucketlog produce`: records from lines."""

import sys
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Literal

import typer

from bucketlog.cli.options import DEFAULT_BOOTSTRAP, Bootstrap
from bucketlog.cli.output import counted, note, progress
from bucketlog.client.lines import Line, json_line, plain_line
from bucketlog.errors import ConfigurationError, InvalidDataError


def produce(
    topic: Annotated[str, typer.Argument(metavar="TOPIC")],
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="Lines to send; default: stdin.")
    ] = None,
    key_separator: Annotated[
        str | None,
        typer.Option(
            "--key-separator", "-K", metavar="TEXT", help=r"Lines are KEY<TEXT>VALUE; '\t': tab."
        ),
    ] = None,
    jsonl: Annotated[
        bool, typer.Option("--jsonl", help="Lines are what `consume -o jsonl` gives.")
    ] = False,
    partition: Annotated[int | None, typer.Option(min=0, help="Default: by key.")] = None,
    compression: Annotated[
        Literal["none", "gzip", "snappy", "lz4", "zstd"], typer.Option(help="Codec of the batches.")
    ] = "none",
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Send each line as a record; ends when all are acknowledged."""
    if jsonl and key_separator is not None:
        raise ConfigurationError(
            "--jsonl and --key-separator", remedy="jsonl lines carry their keys: leave one out"
        )
    if key_separator == "":
        raise ConfigurationError("an empty --key-separator", remedy=r"as in --key-separator '\t'")
    separator = None if key_separator is None else key_separator.replace("\\t", "\t").encode()
    from bucketlog.client.log import connect
    from bucketlog.client.topic import Topic

    raw = Topic(topic)
    source = str(file) if file else "stdin"
    is_typed = file is None and sys.stdin.isatty()
    sent = 0
    with (
        file.open("rb") if file else nullcontext(sys.stdin.buffer) as texts,
        connect(bootstrap) as log,
    ):
        log.topics.partition_count(raw)  # a misspelt topic fails here, not after a timeout
        with (
            log.producer(compression=compression) as producer,
            progress(topic, None, is_shown=not is_typed) as bar,
        ):
            for line in _lines(texts, source, separator, jsonl=jsonl):
                producer.send(
                    raw,
                    line.value,
                    key=line.key,
                    headers=line.headers,
                    partition=partition,
                    timestamp_ms=line.timestamp_ms,
                )
                sent += 1
                bar.advance()
    note(f"{counted(sent, 'record')} written to {topic}")


def _lines(
    texts: Iterable[bytes], source: str, separator: bytes | None, *, jsonl: bool
) -> Iterator[Line]:
    """Raises `InvalidDataError`, which names the line."""
    for number, text in enumerate(texts, 1):
        body = text.removesuffix(b"\n").removesuffix(b"\r")
        if jsonl and not body:
            continue
        try:
            line = json_line(body) if jsonl else plain_line(body, separator)
        except InvalidDataError as error:
            raise InvalidDataError(
                f"{source}, line {number}: {error.message}; the lines before it are sent",
                remedy=error.remedy,
            ) from error
        yield line
