"""Produce throughput, acknowledgement latency and the broker's cost, with librdkafka as client.

As fast as it goes, 1 KB records in batches of 1 MB (the yardstick):

    python -m benchmarks.produce --record-bytes 1000 --batch-bytes 1000000 --seconds 20

The same into MinIO, or at a fixed rate into a store as slow as S3:

    python -m benchmarks.produce --store minio --partitions 12 --seconds 15
    python -m benchmarks.produce --store minio --put-p50-ms 60 --put-p99-ms 250 \\\\
        --setting flush_interval_ms=250 --rate-mb-s 5 --seconds 60

Latency at a fixed rate, with group commit:

    python -m benchmarks.produce --rate-mb-s 20 --linger-ms 1 --seconds 30

One JSON line on standard output. Records are random bytes, so that a codec finds nothing to
compress, unless --noise-percent is less than 100. MB and GB are 10^6 and 10^9 bytes of values.
Latency is from handing a record to librdkafka until its acknowledgement came back: linger and
queueing count. CPU seconds are counted by process. With --min-mb-s, --max-cpu-s-per-gb,
--max-p50-ms, --max-p99-ms the exit code is 1 if the run falls short.
"""

import argparse
import ctypes
import os
import sys
import time
from typing import Any, NamedTuple

from benchmarks.librdkafka import Producer, open_producer
from benchmarks.under_test import (
    Cost,
    add_arguments,
    broker_under_test,
    cost_per_gb,
    create_topic,
    report,
)

MB = 1e6
TOPIC = "bench"
WARM_UP_S = 2.0
RECORDS_PER_CALL = 500
POOL_BYTES = 32 << 20
WORDS = b"carrier origin destination delay "
DRAIN_TIMEOUT_S = 60.0


class Sample(NamedTuple):
    """Totals at one moment."""

    time_s: float
    records: int
    cost: Cost


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--record-bytes", type=int, default=1000)
    parser.add_argument("--batch-bytes", type=int, default=1_000_000)
    parser.add_argument("--codec", default="none")
    parser.add_argument(
        "--noise-percent",
        type=int,
        default=100,
        help="random part of each record; words fill the rest",
    )
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--rate-mb-s", type=float, default=0, help="0: as fast as it goes")
    parser.add_argument("--linger-ms", type=float, default=10)
    parser.add_argument("--acks", default="all")
    parser.add_argument("--idempotence", action="store_true")
    parser.add_argument("--min-mb-s", type=float)
    parser.add_argument("--max-cpu-s-per-gb", type=float)
    parser.add_argument("--max-p50-ms", type=float)
    parser.add_argument("--max-p99-ms", type=float)
    add_arguments(parser)
    return parser.parse_args(arguments)


def producer_settings(args: argparse.Namespace, bootstrap: str) -> dict[str, str]:
    return {
        "bootstrap.servers": bootstrap,
        "acks": args.acks,
        "compression.codec": args.codec,
        "linger.ms": str(args.linger_ms),
        "batch.size": str(args.batch_bytes),
        "batch.num.messages": "1000000",
        "message.max.bytes": str(max(args.batch_bytes, args.record_bytes + 1000)),
        "queue.buffering.max.kbytes": str(256 * 1024),
        "queue.buffering.max.messages": "1000000",
        "enable.idempotence": str(args.idempotence).lower(),
    }


def values(size: int, noise_percent: int) -> bytes:
    """Random bytes, partly replaced by words."""
    made = bytearray(os.urandom(size))
    words = -len(WORDS) * noise_percent // 100 + len(WORDS)
    for at in range(0, size - len(WORDS), len(WORDS)):
        made[at : at + words] = WORDS[:words]
    return bytes(made)


