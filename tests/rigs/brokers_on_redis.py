"""Brokers without sockets, on a Redis that is given by its URL."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any
from uuid import uuid4

from bucketlog.tiered_storage.backends.memory import MemoryBucket
from tests.rigs.broker_rig import Rig, create_topic

QUICK: dict[str, Any] = {"redis_timeout_ms": 1000, "heartbeat_interval_ms": 100}
LOOKS_WHEN_IT_MUST = {"redis_lookup_interval_ms": 1_000_000}


@asynccontextmanager
async def brokers(url: str, count: int = 2, **settings: Any) -> AsyncIterator[list[Rig]]:
    """With topic `t` of 4 partitions."""
    memory, cluster_id = MemoryBucket(), uuid4().hex
    async with AsyncExitStack() as stack:
        rigs: list[Rig] = []
        for _ in range(count):
            rig = Rig(url, memory=memory, cluster_id=cluster_id, **QUICK, **settings)
            stack.push_async_callback(rig.stop)
            await rig.start()
            if not rigs:
                await create_topic(rig, "t", 4)
            rigs.append(rig)
        yield rigs


def are_in(rigs: list[Rig], epoch: int) -> bool:
    return all(rig.epoch == epoch and rig.health.ready for rig in rigs)
