"""Faults of several events, one after the other, that the rules about epochs are made for.

Invariants: each event is one that happens to real systems: brokers die, pause and start, Redis is
wiped or another server is promoted, requests are slow or come twice; nothing reaches into a broker.
Whatever a fault changed is as it was when it has ended, except which server is the primary.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from random import Random

from redis.exceptions import RedisError

from bucketlog.tiered_storage import keys
from tests.simulation.brokers import SimulatedBroker
from tests.simulation.clients import Client
from tests.simulation.loop import WORLD
from tests.simulation.network import SlowSpell, Trap
from tests.simulation.redis_servers import Server
from tests.simulation.world import World

LONG_S = 60.0
"""Of a pause that is ended by hand."""
READY_S = 8.0
A_SEED = 2
LEFT_BEHIND_SHARE = 0.4
SEAL = f"seal {keys.LOG}"
NEWCOMERS = 3
QUIET_S = 2.0
Request = Callable[[Server], object]


class Activations:
    """What brokers have sent to Redis to activate the last epoch, to be delivered again."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._sent: dict[str, list[Request]] = {}
        self.last: list[Request] = []
        """Its nonce first, then what is staged, and the script."""
        world.network.overhear = self._overhear

    def _overhear(self, who: str, label: str, request: Request) -> None:
        if label == "sadd":
            self._sent[who] = []
        elif label != "hset" and not label.startswith("activate"):
            return
        sent = self._sent.setdefault(who, [])
        sent.append(request)
        if label.startswith("activate"):
            self.last = list(sent)

    def again(self, server: Server, requests: list[Request]) -> None:
        self._world.trace.count("redis: an activation comes again")
        self._world.trace.add("network", f"{server.name} gets an activation again")
        for request in requests:
            with suppress(RedisError):
                request(server)


