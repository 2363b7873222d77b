"""The steps of the demo, their order and their report."""

import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bucketlog.client.log import Log, connect
from bucketlog.demo.flights import FLIGHTS, flights_topic, read_flights
from bucketlog.demo.readers import GROUP, Readers, Share
from bucketlog.demo.tally import Tally
from bucketlog.embedded.cluster import EmbeddedCluster
from bucketlog.log_format.errors import ConfigurationError
from bucketlog.terminal import (
    EXIT_FAILED,
    EXIT_OK,
    Output,
    note,
    plainly,
    print_rows,
    progress,
    say,
    say_json,
)

MISMATCHES_SHOWN = 10
SHARE_COLUMNS = ("member", "partitions", "records")
COLUMNS = ("carrier", "partition", "source", "consumed", "replayed", "checksum")


class DemoReport:
    """What the last line will say."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.objects = 0
        self.object_bytes = 0
        self.replayed: dict[str, tuple[int, int]] | None = None
        self.shares: Sequence[Share] = ()
        self.lag: int | None = 0

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        begun = time.perf_counter()
        plainly(f"demo: {name}")
        yield
        self.seconds[name] = round(time.perf_counter() - begun, 2)


@dataclass(frozen=True, slots=True)
class DemoOptions:
    """`bootstrap`: brokers that run; None: a cluster is started. `bucket_url` None: a folder below
    `data`; `data` None: a folder that is thrown away. Neither may hold flights from an earlier run.
    `limit` None: all flights."""

    bootstrap: str | None
    data: Path | None
    bucket_url: str | None
    partitions: int
    limit: int | None
    with_spark: bool


def run_demo(options: DemoOptions) -> int:
    """Run every step; returns the exit code."""
    if options.data is not None:
        return _run(options.data, options)
    with TemporaryDirectory(prefix="bucketlog-demo-") as folder:
        return _run(Path(folder), options)


def _run(data: Path, options: DemoOptions) -> int:
    report, tally = DemoReport(), Tally()
    with _cluster(data, report, options) as (bootstrap, bucket_url):
        with connect(bootstrap) as log:
            _create_topic(log, options)
            readers = Readers(log, options.partitions)
            with report.step("join"):
                readers.join()
            _produce(log, report, tally, options)
            with report.step("consume"), progress("consume and compare", tally.produced) as bar:
                readers.consume(tally, bar)
            report.shares = readers.shares
            report.lag = log.groups.describe(GROUP).lag
        _measure(bucket_url, report)
        complete = not options.with_spark or _replay(bucket_url, data, report)
    return _print(report, tally, complete=complete, bucket_url=bucket_url)


@contextmanager
def _cluster(data: Path, report: DemoReport, options: DemoOptions) -> Iterator[tuple[str, str]]:
    """Where its brokers are and its bucket."""
    if options.bootstrap is not None:
        if options.bucket_url is None:
            raise ConfigurationError(
                "--bootstrap without --bucket", remedy="say in which bucket those brokers write"
            )
        yield options.bootstrap, options.bucket_url
        return
    cluster = EmbeddedCluster(data, bucket_url=options.bucket_url)
    with report.step("start"):
        cluster.start()
    try:
        yield cluster.bootstrap, cluster.bucket_url
    finally:
        cluster.stop()


def _create_topic(log: Log, options: DemoOptions) -> None:
    flights = flights_topic()
    if any(info.name == flights.name for info in log.topics.list()):
        raise ConfigurationError(
            f"there is a topic {flights.name!r} already",
            remedy="give the demo an empty --data, or another prefix in --bucket; of brokers that "
            f"run: bucketlog topic delete {flights.name}",
        )
    log.topics.create(flights, partitions=options.partitions)


def _produce(log: Log, report: DemoReport, tally: Tally, options: DemoOptions) -> None:
    flights = flights_topic()
    expected = tally.expecting(read_flights(options.limit), flights.value_format.encode)
    with (
        report.step("produce"),
        progress("produce", options.limit or FLIGHTS) as bar,
        log.producer(compression="lz4") as producer,
    ):
        producer.send_many(flights, bar.over(expected), key=lambda flight: flight.carrier)


def _measure(bucket_url: str, report: DemoReport) -> None:
    from bucketlog.tiered_storage import keys
    from bucketlog.tiered_storage.backends.location import open_sync_bucket

    with closing(open_sync_bucket(bucket_url)) as bucket:
        sizes = [info.size_bytes for info in bucket.list(keys.LOG)]
    report.objects, report.object_bytes = len(sizes), sum(sizes)


def _replay(bucket_url: str, data: Path, report: DemoReport) -> bool:
    """False where Spark cannot run here, having said why."""
    from bucketlog.demo.replay import replay_flights

    try:
        with report.step("replay"), progress("replay with Spark", None):
            report.replayed = replay_flights(
                bucket_url, flights_topic().name, data / "parquet" / "flights"
            )
    except ConfigurationError as error:
        note(f"not replayed: {error}")
        return False
    return True


def _print(report: DemoReport, tally: Tally, *, complete: bool, bucket_url: str) -> int:
    replayed = None if report.replayed is None else tally.compare_replay(report.replayed)
    if tally.consumed != tally.produced:
        tally.mismatches.append(f"{tally.produced} produced, {tally.consumed} consumed")
    if report.lag is None:
        tally.mismatches.append("nothing is committed")
    elif report.lag:
        tally.mismatches.append(f"{report.lag} records are not committed")
    by_carrier = report.replayed or {}
    digits = max((len(f"{mine.checksum:x}") for mine in tally.carriers.values()), default=0)
    rows = [
        {
            "carrier": carrier,
            "partition": mine.partition,
            "source": len(mine.rows),
            "consumed": mine.consumed,
            "replayed": by_carrier.get(carrier, (None, None))[0],
            "checksum": f"{mine.checksum:0{digits}x}",
        }
        for carrier, mine in sorted(tally.carriers.items())
    ]
    print_rows(rows, COLUMNS, Output.TABLE)
    say()
    shares = [
        {"member": at, "partitions": share.partitions_in_short, "records": share.records}
        for at, share in enumerate(report.shares)
    ]
    print_rows(shares, SHARE_COLUMNS, Output.TABLE)
    say()
    for mismatch in tally.mismatches[:MISMATCHES_SHOWN]:
        note(f"MISMATCH {mismatch}")
    summary: dict[str, Any] = {
        "bucket": bucket_url.partition("://")[0],
        "produced": tally.produced,
        "consumed": tally.consumed,
        "replayed": replayed,
        "members": [share.records for share in report.shares],
        "mismatches": len(tally.mismatches),
        "seconds": report.seconds,
        "objects": report.objects,
        "object_bytes_mean": round(report.object_bytes / max(1, report.objects)),
    }
    say_json(summary)
    return EXIT_OK if complete and not tally.mismatches else EXIT_FAILED
