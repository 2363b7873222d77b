"""The CPU time of idle polls: of bucketlog, and of Apache Kafka beside it.

    python -m benchmarks.polls --consumers 20 --partitions 1000 --connections 2000 --seconds 20

Consumers wait for records that nobody produces, and ask again as soon as they are answered. Three
kinds take turns on each broker: `session`, requests of a fetch session (KIP-227) over many
partitions; `full`, requests that name the same partitions each time; and `single`, many connections
with one partition each.

The figures are CPU microseconds of the broker for each answered poll, without what the broker uses
when nobody polls. They include all threads and children, and for bucketlog Valkey. The turns before
them, in which Java compiles, are not counted: a broker that compiles is not idle. `late` is the
time from the end of the wait that the request asked for to its answer. One JSON line on standard
output. With the limits, the exit code is 1 if a figure of bucketlog is above.
"""

import argparse
import asyncio
import struct
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.beside_kafka import Broker, brokers
from benchmarks.under_test import add_setting_argument, create_topic, report, settings_of
from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.log_format.wire.frames import FrameReader, FrameWriter

VERSION = 12
TOPIC = "polls"
SESSION, FULL, SINGLE = "session", "full", "single"
KINDS = (SESSION, FULL, SINGLE)
LAST_EPOCH = -1
BYTES_MAX = 1 << 20
CONNECTS_AT_ONCE = 50
WARM_UP_POLLS = 2
MANY_CONNECTIONS = {
    "connections_per_address_max": "100000",
    "connections_per_address_per_s_max": "100000",
}
_LENGTH = struct.Struct(">i")
_HEAD = struct.Struct(">ibihi")
"""Of a response: correlation id, no tags, throttle time, error, session id."""


def fetch_request(
    partitions: range, wait_ms: int, session_id: int = 0, epoch: int = LAST_EPOCH
) -> bytes:
    """A whole frame: a Fetch of these partitions of the topic, from offset 0."""
    writer = FrameWriter(flexible=True)
    writer.int16(ApiKey.FETCH)
    writer.int16(VERSION)
    writer.int32(0)
    writer.int16(-1)  # no client id: the header's strings are not compact
    writer.tags()
    for value in (-1, wait_ms, 1, BYTES_MAX):
        writer.int32(value)
    writer.data.append(0)  # read_uncommitted
    writer.int32(session_id)
    writer.int32(epoch)
    writer.array_length(1 if len(partitions) else 0)
    if len(partitions):
        writer.nullable_string(TOPIC)
        writer.array_length(len(partitions))
        for number in partitions:
            writer.int32(number)
            writer.int32(-1)
            writer.int64(0)
            writer.int32(-1)
            writer.int64(-1)
            writer.int32(BYTES_MAX)
            writer.tags()
        writer.tags()
    writer.array_length(0)
    writer.nullable_string("")
    writer.tags()
    return _LENGTH.pack(len(writer.data)) + bytes(writer.data)


def first_error(response: bytes | bytearray) -> int:
    """The error of the first partition in a response; 0 if the response has none."""
    with memoryview(response) as data:
        reader = FrameReader(data, _LENGTH.size + _HEAD.size, flexible=True)
        if not reader.array_length(0):
            return 0
        reader.string()
        if not reader.array_length(0):
            return 0
        reader.int32()
        return reader.int16()


@dataclass
class Tally:
    polls: int = 0
    late_ms: list[float] = field(default_factory=list)


class Poller(asyncio.Protocol):
    """Polls without an end. `begun` is called after the first polls."""

    def __init__(self, kind: str, partitions: range, wait_ms: int, tally: Tally) -> None:
        self._kind = kind
        self._partitions = partitions
        self._wait_ms = wait_ms
        self._tally = tally
        self._received = bytearray()
        self._transport: asyncio.Transport | None = None
        self._sent_s = 0.0
        self._epoch = 0
        self._session = 0
        self._request = fetch_request(partitions, wait_ms)
        self._polls = 0
        self.begun: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._ask()

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        if not self.begun.done():
            self.begun.set_exception(RuntimeError(f"the broker closed the connection: {exc}"))

    def data_received(self, data: bytes) -> None:
        self._received += data
        if len(self._received) < _LENGTH.size:
            return
        (length,) = _LENGTH.unpack_from(self._received)
        if len(self._received) < _LENGTH.size + length:
            return
        _, _, _, error, self._session = _HEAD.unpack_from(self._received, _LENGTH.size)
        error = error or first_error(self._received)
        self._received.clear()
        if error and self.begun.done():
            raise RuntimeError(f"error {error} of a poll")
        now_s = time.perf_counter()
        self._polls = 0 if error else self._polls + 1  # Apache Kafka elects leaders meanwhile
        if self._polls > WARM_UP_POLLS:
            self._tally.polls += 1
            self._tally.late_ms.append((now_s - self._sent_s) * 1000 - self._wait_ms)
            if not self.begun.done():
                self.begun.set_result(None)
        self._ask()

    def _ask(self) -> None:
        if self._transport is None:
            return
        self._sent_s = time.perf_counter()
        if self._kind == SESSION:
            named = self._partitions if not self._epoch else range(0)
            request = fetch_request(named, self._wait_ms, self._session, self._epoch)
            self._epoch += 1
        else:
            request = self._request
        self._transport.write(request)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()


