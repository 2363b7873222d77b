"""What a Produce request with one small record costs: bucketlog, and Apache Kafka beside it.

    python -m benchmarks.small_requests --rates 1000,5000,10000 --seconds 10 --turns 3

One broker of each runs. In each turn, each gets single-record requests (acks=all) at each rate,
over many connections. The turns alternate between the brokers, so that other work of the machine
falls on both. The load is an open loop: a request is due at a time that does not depend on the
answers, and its latency counts from then. The client is in this process, which is not measured. The
CPU time is that of the broker with all its threads, and of Valkey. bucketlog fsyncs each object;
Kafka has its defaults and never fsyncs. Figures are medians over the turns. The turns before them,
in which Java compiles, are not counted. One JSON line on standard output. With --max-cpu-ratio, the
exit code is 1 if bucketlog's CPU time is more than so many times Kafka's at any rate.
"""

import argparse
import asyncio
import struct
import sys
import tempfile
import time
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from aiokafka.record.default_records import DefaultRecordBatchBuilder

from benchmarks.beside_kafka import Broker, brokers
from benchmarks.under_test import add_setting_argument, create_topic, report, settings_of

PRODUCE, VERSION = 0, 7
ANSWERS_TIMEOUT_S = 120.0
SLICE_S = 0.002
"""How often due requests are sent."""


def request(topic: str, partition: int, record_bytes: int) -> bytes:
    """What follows the correlation id in a frame."""
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=0,
        is_transactional=0,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=1 << 20,
    )
    builder.append(0, timestamp=1_700_000_000_000, key=None, value=bytes(record_bytes), headers=[])
    records = bytes(builder.build())
    name = struct.pack(">h", len(topic)) + topic.encode()
    body = struct.pack(">hhi", -1, -1, 30_000) + struct.pack(">i", 1) + name
    body += struct.pack(">iii", 1, partition, len(records)) + records
    return struct.pack(">h", 0) + body  # an empty client id


@dataclass(slots=True)
class Connection:
    """Sends requests, and notes how long after their time their answers come."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    body: bytes
    due_s: deque[float] = field(default_factory=deque)
    sent: int = 0
    failed: int = 0

    def send(self, due_s: float) -> None:
        self.sent += 1
        self.due_s.append(due_s)
        head = struct.pack(">ihhi", len(self.body) + 8, PRODUCE, VERSION, self.sent)
        self.writer.write(head + self.body)

    async def receive(self, answers: int, latencies_s: list[float]) -> None:
        for _ in range(answers):
            size = int.from_bytes(await self.reader.readexactly(4), "big")
            answer = await self.reader.readexactly(size)
            (name_bytes,) = struct.unpack_from(">h", answer, 8)
            (error,) = struct.unpack_from(">h", answer, 10 + name_bytes + 8)
            self.failed += error != 0
            latencies_s.append(time.monotonic() - self.due_s.popleft())


async def load(
    broker: Broker, topic: str, rate: int, seconds: float, args: argparse.Namespace
) -> dict[str, float]:
    connections = []
    for number in range(args.connections):
        body = request(topic, number % args.partitions, args.record_bytes)
        connections.append(Connection(*await asyncio.open_connection(*broker.address), body))
    latencies_s: list[float] = []
    clock = time.monotonic
    wanted, sent = int(rate * seconds), 0
    receivers = [
        asyncio.create_task(each.receive(len(range(at, wanted, len(connections))), latencies_s))
        for at, each in enumerate(connections)
    ]
    before_s, began_s = broker.cpu_s(), clock()
    while sent < wanted:
        due = min(wanted, int((clock() - began_s) * rate) + 1)
        for number in range(sent, due):
            connections[number % len(connections)].send(began_s + number / rate)
        sent = due
        await asyncio.sleep(SLICE_S)
    _, late = await asyncio.wait(receivers, timeout=ANSWERS_TIMEOUT_S)
    used_s = broker.cpu_s() - before_s
    for task in late:
        task.cancel()
    await asyncio.gather(*receivers, return_exceptions=True)
    for each in connections:
        each.writer.close()
    ordered = sorted(latencies_s)
    failed = wanted - len(latencies_s) + sum(each.failed for each in connections)
    return {
        "cpu_us": round(used_s / wanted * 1e6, 1),
        "p50_ms": round(_share(ordered, 0.5) * 1000, 2),
        "p99_ms": round(_share(ordered, 0.99) * 1000, 2),
        "failed": failed,
    }


def _share(ordered: list[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else float("inf")


def measure(args: argparse.Namespace) -> dict[str, Any]:
    rates = [int(each) for each in args.rates.split(",")]
    runs: dict[str, dict[int, list[dict[str, float]]]] = {}
    with (
        tempfile.TemporaryDirectory(prefix="bucketlog-bench-") as name,
        brokers(Path(name), settings_of(args)) as both,
    ):
        for broker in both:
            create_topic(broker.bootstrap, "small", args.partitions)
        for turn in range(args.warm_up_turns + args.turns):
            for broker in both if turn % 2 else reversed(both):
                for rate in rates:
                    found = asyncio.run(load(broker, "small", rate, args.seconds, args))
                    print(turn, broker.name, rate, found, file=sys.stderr, flush=True)
                    if turn >= args.warm_up_turns:
                        runs.setdefault(broker.name, {}).setdefault(rate, []).append(found)
        names = [broker.name for broker in both]
    figures = {
        name: {rate: _medians(found) for rate, found in by_rate.items()}
        for name, by_rate in runs.items()
    }
    ours, kafka = (figures[name] for name in names)
    return {
        "figures": figures,
        "ratio_to_kafka": {
            rate: {
                what: round(ours[rate][what] / max(kafka[rate][what], 1e-9), 2)
                for what in ("cpu_us", "p50_ms", "p99_ms")
            }
            for rate in rates
        },
        "failed": sum(
            one["failed"]
            for by_rate in runs.values()
            for turns in by_rate.values()
            for one in turns
        ),
        "runs": runs,
        "turns": args.turns,
    }


def _medians(found: list[dict[str, float]]) -> dict[str, float]:
    return {what: round(median(one[what] for one in found), 2) for what in found[0]}


def shortfalls(args: argparse.Namespace, figures: dict[str, Any]) -> list[str]:
    found = []
    if figures["failed"]:
        found.append(f"{figures['failed']} requests failed, or had no answer")
    if args.max_cpu_ratio:
        found += [
            f"{rate} requests/s: {ratio['cpu_us']} times Kafka's CPU time, at most "
            f"{args.max_cpu_ratio} wanted"
            for rate, ratio in figures["ratio_to_kafka"].items()
            if ratio["cpu_us"] > args.max_cpu_ratio
        ]
    return found


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rates", default="1000,5000,10000", help="requests per second")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each rate and turn")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--warm-up-turns", type=int, default=1)
    parser.add_argument("--connections", type=int, default=100)
    parser.add_argument("--partitions", type=int, default=12)
    parser.add_argument("--record-bytes", type=int, default=100)
    parser.add_argument("--max-cpu-ratio", type=float)
    add_setting_argument(parser)
    return parser.parse_args(arguments)


def main() -> int:
    args = parse(sys.argv[1:])
    figures = measure(args)
    return report("small_requests", figures, shortfalls(args, figures))


if __name__ == "__main__":
    sys.exit(main())
