"""`bucketlog produce`: records from lines."""

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from bucketlog.cli.line_format import LineFormat
from bucketlog.cli.options import DEFAULT_BOOTSTRAP, Bootstrap
from bucketlog.cli.security import connected, secured
from bucketlog.cli.sent_lines import SentLines
from bucketlog.cli.signals import StopSignals, stops
from bucketlog.cli.topic_names import known_topic
from bucketlog.client.lines import Line
from bucketlog.log_format.errors import InvalidDataError, LogError
from bucketlog.terminal import counted, note, progress

if TYPE_CHECKING:
    from bucketlog.client.log import Log
    from bucketlog.client.producer import Producer

POLL_S = 0.1
STOP_S = 5.0
"""Time that Ctrl-C waits for acknowledgements. A second Ctrl-C does not wait."""
KeySeparator = Annotated[
    str | None,
    typer.Option(
        "--key-separator", "-K", metavar="TEXT", help=r"Lines are KEY<TEXT>VALUE; '\t': tab."
    ),
]
Headers = Annotated[
    list[str] | None,
    typer.Option("--header", "-H", metavar="NAME=VALUE", help="Header of all records; repeatable."),
]


@secured
def produce(
    topic: Annotated[str, typer.Argument(metavar="TOPIC")],
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="Lines to send; default: stdin.")
    ] = None,
    key_separator: KeySeparator = None,
    key: Annotated[
        str | None, typer.Option("--key", "-k", metavar="TEXT", help="Key of all records.")
    ] = None,
    header: Headers = None,
    jsonl: Annotated[
        bool, typer.Option("--jsonl", help="Lines are what `consume -o jsonl` gives.")
    ] = False,
    partition: Annotated[
        int | None, typer.Option(min=0, help="Number of the partition; default: chosen by the key.")
    ] = None,
    compression: Annotated[
        Literal["none", "gzip", "snappy", "lz4", "zstd"], typer.Option(help="Codec of the batches.")
    ] = "none",
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Send each line as a record; ends when all are acknowledged."""
    shape = LineFormat.of_flags(jsonl=jsonl, separator=key_separator, key=key, headers=header or ())
    from bucketlog.client.topic import Topic

    raw = Topic(topic)
    source = str(file) if file else "stdin"
    is_typed = file is None and sys.stdin.isatty()
    with (
        stops() as stopping,
        file.open("rb") if file else nullcontext(sys.stdin.buffer) as texts,
        connected(bootstrap) as log,
    ):
        with known_topic(log, topic, is_wanted=True):  # a misspelt one fails here, not after a wait
            log.topics.partition_count(raw)
        producer = log.producer(compression=compression)
        lines = SentLines(
            source,
            topic,
            path=source if file else None,
            wait=lambda: _wait(producer, stopping),
        )
        reading = _LineReader(texts, shape, stopping)
        with (
            _reporting_progress(lines, reading, log, topic),
            _finishing(producer),
            stopping.held(),  # else what was handed over, or its outcome, could go uncounted
            progress(topic, None, is_shown=not is_typed) as bar,
        ):
            for line in bar.over(reading.records()):
                delivery = producer.send(
                    raw,
                    line.value,
                    key=line.key,
                    headers=line.headers,
                    partition=partition,
                    timestamp_ms=line.timestamp_ms,
                )
                sent_bytes = len(line.key or b"") + len(line.value or b"")
                has_key = line.key is not None
                if not lines.add(reading.number, delivery, sent_bytes, has_key=has_key):
                    break
            _flush(producer, stopping)
    note(f"{counted(lines.acknowledged, 'record')} written to {topic}")


@contextmanager
def _reporting_progress(
    lines: SentLines, reading: "_LineReader", log: "Log", topic: str
) -> Iterator[None]:
    """However the block ends, it reports what is acknowledged and how to continue."""
    try:
        yield
    except KeyboardInterrupt:
        lines.settle()
        at = reading.number
        note(f"stopped at line {at}: {lines.summary()}; to continue, {lines.resume_command(at)}")
        raise
    except (InvalidDataError, LogError) as error:
        needs_keys = partial(_is_compacted, log, topic)
        raise lines.explained(error, reading.number, needs_keys=needs_keys) from error
    lines.settle()


def _is_compacted(log: "Log", topic: str) -> bool:
    with suppress(LogError):
        return "compact" in log.topics.describe(topic).configs.get("cleanup.policy", "")
    return False


def _wait(producer: "Producer", stopping: StopSignals) -> None:
    producer.poll(POLL_S)
    stopping.look()


def _flush(producer: "Producer", stopping: StopSignals) -> None:
    while True:
        try:
            return producer.flush(POLL_S)
        except TimeoutError:
            stopping.look()


@contextmanager
def _finishing(producer: "Producer") -> Iterator[None]:
    """On Ctrl-C, too, what was handed over is given a moment to be acknowledged."""
    with producer:
        try:
            yield
        except KeyboardInterrupt:
            with suppress(LogError, TimeoutError):
                producer.flush(STOP_S)
            raise


class _LineReader:
    """The input's lines as records. Raises `InvalidDataError` at one that is none."""

    def __init__(self, texts: Iterable[bytes], shape: LineFormat, stopping: StopSignals) -> None:
        self.number = 0
        """Number of the line that was read last, from 1."""
        self._texts = iter(texts)
        self._shape = shape
        self._stopping = stopping

    def records(self) -> Iterator[Line]:
        while (text := self._stopping.next_of(self._texts)) is not None:
            self.number += 1
            line = self._shape.record(text.removesuffix(b"\n").removesuffix(b"\r"))
            if line is not None:
                yield line
