"""The last accident: a gap in a partition to which nobody writes any more.

One broker dies with a batch that it had reserved; what another one writes after it is committed
behind the gap. No batch comes that would carry a fresh stamp: only stamps that somebody writes for
their own sake show readers of the bucket alone past it.
"""

import asyncio

from bucketlog.log_format.wire.api_keys import ApiKey
from tests.simulation.clients import Client
from tests.simulation.network import Trap
from tests.simulation.world import TOPIC, World

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
    client.send(dead, ApiKey.PRODUCE, 9, **client.lone_batch(TOPIC, 0, b"nlast:0"))
    if not await world.until(lambda: not world.network.traps, 5.0):
        return
    sent = client.send(other, ApiKey.PRODUCE, 9, **client.lone_batch(TOPIC, 0, b"nlast:1"))
    await asyncio.wait([sent], timeout=5.0)
