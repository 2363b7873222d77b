"""The last accident: a gap in a partition to which nobody writes any more.

One broker dies with a batch that it had reserved; what another one writes after it is committed
behind the gap. No batch comes that would carry a fresh stamp: only stamps that somebody writes for
their own sake show readers of the bucket alone past it.
"""

import asyncio

from bucketlog.model import Buffer
from tests.simulation.clients import Client
from tests.simulation.network import Trap
from tests.simulation.world import TOPIC, World
from tests.wire_client import build_batch

NEVER_S = 60.0
RESTART_S = 1.0


async def leave_a_gap(world: World) -> None:
    """Returns when the broker is dead, and what the other one wrote has had its time."""
    random = world.random("last gap")
    client = Client("last", world.surface, random)
    dead, other = random.sample(world.brokers, 2)

    def kill() -> None:
        dead.kill()
        world.loop.call_later(RESTART_S, dead.start_if_dead)

    world.network.traps.append(Trap(dead.name, "create log/", False, kill, NEVER_S))
    client.send(dead, "produce", 9, **_batch(world, b"nlast:0"))
    if not await world.until(lambda: not world.network.traps, 5.0):
        return
    sent = client.send(other, "produce", 9, **_batch(world, b"nlast:1"))
    await asyncio.wait([sent], timeout=5.0)


def _batch(world: World, value: bytes) -> dict[str, object]:
    world.truth.sent.add(value)
    records: Buffer = build_batch(
        [(None, value)], producer_id=-1, producer_epoch=-1, base_sequence=-1
    )
    data = [{"name": TOPIC, "partition_data": [{"index": 0, "records": records}]}]
    return {"transactional_id": None, "acks": -1, "timeout": 3_000, "topic_data": data}