class EpochFaults:
    """`run` has some of them happen, each where the cluster is well."""

    def __init__(self, world: World, random: Random) -> None:
        self._world = world
        self._random = random
        self._activations = Activations(world)
        self._all: list[Callable[[], Awaitable[None]]] = [
            self.set_back_under_a_broker,
            self.activation_again_after_a_wipe,
            self.older_activation_again,
            self.activation_at_two_servers,
            self.claimed_at_once_on_both_sides,
            self.started_before_the_claim,
            self.registered_late,
        ]
        self._all = random.sample(self._all, len(self._all))
        if world.deletes_soon:
            self._all.insert(0, random.choice((self.away_for_long, self.sealed_late)))

    async def run(self) -> None:
        last = [self.left_behind] if self._random.random() < LEFT_BEHIND_SHARE else []
        for call in [*self._all[:A_SEED], self.key_lost, *last]:
            if not await self._world.until(self._world.is_well, READY_S):
                return
            await self._run(call)

    async def _run(self, call: Callable[[], Awaitable[None]]) -> None:
        world = self._world
        world.trace.fault(call)
        try:
            await call()
        finally:
            world.network.traps.clear()
            world.routes[:] = [world.primary] * len(world.routes)
            for broker in world.brokers:
                broker.go_on()
                broker.start_if_dead()

    def _one_and_others(self) -> tuple[SimulatedBroker, list[SimulatedBroker]]:
        brokers = self._random.sample(self._world.brokers, len(self._world.brokers))
        return brokers[0], brokers[1:]

    def _pause_all(self, brokers: list[SimulatedBroker]) -> None:
        for broker in brokers:
            broker.pause(LONG_S)

    def _set_trap(
        self,
        broker: SimulatedBroker,
        label: str,
        spring: Callable[[], None] = lambda: None,
        *,
        after: bool = False,
        delay_s: float = 0.0,
    ) -> None:
        self._world.network.traps.append(Trap(broker.name, label, after, spring, delay_s))

    def _promote(self, server: Server, brokers: list[SimulatedBroker]) -> None:
        """A replica that has all that the primary had becomes another one, for some brokers."""
        world = self._world
        server.restart(world.primary.snapshot())
        world.primary = server
        for broker in brokers:
            world.routes[broker.number] = server

    async def _restarted(self, broker: SimulatedBroker, label: str) -> bool:
        """It starts again, and is paused after a request of that kind. False: it did not come to
        that."""
        broker.kill()
        broker.start()
        self._set_trap(broker, label, partial(broker.pause, LONG_S), after=True)
        return await self._world.until(lambda: broker.is_paused, READY_S)

    # One Redis -------------------------------------------------------------------------------

    async def set_back_under_a_broker(self) -> None:
        """The primary has older data again; the one broker that goes on then was away since just
        that moment, and has seen nothing that is missing now."""
        one, others = self._one_and_others()
        primary = self._world.primary
        past = primary.snapshot()
        one.pause(LONG_S)
        await asyncio.sleep(0.7 + self._random.random() * 0.5)
        self._pause_all(others)
        primary.promote(past)
        one.go_on()
        await asyncio.sleep(2.0)

    async def activation_again_after_a_wipe(self) -> None:
        """What was acknowledged since the activation is unknown to the broker that goes on then."""
        one, others = self._one_and_others()
        primary = self._world.primary
        primary.wipe()
        self._set_trap(one, f"create {keys.WRITERS}", partial(one.pause, LONG_S), after=True)
        if not await self._world.until(lambda: one.is_paused, READY_S):
            return
        await asyncio.sleep(1.0 + self._random.random())
        self._pause_all(others)
        primary.wipe()
        self._activations.again(primary, self._activations.last[1:])
        one.go_on()
        await asyncio.sleep(2.0)

    async def older_activation_again(self) -> None:
        """An activation comes again when a later epoch is active; the broker that goes on then has
        only just joined the older one. New producers come."""
        one, others = self._one_and_others()
        world, primary = self._world, self._world.primary
        before = self._activations.last
        primary.wipe()
        await world.until(lambda: self._activations.last is not before, READY_S)
        await self._newcomers(others[0])
        older = self._activations.last
        if not await self._restarted(one, "position"):
            return
        primary.lose_key(self._random)
        await world.until(lambda: self._activations.last is not older, READY_S)
        await asyncio.sleep(1.0)
        self._pause_all(others)
        self._activations.again(primary, older)
        one.go_on()
        await self._newcomers(one)

    async def _newcomers(self, broker: SimulatedBroker) -> None:
        """Producers that ask this broker for their ids."""
        clients = [
            Client(f"newcomer{n}", self._world.surface, self._random) for n in range(NEWCOMERS)
        ]
        asked = [asyncio.create_task(client.new_producer_id(broker)) for client in clients]
        await asyncio.wait(asked, timeout=2.0)
        for task in asked:
            task.cancel()

    async def key_lost(self) -> None:
        self._world.primary.lose_key(self._random)
        await asyncio.sleep(1.0)

    # Two Redis -------------------------------------------------------------------------------

    async def left_behind(self) -> None:
        """A paused broker finds its old primary when it continues. The others have begun an epoch
        on another primary, in which transactions have ended. The broker first gets the requests of
        this time."""
        one, others = self._one_and_others()
        world, before = self._world, self._activations.last
        one.pause(LONG_S)
        self._promote(world.another_server(self._random), others)
        await world.until(lambda: self._activations.last is not before, READY_S)
        await asyncio.sleep(3.0 + self._random.random())
        one.go_on()
        await asyncio.sleep(0.5)

    async def activation_at_two_servers(self) -> None:
        """An activation arrives at the primary, and once more at the replica that is promoted at
        that moment; one broker stays with the former."""
        _, others = self._one_and_others()
        world, former, latter = (
            self._world,
            self._world.primary,
            self._world.another_server(self._random),
        )

        def spring() -> None:
            world.network.traps.clear()
            self._promote(latter, others)
            latter.learn_scripts(former)
            again = partial(self._activations.again, latter, self._activations.last)
            world.loop.call_later(0.01, again, context=WORLD)

        former.wipe()
        for broker in world.brokers:
            self._set_trap(broker, "activate", spring)
        await asyncio.sleep(4.0)

    async def claimed_at_once_on_both_sides(self) -> None:
        """Two brokers find a new primary when the old one, the third one's, is wiped."""
        _, others = self._one_and_others()
        world, former = self._world, self._world.primary
        for broker in world.brokers:
            self._set_trap(broker, f"create {keys.EPOCHS}", delay_s=1.0)
        self._promote(self._world.another_server(self._random), others)
        former.wipe()
        await asyncio.sleep(5.0)

    async def started_before_the_claim(self) -> None:
        """Sealing takes long; a broker that still finds the old primary starts meanwhile."""
        world = self._world
        one, (slow, third) = self._one_and_others()
        self._promote(self._world.another_server(self._random), [slow])

        def spring() -> None:
            spell = SlowSpell(slow.name, SEAL, world.loop.time() + 1.0, 4.5)
            world.network.slow_spells.append(spell)
            third.pause(LONG_S)
            one.kill()
            one.start()

        self._set_trap(slow, f"list {keys.WRITERS}", spring, after=True)
        await asyncio.sleep(6.0)

    async def registered_late(self) -> None:
        """A broker's registration for the old primary's epoch takes so long that the writers are
        listed for the next one."""
        one, others = self._one_and_others()
        one.kill()
        one.start()
        promote = partial(self._promote, self._world.another_server(self._random), others)
        self._set_trap(one, f"create {keys.WRITERS}", promote, delay_s=2.5)
        await asyncio.sleep(6.0)

    # Deletion --------------------------------------------------------------------------------

    async def away_for_long(self) -> None:
        """A broker pauses beside the old primary until what ended its writer is deleted."""
        one, others = self._one_and_others()
        world = self._world
        there = [key for key in world.store.objects if key.startswith(keys.WRITERS)]
        one.pause(LONG_S)
        self._promote(self._world.another_server(self._random), others)

        def gone() -> bool:
            return all(key not in world.store.objects for key in there)

        await world.until(gone, 20.0)
        one.go_on()
        await asyncio.sleep(4.0)

    async def sealed_late(self) -> None:
        """A broker that begins the next epoch elsewhere, when nothing has come for a moment, knows
        where all chains end, and is paused; the others write on, and what nobody needs of that is
        deleted."""
        late, _ = self._one_and_others()
        world = self._world
        for broker in world.brokers:
            spell = SlowSpell(
                broker.name, "create log/", world.loop.time() + QUIET_S, 1.2 * QUIET_S
            )
            world.network.slow_spells.append(spell)
        await asyncio.sleep(QUIET_S / 4)
        before: set[str] = set()

        def listed() -> None:
            late.pause(LONG_S)
            before.update(world.store.history)

        def claimed() -> None:
            self._set_trap(late, f"list {keys.FLOORS}", listed, after=True)

        def deleted() -> bool:
            return bool(before) and any(
                key.startswith(keys.LOG) and key not in before and key not in world.store.objects
                for key in world.store.history
            )

        self._set_trap(late, f"create {keys.EPOCHS}", claimed, after=True)
        self._promote(self._world.another_server(self._random), [late])
        await world.until(deleted, 18.0)
        late.go_on()
        await asyncio.sleep(3.0)
