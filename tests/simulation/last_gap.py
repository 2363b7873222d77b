"""The last accident: a gap in a partition that nobody writes to any more.

One broker dies with a reserved batch. While the others seal its chain, another broker's batch above
the gap is still being written, so a stamp written then would reach only the gap's start. When that
batch is acknowledged, the broker that is first in line for fresh stamps dies with its stamp, or
stops. No batch follows that would carry a stamp to the gap's end: readers of the bucket alone
depend on the remaining broker.
"""

import asyncio
from functools import partial

from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.metadata.fold import fold
from bucketlog.stateless_broker.produce.fresh_stamps import TASK
from tests.simulation.brokers import SimulatedBroker
from tests.simulation.clients import Client
from tests.simulation.committed import committed
from tests.simulation.network import SlowSpell, Trap
from tests.simulation.world import TOPIC, World

NEVER_S = 60.0
RESERVED_AFTER_S = 0.5
WRITES_AFTER_S = 0.2
"""Time from the first death to the other broker's batch, which is reserved before the seal."""
ON_ITS_WAY_S = 2.2
"""Duration of the batch's PUT. It is longer than others wait before they seal the dead broker's
chain, and shorter than the time after which a broker that cannot write gives up its roles."""
SPELL_S = 0.8
HIDDEN_S_MAX = 2.0
"""An acknowledged record may be hidden from readers of the bucket alone for this long."""


async def leave_a_gap(world: World) -> None:
    """Returns when readers can read past the gap, or could not in time. All brokers run then."""
    random = world.random("last gap")
    client = Client("last", world.surface, random)
    dead, other = random.sample(world.brokers, 2)
    _write_slowly(world, dead, NEVER_S)
    client.send(dead, ApiKey.PRODUCE, 9, **client.lone_batch(TOPIC, 0, b"nlast:0"))
    await asyncio.sleep(RESERVED_AFTER_S)
    dead.kill()
    await asyncio.sleep(WRITES_AFTER_S)
    _write_slowly(world, other, ON_ITS_WAY_S)
    sent = client.send(other, ApiKey.PRODUCE, 9, **client.lone_batch(TOPIC, 0, b"nlast:1"))
    await asyncio.wait([sent], timeout=10.0)
    if _is_hidden(world):
        world.trace.count("last gap: hidden when acknowledged")
    stops = random.random() < 0.5
    for broker in world.brokers:
        if _is_first_in_line(broker):
            spring = partial(broker.pause, NEVER_S) if stops else broker.kill
            world.network.traps.append(Trap(broker.name, "create log/", False, spring, NEVER_S))
    if not await world.until(lambda: not _is_hidden(world), HIDDEN_S_MAX):
        world.trace.violate(
            "bucket reader",
            f"records are still hidden {HIDDEN_S_MAX} s after their acknowledgement",
        )
    world.network.heal()
    for broker in world.brokers:
        if broker.process is None:
            world.trace.count("last gap: brokers that died")
        broker.go_on()
        broker.start_if_dead()


def _write_slowly(world: World, broker: SimulatedBroker, delay_s: float) -> None:
    until = world.loop.time() + SPELL_S
    world.network.slow_spells.append(SlowSpell(broker.name, "create log/", until, delay_s))


def _is_first_in_line(broker: SimulatedBroker) -> bool:
    node = broker.node
    if node is None or node.view is None:
        return False  # it starts
    return not node.membership.place_in_line(TASK)


def _is_hidden(world: World) -> bool:
    """Whether the partition has a gap that nothing in the bucket proves to be void."""
    log = committed(world)
    partition = world.surface.partition(TOPIC, 0)
    parts = [part for index in log for part in index.partitions if part.partition == partition]
    end = gap = 0
    for part in parts:
        for row in part.batches:
            if row.base_offset > end:
                gap = row.base_offset
            end = row.next_offset
    stamps = [part.hw_stamp for part in parts]
    return gap > max(stamps) and gap > fold(log).partitions[partition].batches_from
