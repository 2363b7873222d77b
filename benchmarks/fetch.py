"""Fetch throughput and the broker's cost, with librdkafka as client.

Fills a topic, then reads it from the beginning as fast as it goes, again and again until the time
is over (the yardstick: 1 KB records, batches of 1 MB):

    python -m benchmarks.fetch --record-bytes 1000 --batch-bytes 1000000 --fill-mb 1000 --seconds 15

One JSON line on standard output. MB and GB are 10^6 and 10^9 bytes of values; CPU seconds are the
broker's alone. With --min-mb-s and --max-cpu-s-per-gb the exit code is 1 where the run falls short.
"""

import argparse
import sys
import time
from collections.abc import Mapping
from typing import Any

from benchmarks.librdkafka import open_producer, open_reader
from benchmarks.produce import MB, TOPIC, Load, producer_settings
from benchmarks.under_test import (
    UnderTest,
    add_arguments,
    broker_under_test,
    cost_per_gb,
    create_topic,
    report,
)

READ_TIMEOUT_S = 60.0


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--record-bytes", type=int, default=1000)
    parser.add_argument("--batch-bytes", type=int, default=1_000_000)
    parser.add_argument("--codec", default="none")
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--fill-mb", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--fetch-bytes", type=int, default=10_000_000, help="per partition")
    parser.add_argument("--min-mb-s", type=float)
    parser.add_argument("--max-cpu-s-per-gb", type=float)
    add_arguments(parser)
    return parser.parse_args(arguments)


def fill(args: argparse.Namespace, broker: UnderTest, topic: str = TOPIC) -> int:
    """Returns the number of records that the topic has then."""
    create_topic(broker.bootstrap, topic, args.partitions)
    return load(args, broker.bootstrap, topic, {})


def load(args: argparse.Namespace, bootstrap: str, topic: str, client: Mapping[str, str]) -> int:
    """Write `fill_mb`; returns the number of records. `client`: further settings of librdkafka."""
    more = argparse.Namespace(
        **vars(args) | {"acks": "all", "linger_ms": 10, "idempotence": False, "rate_mb_s": 0}
    )
    settings = {**producer_settings(more, bootstrap), **client}
    with open_producer(
        settings, topic, record_bytes=args.record_bytes, sample_every=1_000_000
    ) as producer:
        sending = Load(producer, more)
        while sending.sent * args.record_bytes < args.fill_mb * MB:
            sending.run_until(time.perf_counter() + 0.05)
        sending.drain()
    return sending.records


def reader_settings(bootstrap: str, fetch_bytes: int) -> dict[str, str]:
    """`fetch_bytes`: of a partition."""
    return {
        "bootstrap.servers": bootstrap,
        "fetch.message.max.bytes": str(fetch_bytes),
        "fetch.max.bytes": str(max(fetch_bytes, 52_428_800)),
        "fetch.wait.max.ms": "100",
        "queued.min.messages": "1000000",
        "queued.max.messages.kbytes": str(128 * 1024),
        "enable.auto.commit": "false",
        "group.id": "none",
    }


def read_once(args: argparse.Namespace, broker: UnderTest, records: int) -> int:
    """Read the whole topic; returns the bytes of its values. Raises `RuntimeError` if short."""
    settings = reader_settings(broker.bootstrap, args.fetch_bytes)
    return read(settings, TOPIC, args.partitions, records)


def read(settings: Mapping[str, str], topic: str, partitions: int, records: int) -> int:
    """As `read_once`."""
    found = value_bytes = 0
    with open_reader(settings, topic, partitions) as reader:
        deadline = time.perf_counter() + READ_TIMEOUT_S
        while found < records:
            got = reader.poll(100)
            found += got.records
            value_bytes += got.value_bytes
            if time.perf_counter() > deadline:
                raise RuntimeError(f"{found} of {records} records after {READ_TIMEOUT_S} s")
    return value_bytes


def measure(args: argparse.Namespace) -> dict[str, Any]:
    with broker_under_test(args) as broker:
        records = fill(args, broker)
        read_once(args, broker, records)  # warm-up: page cache, connections, compiled paths
        before, began = broker.cost(), time.perf_counter()
        rounds = payload = 0
        while time.perf_counter() - began < args.seconds:
            payload += read_once(args, broker, records)
            rounds += 1
        after, seconds = broker.cost(), time.perf_counter() - began
    figures = cost_per_gb(before, after, payload)
    return {
        "mb_per_s": round(payload / MB / seconds, 1),
        "records_per_s": round(rounds * records / seconds),
        "broker_cpu_s_per_gb": figures["broker_cpu_s_per_gb"],
        "bucket_requests_per_gb": figures["bucket_requests_per_gb"],
        "broker_cpu_share": round((after.broker_cpu_s - before.broker_cpu_s) / seconds, 3),
        "rounds": rounds,
        "seconds": round(seconds, 2),
    }


def shortfalls(args: argparse.Namespace, figures: dict[str, Any]) -> list[str]:
    found = []
    if args.min_mb_s and figures["mb_per_s"] < args.min_mb_s:
        found.append(f"{figures['mb_per_s']} MB/s, {args.min_mb_s} wanted")
    cpu = figures["broker_cpu_s_per_gb"]
    if args.max_cpu_s_per_gb and not cpu <= args.max_cpu_s_per_gb:
        found.append(f"{cpu} broker CPU s/GB, at most {args.max_cpu_s_per_gb} wanted")
    return found


def main() -> int:
    args = parse(sys.argv[1:])
    figures = measure(args)
    found = shortfalls(args, figures)
    return report("fetch", figures, found)


if __name__ == "__main__":
    sys.exit(main())