class Load:
    """Keeps a producer busy, or at its rate, and counts what is acknowledged."""

    def __init__(
        self, producer: Producer, args: argparse.Namespace, noise_percent: int = 100
    ) -> None:
        self._producer = producer
        self._partitions: int = args.partitions
        self._record_bytes: int = args.record_bytes
        self._rate = args.rate_mb_s * MB / args.record_bytes
        size = max(POOL_BYTES, args.record_bytes * RECORDS_PER_CALL * 2)
        self._pool = ctypes.create_string_buffer(values(size, noise_percent), size)
        self._base = ctypes.addressof(self._pool)
        self._slots = size // args.record_bytes - RECORDS_PER_CALL
        self._turn = 0
        self.sent = 0
        self.records = 0
        self.latencies_us: list[int] = []

    def run_until(self, deadline_s: float) -> None:
        """`deadline_s` on the clock of `time.perf_counter`."""
        began, already = time.perf_counter(), self.sent
        while (now := time.perf_counter()) < deadline_s:
            due = RECORDS_PER_CALL
            if self._rate:
                due = min(int((now - began) * self._rate) - (self.sent - already), due)
            taken = self._send(due) if due > 0 else 0
            idle = taken < due or due <= 0
            self._poll(1 if idle else 0)

    def drain(self) -> None:
        deadline = time.perf_counter() + DRAIN_TIMEOUT_S
        while self._producer.waiting and time.perf_counter() < deadline:
            self._poll(100)
        if self._producer.waiting:
            raise RuntimeError(f"{self._producer.waiting} records were never acknowledged")

    def _send(self, count: int) -> int:
        at = (self.sent * 7) % self._slots
        address = self._base + at * self._record_bytes
        taken = self._producer.send(self._turn % self._partitions, address, count)
        self._turn += 1
        self.sent += taken
        return taken

    def _poll(self, timeout_ms: int) -> None:
        records, sampled = self._producer.poll(timeout_ms)
        self.records += records
        self.latencies_us += sampled


def percentiles_ms(latencies_us: list[int]) -> dict[str, float]:
    ordered = sorted(latencies_us)
    if not ordered:
        return {}

    def at(share: float) -> float:
        return round(ordered[min(int(share * len(ordered)), len(ordered) - 1)] / 1000, 2)

    return {"p50": at(0.50), "p99": at(0.99), "p99.9": at(0.999), "max": at(1.0)}


def measure(args: argparse.Namespace) -> dict[str, Any]:
    with broker_under_test(args) as broker:
        create_topic(broker.bootstrap, TOPIC, args.partitions)
        per_second = args.rate_mb_s * MB / args.record_bytes or 250e6 / args.record_bytes
        settings = producer_settings(args, broker.bootstrap)
        with open_producer(
            settings,
            TOPIC,
            record_bytes=args.record_bytes,
            sample_every=max(1, int(per_second / 5000)),
        ) as producer:
            load = Load(producer, args, args.noise_percent)
            load.run_until(time.perf_counter() + WARM_UP_S)
            load.latencies_us.clear()
            first = Sample(time.perf_counter(), load.records, broker.cost())
            load.run_until(first.time_s + args.seconds)
            last = Sample(time.perf_counter(), load.records, broker.cost())
            latencies = list(load.latencies_us)
            load.drain()
    seconds = last.time_s - first.time_s
    records = last.records - first.records
    payload = records * args.record_bytes
    return {
        "mb_per_s": round(payload / MB / seconds, 1),
        "records_per_s": round(records / seconds),
        "ack_latency_ms": percentiles_ms(latencies),
        "latency_samples": len(latencies),
        **cost_per_gb(first.cost, last.cost, payload),
        "broker_cpu_share": round((last.cost.broker_cpu_s - first.cost.broker_cpu_s) / seconds, 3),
        "seconds": round(seconds, 2),
    }


def shortfalls(args: argparse.Namespace, figures: dict[str, Any]) -> list[str]:
    found = []
    if args.min_mb_s and figures["mb_per_s"] < args.min_mb_s:
        found.append(f"{figures['mb_per_s']} MB/s, {args.min_mb_s} wanted")
    cpu = figures["broker_cpu_s_per_gb"]
    if args.max_cpu_s_per_gb and not cpu <= args.max_cpu_s_per_gb:
        found.append(f"{cpu} broker CPU s/GB, at most {args.max_cpu_s_per_gb} wanted")
    for name, limit_ms in (("p50", args.max_p50_ms), ("p99", args.max_p99_ms)):
        seen_ms = figures["ack_latency_ms"].get(name, float("inf"))
        if limit_ms and seen_ms > limit_ms:
            found.append(f"ack {name} {seen_ms} ms, at most {limit_ms} wanted")
    return found


def main() -> int:
    args = parse(sys.argv[1:])
    figures = measure(args)
    found = shortfalls(args, figures)
    return report("produce", figures, found)


if __name__ == "__main__":
    sys.exit(main())
