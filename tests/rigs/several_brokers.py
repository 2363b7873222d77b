"""Several brokers on one bucket and one Valkey, in one process: rigs side by side, and what a
reader of the bucket alone finds beside them."""

from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Self, cast
from uuid import uuid4

import ormsgpack
from kio.schema.errors import ErrorCode
from redis.asyncio import Redis

from bucketlog.log_format.batch import read_header
from bucketlog.log_format.model import SegmentId, TopicIdPartition
from bucketlog.log_format.records import decode_records
from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.backends.memory import MemoryBucket
from bucketlog.tiered_storage.log_cut_reading import read_log
from bucketlog.tiered_storage.segment import Seal, encode_seal
from bucketlog.tiered_storage.state_signature import NO_KEYS
from tests.rigs.broker_rig import Rig, create_topic
from tests.rigs.patience import Deadline
from tests.rigs.readable_log import readable_in
from tests.rigs.wire_client import fetch_values
from tests.servers.own_valkey import OwnValkey

QUICK = {"heartbeat_interval_ms": 100, "session_timeout_ms": 1000}
"""A silent broker is dead soon."""


class Brokers:
    """All of one cluster; `memory` is its bucket."""

    def __init__(self, valkey: OwnValkey, stack: AsyncExitStack) -> None:
        self.memory = MemoryBucket()
        self.cluster_id = uuid4().hex
        self.state_keys = NO_KEYS
        """For brokers that are added from now on."""
        self.redis: Path | None = valkey.path
        self.run_valkeys = False
        """Whether brokers that are added from now on may start Valkeys."""
        self._stack = stack

    def by(self, redis: Path | None) -> Self:
        """Brokers that are added from now on reach Valkey there. None: they have none."""
        self.redis = redis
        return self

    def add(self, **settings: int) -> Rig:
        """A broker that is not started yet."""
        rig = Rig(
            self.redis,
            memory=self.memory,
            cluster_id=self.cluster_id,
            state_keys=self.state_keys,
            runs_valkey=self.run_valkeys,
            **settings,
        )
        self._stack.push_async_callback(rig.stop)
        return rig

    async def start(self, **settings: int) -> Rig:
        rig = self.add(**settings)
        await rig.start()
        return rig

    async def pair(self, **settings: int) -> tuple[Rig, Rig]:
        """Two brokers, and topic `t` of 4 partitions, that both know."""
        first = await self.start(**settings)
        await create_topic(first, "t", 4)
        return first, await self.start(**settings)

    async def until_lifelines_are_seen(self) -> None:
        """Redis misses a lifeline only if a heartbeat found it held."""
        deadline = Deadline("Redis does not see every lifeline")
        async with Redis(unix_socket_path=str(self.redis)) as redis:
            [table] = await redis.keys(f"*{self.cluster_id}*:brokers")
            while not all(
                ormsgpack.unpackb(cast(bytes, row))["lifeline"] for row in await redis.hvals(table)
            ):
                await deadline.pause_async()

    def claims(self) -> int:
        return len(list(self.memory.list(keys.EPOCHS)))

    def claim(self, epoch: int) -> None:
        """As another broker does."""
        assert self.memory.create(keys.epoch_claim(epoch), [b"{}"])

    def writers(self) -> int:
        """So many were registered ever."""
        return len(list(self.memory.list(keys.WRITERS)))

    def seal(self, segment: SegmentId) -> None:
        """As another broker does."""
        assert self.memory.create(keys.segment(segment), [encode_seal(Seal(segment, 1, 1))])

    def read_without_brokers(self, rig: Rig, partition: int = 0) -> tuple[int, int]:
        """The end that a reader of the bucket alone finds in `t`, and the batches it withholds."""
        topic = rig.view.topic("t")
        assert topic is not None
        found = readable_in(read_log(self.memory)).get(TopicIdPartition(topic.topic_id, partition))
        return (found.end_offset, found.withheld) if found else (0, 0)


async def fetch(rig: Rig, offset: int, *, partition: int = 0, max_wait: int = 0) -> Any:
    """The partition's row of the answer."""
    answer = await rig.call(
        ApiKey.FETCH, 11, **fetch_values("t", {partition: offset}, max_wait=max_wait)
    )
    return answer.responses[0].partitions[0]


async def stored(rig: Rig, partition: int = 0) -> list[tuple[int, bytes]]:
    """Offsets and values, all that the broker shows now."""
    found: list[tuple[int, bytes]] = []
    offset = 0
    while True:
        row = await fetch(rig, offset, partition=partition)
        if row.error_code == ErrorCode.offset_out_of_range and not offset:
            offset = row.log_start_offset
            continue
        assert row.error_code == ErrorCode.none, row
        data, at = bytes(row.records or b""), 0
        while at < len(data):
            header = read_header(data, at)
            records = decode_records(data[at : at + header.size_bytes], header)
            found += [(record.offset, bytes(record.value or b"")) for record in records]
            at, offset = at + header.size_bytes, header.next_offset
        if not data:
            return found
