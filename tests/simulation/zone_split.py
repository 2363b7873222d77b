"""Brokers see different Redis servers for a long time. Most of the time, most brokers can work.

Invariants: there is no other fault, so only the brokers themselves can keep the majority from
acknowledging. When the split ends, all brokers find one primary.
"""

import asyncio
from collections.abc import Sequence
from random import Random

from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.api_keys import ApiKey
from tests.simulation.brokers import SimulatedBroker
from tests.simulation.clients import Client
from tests.simulation.redis_servers import Server
from tests.simulation.world import TOPIC, World

SHARE = 0.25
"""The share of the seeds with a split: a split costs as much as the rest of a run."""
SPLIT_S = 60
FLAP_S = 7.0
AVAILABLE_SHARE = 0.95
FLAPPING_SHARE = 0.85
THREE_WAYS_SHARE = 0.9
STRAY_S = 2
"""Further seconds that the majority may lose if the minority was sent elsewhere (5 s in all)."""
ONE_S = 2
"""Further seconds that one broker of the majority may lose: it may follow later than others."""
TOGETHER_S = 10.0
READY_S = 60.0
PROBE_S = 0.2
PROBE_ANSWER_S = 4.0


class Probe(Client):
    """Writes to one broker repeatedly. `seconds` are those with an acknowledgement."""

    def __init__(self, world: World, broker: SimulatedBroker) -> None:
        name = f"probe{broker.number}"
        super().__init__(name, world.surface, world.random(name))
        self.broker = broker
        self.seconds: set[int] = set()
        self._world = world
        self._sent: set[asyncio.Task[None]] = set()
        self._values = 0

    async def run(self) -> None:
        try:
            while True:
                task = asyncio.create_task(self._write())
                self._sent.add(task)
                task.add_done_callback(self._sent.discard)
                await asyncio.sleep(PROBE_S)
        finally:
            for task in self._sent:
                task.cancel()

    async def _write(self) -> None:
        partition = self.random.randrange(self._world.sizes.partitions)
        self._values += 1
        value = f"n{self.name}:{self._values}".encode()
        wanted = self.lone_batch(TOPIC, partition, value)
        answer = await self.call(self.broker, ApiKey.PRODUCE, 9, timeout_s=PROBE_ANSWER_S, **wanted)
        if answer is None:
            return
        row = answer.responses[0].partition_responses[0]
        if ErrorCode(row.error_code) is ErrorCode.none:
            where = self.surface.partition(TOPIC, partition)
            self.surface.truth.acknowledge(self.name, where, row.base_offset, [value])
            self.seconds.add(int(self._world.loop.time()))


