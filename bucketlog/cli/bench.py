"""`bucketlog bench`: load on a cluster, and what it measured."""

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal, Protocol

import typer

from bucketlog.cli.bench_flags import (
    DEFAULT_SECONDS,
    Acks,
    BatchBytes,
    Codec,
    Create,
    Delete,
    Keys,
    LingerMs,
    Name,
    Partitions,
    Producers,
    Rate,
    RecordBytes,
    Records,
    Seconds,
    TimeoutSeconds,
    WarmUp,
)
from bucketlog.cli.bench_topic import LoadTopic
from bucketlog.cli.options import DEFAULT_BOOTSTRAP, Bootstrap, OutputFormat
from bucketlog.cli.security import connected, given_client_config, secured
from bucketlog.cli.signals import StopRequest, stop_asked
from bucketlog.cli.topic_names import known_topic
from bucketlog.log_format.errors import ConfigurationError, LogError
from bucketlog.terminal import EXIT_FAILED, EXIT_OK, Output, note, print_rows, say, say_json

if TYPE_CHECKING:
    from random import Random

    from bucketlog.bench.account import Second, Summary
    from bucketlog.bench.histogram import Latency
    from bucketlog.bench.producing import Clock, Load, ProducerRun, RunObserver
    from bucketlog.client.log import Log
    from bucketlog.client.sending import Outbox

ONE_PROCESS = (
    "The result also depends on this client: a Python process uses one core, which sends about "
    "300,000 small records per second, and reads a million. For more load, run several."
)
app = typer.Typer(
    help=f"Put load on any cluster that speaks Kafka's protocol. {ONE_PROCESS}",
    no_args_is_help=True,
    rich_markup_mode=None,
)
STOP_S = 5.0
"""Time that Ctrl-C waits for acknowledgements. A second Ctrl-C does not wait."""


@app.command("produce", help=f"Send records, and print rate and latency. {ONE_PROCESS}")
@secured
def produce(
    topic: Name,
    records: Records = None,
    seconds: Seconds = None,
    record_bytes: RecordBytes = 100,
    rate: Rate = "0",
    producers: Producers = 1,
    compression: Codec = "none",
    key_cardinality: Keys = 0,
    batch_bytes: BatchBytes = 1024 * 1024,
    linger_ms: LingerMs = 5.0,
    acks: Acks = "all",
    warm_up_seconds: WarmUp = 0.0,
    timeout_seconds: TimeoutSeconds = 30.0,
    create: Create = False,
    partitions: Partitions = None,
    delete: Delete = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    output: OutputFormat = Output.TABLE,
) -> int:
    from bucketlog.bench.payload import Payload

    made = LoadTopic(topic, create=create, partitions=partitions, delete=delete)
    load = _load(topic, record_bytes, rate, records, seconds, warm_up_seconds)
    sending = _ProducerSettings(
        compression, batch_bytes, linger_ms, acks, timeout_seconds, producers
    )
    with _loaded_cluster(bootstrap) as (log, extra), made.on(log):
        payload = Payload(record_bytes, key_cardinality=key_cardinality, random=_random())

        def make(clock: "Clock", watching: "RunObserver") -> "ProducerRun":
            from bucketlog.bench.producing import ProducerRun

            return ProducerRun(load, sending.open(log, extra), payload, clock, watching)

        return _run(make, timeout_seconds, output)


