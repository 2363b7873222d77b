"""The configured Redis is out of reach, and brokers run Valkeys meanwhile.

Invariants: the bucket is well all the time, so brokers that reach one another can acknowledge; when
all is over, all brokers are in one epoch on the configured Redis, and no Valkey runs.
"""

import asyncio
from random import Random

from tests.simulation.world import World
from tests.simulation.zone_split import Probe

SHARE = 0.3
READY_S = 60.0
OUTAGE_S = 40
BACK_S = 90.0
"""Beyond the longest time that Redis has to answer before the log moves back."""
LOST_S = 12
"""Seconds without an acknowledgement in an outage: one time-out, and a second one after a kill."""


class RedisOutage:
    def __init__(self, world: World, random: Random) -> None:
        self._world = world
        self._random = random
        self._probes = [Probe(world, broker) for broker in world.brokers]

    async def run(self) -> None:
        """In some of the seeds, after all other faults have healed."""
        world = self._world
        if self._random.random() >= SHARE or not await world.until(world.is_well, READY_S):
            return
        if not await self._allow():
            return
        kinds = (self.plain, self.holder_dies, self.comes_and_goes, self.one_alone)
        (kind,) = self._random.choices(kinds, (2, 3, 2, 2))
        world.trace.count(f"fault: outage, {kind.__name__.replace('_', ' ')}")
        probing = [asyncio.create_task(probe.run()) for probe in self._probes]
        try:
            await kind()
        finally:
            self._reach(True)
            for broker in world.brokers:
                broker.start_if_dead()
            await self._end()
            for task in probing:
                task.cancel()

    async def _allow(self) -> bool:
        """From now on, brokers may run Valkeys and follow those of others: they start anew."""
        for broker in self._world.brokers:
            broker.runs_valkeys = True
            broker.kill()
            broker.start()
        return await self._world.until(self._world.is_well, READY_S)

    def _reach(self, is_reached: bool, *numbers: int) -> None:
        for number in numbers or range(len(self._world.brokers)):
            self._world.redis_ways[number].is_cut = not is_reached

    async def plain(self) -> None:
        self._reach(False)
        await self._measure()

    async def holder_dies(self) -> None:
        """Once or twice."""
        self._reach(False)
        measuring = asyncio.create_task(self._measure())
        for _ in range(self._random.randint(1, 2)):
            await asyncio.sleep(6 + self._random.random() * 4)
            self._kill_holders()
        await measuring

    def _kill_holders(self) -> None:
        """Kill the brokers that run Valkeys. If all brokers run one, kill only one broker."""
        owners = {valkey.owner for valkey in self._world.valkeys.running()}
        holders = [broker for broker in self._world.brokers if broker.name in owners]
        if len(holders) == len(self._world.brokers):
            del holders[1:]
        for broker in holders:
            broker.kill()
            self._world.loop.call_later(1.0, broker.start_if_dead)

    async def comes_and_goes(self) -> None:
        for _ in range(self._random.randint(2, 3)):
            self._reach(False)
            await asyncio.sleep(self._random.random() * 12)
            self._reach(True)
            await asyncio.sleep(self._random.random() * 12)

    async def one_alone(self) -> None:
        """The others keep the log, with the configured Redis. The broker that is alone may start a
        Valkey when they begin an epoch, but does not keep this Valkey."""
        world = self._world
        number = self._random.randrange(len(world.brokers))
        self._reach(False, number)
        await self._measure()
        if world.valkeys.running() and world.trace.violation is None:
            world.trace.violate("one alone", "its Valkey runs, although others reach Redis")

    async def _measure(self) -> None:
        """Most of the time, some broker acknowledges."""
        world = self._world
        began = int(world.loop.time()) + 1
        await asyncio.sleep(OUTAGE_S + 1)
        seconds = set(range(began, began + OUTAGE_S))
        down = seconds.difference(*(probe.seconds for probe in self._probes))
        world.trace.count(f"outage: seconds without an acknowledgement: {len(down)}")
        if len(down) > LOST_S:
            world.trace.violate(
                "availability",
                f"{len(down)} of {OUTAGE_S} s without an acknowledgement: "
                f"{sorted(second - began for second in down)}",
            )

    async def _end(self) -> None:
        world = self._world

        def is_back() -> bool:
            return (
                world.is_well()
                and not world.valkeys.running()
                and all(
                    broker.node is not None
                    and broker.node.servers is not None
                    and broker.node.servers.endpoint is None
                    for broker in world.brokers
                )
            )

        if not await world.until(is_back, BACK_S) and world.trace.violation is None:
            running = [one.owner for one in world.valkeys.running()]
            epochs = [one.node.epochs.work.epoch for one in world.brokers if one.node]
            world.trace.violate(
                "outage", f"{BACK_S} s after it, Valkeys of {running} run, epochs are {epochs}"
            )