class ZoneSplit:
    def __init__(self, world: World, random: Random) -> None:
        self._world = world
        self._random = random
        self._probes = [Probe(world, broker) for broker in world.brokers]

    async def run(self) -> None:
        """Split the brokers in some of the seeds, after all other faults have healed."""
        if self._random.random() >= SHARE:
            return
        if not await self._world.until(self._all_have_roles, READY_S):
            return
        brokers = self._random.sample(self._world.brokers, len(self._world.brokers))
        kinds = (self.majority_moves, self.minority_moves, self.flapping, self.three_ways)
        (kind,) = self._random.choices(kinds, (4, 3, 2, 2))
        self._world.trace.count(f"fault: {kind.__name__.replace('_', ' ')}")
        probing = [asyncio.create_task(probe.run()) for probe in self._probes]
        try:
            await kind(brokers)
        finally:
            self._world.routes[:] = [self._world.primary] * len(self._world.routes)
            await self._end()
            for task in probing:
                task.cancel()

    def _all_have_roles(self) -> bool:
        """Whether all brokers are well, and none still sends its clients away since a fault."""
        nodes = [broker.node for broker in self._world.brokers if broker.node is not None]
        return self._world.is_well() and not any(
            node.membership.has_handed_over for node in nodes if node.membership.has_joined
        )

    async def _is_well(self, longest_s: float) -> bool:
        return await self._world.until(self._world.is_well, longest_s)

    async def _end(self) -> None:
        """All brokers find the primary again."""
        if not await self._is_well(TOGETHER_S) and self._world.trace.violation is None:
            epochs = [
                broker.node.epochs.work.epoch for broker in self._world.brokers if broker.node
            ]
            self._world.trace.violate("split", f"{TOGETHER_S} s after it, epochs are {epochs}")

    def _promote(self, brokers: Sequence[SimulatedBroker]) -> Server:
        """Make a replica the primary of these brokers."""
        world = self._world
        server = world.another_server(self._random)
        server.restart(world.primary.snapshot() if self._random.random() < 0.7 else [])
        for broker in brokers:
            world.routes[broker.number] = server
        return server

    async def _measure(self, majority: Sequence[SimulatedBroker], stray_s: float = 0.0) -> None:
        """The majority acknowledges in nearly all seconds, and so does each broker of it."""
        world = self._world
        began = int(world.loop.time()) + 1
        await asyncio.sleep(SPLIT_S + 1)
        split = set(range(began, began + SPLIT_S))
        probes = [probe for probe in self._probes if probe.broker in majority]
        down = split.difference(*(probe.seconds for probe in probes))
        world.trace.count(f"split: seconds without the majority: {len(down)}")
        lost_s = (1 - AVAILABLE_SHARE) * SPLIT_S + stray_s
        self._judge("the majority", down, lost_s, began)
        for probe in probes:
            self._judge(probe.name, split - probe.seconds, lost_s + ONE_S, began)

    async def _measure_any(self, share: float) -> None:
        """No majority lasts, yet some broker acknowledges most of the time."""
        began = int(self._world.loop.time()) + 1
        await asyncio.sleep(SPLIT_S + 1)
        split = set(range(began, began + SPLIT_S))
        down = split.difference(*(probe.seconds for probe in self._probes))
        self._world.trace.count(f"split: seconds without any broker: {len(down)}")
        self._judge("any broker", down, (1 - share) * SPLIT_S, began)

    def _judge(self, who: str, down: set[int], lost_s: float, began: int) -> None:
        if len(down) > lost_s:
            self._world.trace.violate(
                "availability",
                f"{who}: {len(down)} of {SPLIT_S} s without an acknowledgement, "
                f"{sorted(second - began for second in down)}",
            )

    async def majority_moves(self, brokers: list[SimulatedBroker]) -> None:
        """One broker stays with the old primary."""
        self._world.primary = self._promote(brokers[1:])
        await self._measure(brokers[1:])

    async def minority_moves(self, brokers: list[SimulatedBroker]) -> None:
        """One broker is sent to a replica. In the end, all brokers are, or this one comes back."""
        server = self._promote(brokers[:1])
        await self._measure(brokers[1:], STRAY_S)
        if self._random.random() < 0.5:
            self._world.primary = server

    async def flapping(self, brokers: list[SimulatedBroker]) -> None:
        """One broker changes to and fro between two primaries."""
        old = self._world.primary
        self._world.primary = self._promote(brokers[:2])
        flapping = asyncio.create_task(self._flap(brokers[0], (old, self._world.primary)))
        try:
            await self._measure_any(FLAPPING_SHARE)
        finally:
            flapping.cancel()

    async def _flap(self, broker: SimulatedBroker, servers: tuple[Server, Server]) -> None:
        while True:
            for server in servers:
                await asyncio.sleep(FLAP_S * (0.5 + self._random.random()))
                self._world.routes[broker.number] = server

    async def three_ways(self, brokers: list[SimulatedBroker]) -> None:
        """Each broker finds another primary."""
        world = self._world
        for broker, server in zip(brokers, world.servers, strict=True):
            if server is not world.primary:
                server.restart(world.primary.snapshot() if self._random.random() < 0.5 else [])
            world.routes[broker.number] = server
        await self._measure_any(THREE_WAYS_SHARE)