@app.command("consume", help=f"Read all partitions, and print the rate. {ONE_PROCESS}")
@secured
def consume(
    topic: Name,
    records: Records = None,
    seconds: Annotated[
        float | None,
        typer.Option(
            "--seconds",
            "-s",
            min=0.1,
            help="Number of seconds after which to stop; default: stop at the present end.",
        ),
    ] = None,
    start: Annotated[
        Literal["start", "end"],
        typer.Option("--from", "-f", envvar="BUCKETLOG_BENCH_CONSUME_FROM", help="Where to begin."),
    ] = "start",
    timeout_seconds: Annotated[
        float, typer.Option(min=1, help="Seconds without a broker until the command fails.")
    ] = 30.0,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    output: OutputFormat = Output.TABLE,
) -> int:
    if start == "end" and seconds is None and records is None:
        raise ConfigurationError(
            "--from end has nothing to read", remedy="add --seconds or --records"
        )
    with _loaded_cluster(bootstrap) as (log, extra):
        with known_topic(log, topic, is_wanted=True):
            details = log.topics.describe(topic)
        ends = {part.partition: part.latest for part in details.partitions}
        begin = {part.partition: part.earliest for part in details.partitions}
        if start == "end":
            begin = ends
        is_bounded = seconds is None and start == "start"
        if is_bounded:
            ends = {part: end for part, end in ends.items() if begin[part] < end}
            begin = {part: begin[part] for part in ends}

        def make(clock: "Clock", watching: "RunObserver") -> "_Bench":
            from bucketlog.bench.consuming import ConsumerRun, open_consumer

            return ConsumerRun(
                topic,
                open_consumer({**log.consumer_config({}), **extra}, topic, begin),
                ends if is_bounded else None,
                clock,
                watching,
                records=records,
                duration_ns=None if seconds is None else int(seconds * 1e9),
                patience_ns=int(timeout_seconds * 1e9),
            )

        return _run(make, timeout_seconds, output)


@app.command(
    "end-to-end",
    help=f"Send and receive records, and print their latency. {ONE_PROCESS}",
)
@secured
def end_to_end(
    topic: Name,
    records: Records = None,
    seconds: Seconds = None,
    record_bytes: RecordBytes = 100,
    rate: Rate = "1000",
    compression: Codec = "none",
    key_cardinality: Keys = 0,
    batch_bytes: BatchBytes = 1024 * 1024,
    linger_ms: LingerMs = 5.0,
    warm_up_seconds: WarmUp = 1.0,
    timeout_seconds: TimeoutSeconds = 30.0,
    create: Create = False,
    partitions: Partitions = None,
    delete: Delete = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    output: OutputFormat = Output.TABLE,
) -> int:
    made = LoadTopic(topic, create=create, partitions=partitions, delete=delete)
    load = _load(topic, record_bytes, rate, records, seconds, warm_up_seconds)
    sending = _ProducerSettings(compression, batch_bytes, linger_ms, "all", timeout_seconds, 1)
    with _loaded_cluster(bootstrap) as (log, extra), made.on(log):
        return _run(
            lambda clock, watching: _ends(
                log, load, sending, extra, key_cardinality, clock, watching
            ),
            timeout_seconds,
            output,
        )


def _ends(
    log: "Log",
    load: "Load",
    sending: "_ProducerSettings",
    extra: Mapping[str, str],
    key_cardinality: int,
    clock: "Clock",
    watching: "RunObserver",
) -> "_Bench":
    from dataclasses import replace
    from functools import partial

    from bucketlog.bench.account import LatencyRecorder
    from bucketlog.bench.consuming import open_consumer
    from bucketlog.bench.end_to_end import HEADER_BYTES, RUN_BYTES, EndToEndRun, Receiver, stamp
    from bucketlog.bench.payload import Payload
    from bucketlog.bench.producing import ProducerRun

    if load.record_bytes < HEADER_BYTES:
        raise ConfigurationError(
            f"--record-bytes {load.record_bytes}",
            remedy=f"give at least {HEADER_BYTES}: records carry when they were due",
        )
    begin = {part.partition: part.latest for part in log.topics.describe(load.topic).partitions}
    consumer = open_consumer({**log.consumer_config({}), **extra}, load.topic, begin)
    run_id, measured = os.urandom(RUN_BYTES), LatencyRecorder()
    payload = Payload(
        load.record_bytes,
        key_cardinality=key_cardinality,
        random=_random(),
        header_bytes=HEADER_BYTES,
    )
    producing = ProducerRun(
        load,
        sending.open(log, extra),
        payload,
        clock,
        replace(watching, measured=measured),
        partial(stamp, run_id),
    )
    return EndToEndRun(producing, Receiver(consumer, run_id, clock, measured), clock)


class _Bench(Protocol):
    """What is run, until it is done or its `RunObserver` stops it."""

    @property
    def failure(self) -> LogError | None: ...

    def run(self) -> None: ...

    def settle(self, patience_s: float) -> None: ...

    def summary(self, *, is_interrupted: bool) -> "Summary": ...