async def idle_share(args: argparse.Namespace, broker: Broker) -> float:
    """CPU seconds per second while nobody polls."""
    before_s, began_s = broker.cpu_s(), time.perf_counter()
    await asyncio.sleep(args.seconds)
    return (broker.cpu_s() - before_s) / (time.perf_counter() - began_s)


async def poll(
    args: argparse.Namespace, broker: Broker, kind: str, idle: float
) -> dict[str, float]:
    """Poll for `seconds`; returns the figures of this turn. `idle`: from `idle_share`."""
    loop, tally = asyncio.get_running_loop(), Tally()
    many = args.connections if kind == SINGLE else args.consumers
    wait_ms = args.wait_ms if kind == SINGLE else args.long_wait_ms
    places = asyncio.Semaphore(CONNECTS_AT_ONCE)

    async def connect(number: int) -> Poller:
        partitions = range(args.partitions)
        if kind == SINGLE:
            partitions = range(number % args.partitions, number % args.partitions + 1)
        async with places:
            _, poller = await loop.create_connection(
                lambda: Poller(kind, partitions, wait_ms, tally), *broker.address
            )
        return poller

    pollers = await asyncio.gather(*map(connect, range(many)))
    try:
        await asyncio.gather(*(poller.begun for poller in pollers))
        tally.polls, tally.late_ms = 0, []
        before_s, began_s = broker.cpu_s(), time.perf_counter()
        await asyncio.sleep(args.seconds)
        used_s, seconds = broker.cpu_s() - before_s, time.perf_counter() - began_s
    finally:
        for poller in pollers:
            poller.close()
    late_ms = sorted(tally.late_ms)
    return {
        "cpu_us_per_poll": round((used_s - idle * seconds) / max(tally.polls, 1) * 1e6, 1),
        "idle_cpu_share": round(idle, 4),
        "polls_per_s": round(tally.polls / seconds, 1),
        "late_p50_ms": round(median(late_ms), 1),
        "late_p99_ms": round(late_ms[int(len(late_ms) * 0.99)], 1),
    }


def measure(args: argparse.Namespace) -> dict[str, Any]:
    runs: dict[str, dict[str, list[dict[str, float]]]] = {}
    settings = MANY_CONNECTIONS | settings_of(args)
    with (
        tempfile.TemporaryDirectory(prefix="bucketlog-bench-") as name,
        brokers(Path(name), settings, with_kafka=not args.alone) as both,
    ):
        for broker in both:
            create_topic(broker.bootstrap, TOPIC, args.partitions)
        cases = [(broker, kind) for kind in KINDS for broker in both]
        for turn in range(args.warm_up_turns + args.turns):
            idle = {broker.name: asyncio.run(idle_share(args, broker)) for broker in both}
            for broker, kind in cases if turn % 2 else reversed(cases):
                found = asyncio.run(poll(args, broker, kind, idle[broker.name]))
                print(turn, broker.name, kind, found, file=sys.stderr, flush=True)
                if turn >= args.warm_up_turns:
                    runs.setdefault(broker.name, {}).setdefault(kind, []).append(found)
    medians = {
        name: {
            kind: {figure: median(turn[figure] for turn in turns) for figure in turns[0]}
            for kind, turns in kinds.items()
        }
        for name, kinds in runs.items()
    }
    ours = medians["bucketlog"]
    return {
        "polls": medians,
        "full_to_session": round(
            ours[FULL]["cpu_us_per_poll"] / ours[SESSION]["cpu_us_per_poll"], 1
        ),
        "runs": runs,
    }


def shortfalls(args: argparse.Namespace, figures: dict[str, Any]) -> list[str]:
    ours = figures["polls"]["bucketlog"]
    limits = ((SESSION, args.max_session_us), (SINGLE, args.max_single_us))
    return [
        f"{kind}: {ours[kind]['cpu_us_per_poll']} µs of CPU for a poll, at most {limit} wanted"
        for kind, limit in limits
        if limit and ours[kind]["cpu_us_per_poll"] > limit
    ]


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--consumers", type=int, default=20, help="with all partitions each")
    parser.add_argument("--partitions", type=int, default=1000)
    parser.add_argument("--connections", type=int, default=2000, help="with one partition each")
    parser.add_argument("--wait-ms", type=int, default=500, help="of polls with one partition")
    parser.add_argument("--long-wait-ms", type=int, default=25, help="of the other polls")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--warm-up-turns", type=int, default=1)
    parser.add_argument("--alone", action="store_true", help="without Apache Kafka")
    parser.add_argument("--max-session-us", type=float)
    parser.add_argument("--max-single-us", type=float)
    add_setting_argument(parser)
    return parser.parse_args(arguments)


def main() -> int:
    args = parse(sys.argv[1:])
    figures = measure(args)
    return report("polls", figures, shortfalls(args, figures))


if __name__ == "__main__":
    sys.exit(main())
