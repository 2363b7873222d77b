"""What a consumer that catches up costs those who produce: acknowledgements beside its reading.

Fills a topic with history, then measures pairs: producing at a fixed rate alone, and the same while
one consumer reads all of the history from the store. The yardstick, 5 GB in MinIO, 20 MB/s:

    python -m benchmarks.catch_up --store minio --fill-mb 5000 --rate-mb-s 20 --pairs 5

One JSON line on standard output. Latency is from handing a record to librdkafka until its
acknowledgement came back. The consumer is a process of its own that gets what processors the
others leave (SCHED_IDLE): it would run on another machine. Requests are those of the broker to its
bucket while the consumer reads, GETs and others apart. With --max-ratio the exit code is 1 where
the median of the pairs' ratios of p99 is above it.
"""

import argparse
import multiprocessing
import os
import sys
import time
from multiprocessing.connection import Connection
from statistics import median
from typing import Any

from benchmarks.fetch import fill, reader_settings
from benchmarks.librdkafka import open_producer, open_reader
from benchmarks.produce import MB, WARM_UP_S, Load, percentiles_ms, producer_settings
from benchmarks.under_test import (
    GB,
    UnderTest,
    add_arguments,
    broker_under_test,
    cost_per_gb,
    create_topic,
    report,
)

HISTORY, TAIL = "history", "tail"
TURN_S = 0.05
FETCH_BYTES = 10_000_000
READ_TIMEOUT_S = 600.0


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--record-bytes", type=int, default=1000)
    parser.add_argument("--batch-bytes", type=int, default=1_000_000)
    parser.add_argument("--codec", default="none")
    parser.add_argument("--partitions", type=int, default=12)
    parser.add_argument("--fill-mb", type=int, default=5000)
    parser.add_argument("--rate-mb-s", type=float, default=20)
    parser.add_argument("--linger-ms", type=float, default=5)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--quiet-seconds", type=float, default=15)
    parser.add_argument("--max-ratio", type=float)
    add_arguments(parser)
    return parser.parse_args(arguments)


def catch_up(told: Connection, bootstrap: str, partitions: int, records: int) -> None:
    """In a process of its own: read all of the history, and tell how many seconds it took."""
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    settings = reader_settings(bootstrap, FETCH_BYTES)
    began, found = time.perf_counter(), 0
    with open_reader(settings, HISTORY, partitions) as reader:
        while found < records and time.perf_counter() - began < READ_TIMEOUT_S:
            found += reader.poll(100).records
        told.send((found, time.perf_counter() - began))


class Pairs:
    """Turns of producing, alone and beside a consumer that catches up."""

    def __init__(self, args: argparse.Namespace, broker: UnderTest, load: Load) -> None:
        self._args = args
        self._broker = broker
        self._load = load

    def quiet(self) -> dict[str, float]:
        self._load.latencies_us.clear()
        self._load.run_until(time.perf_counter() + self._args.quiet_seconds)
        return percentiles_ms(self._load.latencies_us)

    def beside(self, records: int) -> dict[str, Any]:
        """Raises `RuntimeError` where the consumer does not come to the end."""
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe(duplex=False)
        reader = context.Process(
            target=catch_up,
            args=(theirs, self._broker.bootstrap, self._args.partitions, records),
        )
        before, sent = self._broker.cost(), self._load.sent
        reader.start()
        theirs.close()
        self._load.latencies_us.clear()
        while not ours.poll():
            self._load.run_until(time.perf_counter() + TURN_S)
        latencies, sent = percentiles_ms(self._load.latencies_us), self._load.sent - sent
        found, seconds = ours.recv()
        reader.join()
        after = self._broker.cost()
        if found < records:
            raise RuntimeError(f"{found} of {records} records in {READ_TIMEOUT_S} s")
        payload = records * self._args.record_bytes
        return {
            "ack_latency_ms": latencies,
            "produced_mb_per_s": round(sent * self._args.record_bytes / MB / seconds, 1),
            "catch_up_mb_per_s": round(payload / MB / seconds, 1),
            "requests_per_gb": cost_per_gb(before, after, payload)["bucket_requests_per_gb"],
            "broker_cpu_s": round(after.broker_cpu_s - before.broker_cpu_s, 2),
            "seconds": round(seconds, 1),
        }


def measure(args: argparse.Namespace) -> dict[str, Any]:
    with broker_under_test(args) as broker:
        records = fill(args, broker, HISTORY)
        create_topic(broker.bootstrap, TAIL, args.partitions)
        flags = vars(args) | {"acks": "all", "idempotence": False}
        more = argparse.Namespace(**flags)
        per_second = args.rate_mb_s * MB / args.record_bytes
        with open_producer(
            producer_settings(more, broker.bootstrap),
            TAIL,
            record_bytes=args.record_bytes,
            sample_every=max(1, int(per_second / 5000)),
        ) as producer:
            load = Load(producer, more)
            load.run_until(time.perf_counter() + WARM_UP_S)
            pairs = Pairs(args, broker, load)
            found = [
                {"quiet_ms": pairs.quiet(), **pairs.beside(records)} for _ in range(args.pairs)
            ]
            load.drain()
    ratios = [pair["ack_latency_ms"]["p99"] / pair["quiet_ms"]["p99"] for pair in found]
    return {
        "p99_ratio": round(median(ratios), 2),
        "p99_ratios": [round(ratio, 2) for ratio in ratios],
        "catch_up_mb_per_s": round(median(pair["catch_up_mb_per_s"] for pair in found), 1),
        "gets_per_gb": round(median(pair["requests_per_gb"].get("get", 0.0) for pair in found), 1),
        "history_gb": round(records * args.record_bytes / GB, 2),
        "pairs": found,
    }


def main() -> int:
    args = parse(sys.argv[1:])
    figures = measure(args)
    found = []
    if args.max_ratio and figures["p99_ratio"] > args.max_ratio:
        found.append(f"ack p99 {figures['p99_ratio']} times, at most {args.max_ratio} wanted")
    return report("catch_up", figures, found)


if __name__ == "__main__":
    sys.exit(main())