def _run(make: "Callable[[Clock, RunObserver], _Bench]", timeout_s: float, output: Output) -> int:
    """The summary is printed however it ends, and then told how."""
    from bucketlog.bench.producing import Clock, RunObserver

    on_second = _show_second if sys.stderr.isatty() else None
    with stop_asked() as asked:
        bench = make(Clock(time.monotonic_ns, time.sleep), RunObserver(asked, on_second))
        try:
            bench.run()
        finally:
            bench.settle(STOP_S if asked() else timeout_s)
    summary = bench.summary(is_interrupted=asked())
    _print(summary, output)
    sys.stdout.flush()
    _raise(bench, asked)
    if summary.lost:
        note(f"{summary.lost:,} records were acknowledged and did not come")
    return EXIT_FAILED if summary.lost else EXIT_OK


def _raise(bench: _Bench, asked: StopRequest) -> None:
    if bench.failure is not None:
        raise bench.failure
    asked.raise_signal()


def _print(summary: "Summary", output: Output) -> None:
    if output is not Output.TABLE:
        say_json(summary.as_json(), indent=2 if output is Output.JSON else None)
        return
    totals = {
        "records": summary.records,
        "failed": summary.failed,
        "seconds": f"{summary.seconds:,.2f}",
        "records/s": f"{summary.records_per_s:,.1f}",
        "MB/s": f"{summary.mb_per_s:,.2f}",
    }
    print_rows([totals], tuple(totals), Output.TABLE)
    latencies = dict(summary.latency)
    if summary.late is not None:
        latencies["sent late"] = summary.late
    if latencies:
        rows = [_latency_row(name, found) for name, found in latencies.items()]
        say()
        print_rows(rows, tuple(rows[0]), Output.TABLE)


def _latency_row(name: str, latency: "Latency") -> dict[str, str]:
    told = {key.replace("_", "."): f"{value:,.2f}" for key, value in latency._asdict().items()}
    return {"ms": name, **told}


def _show_second(second: "Second") -> None:
    latency = second.latency
    told = f"{second.elapsed_s:5.0f} s  {second.records:>9,} records"
    if latency.max:
        told += f"  p50 {latency.p50:.1f} ms  p99 {latency.p99:.1f} ms  max {latency.max:.1f} ms"
    note(f"{told}  {second.waiting:,} waiting" if second.waiting else told)


def _load(
    topic: str,
    record_bytes: int,
    rate: str,
    records: int | None,
    seconds: float | None,
    warm_up_seconds: float,
) -> "Load":
    from bucketlog.bench.producing import Load
    from bucketlog.bench.schedule import NS_PER_S, parse_rate

    if records is None and seconds is None:
        seconds = DEFAULT_SECONDS
    return Load(
        topic,
        record_bytes,
        parse_rate(rate, record_bytes),
        records,
        None if seconds is None else int(seconds * NS_PER_S),
        int(warm_up_seconds * NS_PER_S),
    )


@dataclass(frozen=True, slots=True)
class _ProducerSettings:
    """The producers' settings."""

    compression: Literal["none", "gzip", "snappy", "lz4", "zstd"]
    batch_bytes: int
    linger_ms: float
    acks: str
    timeout_s: float
    producers: int

    def open(self, log: "Log", extra: Mapping[str, str]) -> "list[Outbox]":
        from bucketlog.bench.producing import open_outboxes

        config = log.producer_config(
            {
                "compression": self.compression,
                "batch_bytes": self.batch_bytes,
                "linger_ms": self.linger_ms,
                "delivery_timeout_s": self.timeout_s,
                "idempotent": self.acks == "all",
            }
        )
        return open_outboxes({**config, "acks": self.acks, **extra}, self.producers)


@contextmanager
def _loaded_cluster(bootstrap: str) -> "Iterator[tuple[Log, dict[str, str]]]":
    """The cluster, and the settings that go before all others."""
    with connected(bootstrap) as log:
        yield log, given_client_config()


def _random() -> "Random":
    from random import Random

    return Random()
