"""What goes wrong, when and for how long, by chance.

Invariant: `heal` ends all of it: every broker runs, every request arrives, and all brokers reach
one Redis.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from random import Random
from typing import TypeVar

from tests.simulation.brokers import SimulatedBroker
from tests.simulation.coincidences import Coincidences
from tests.simulation.epoch_faults import EpochFaults
from tests.simulation.loop import WORLD
from tests.simulation.network import Trap, Way
from tests.simulation.redis_servers import Server, Snapshot
from tests.simulation.tier_faults import TierFaults
from tests.simulation.world import World

T = TypeVar("T")

FAULTS_LEAST = 12
READINGS_MOST = 8
"""Of those that faults begin."""
PAUSES_AT_RESERVE = ((2.9, 0.0), (2.7, 2.9), (2.9, 0.0), (6.0, 0.0), (7.0, 9.0))
"""For how long a broker is paused, and how late its reservation arrives then. Roles go to others
after 1.5 s of silence, chains are sealed after 3 s."""
DIES_BEHIND_S = 0.8
SEALED_BEFORE_S = 12.0
"""The delay of a segment: its chain is sealed before it arrives. Its broker dies earlier."""
SNAPSHOT_EVERY_S = 0.7
SNAPSHOTS_KEPT = 8
LONGEST_SPLIT_S = 20.0


class Faults:
    def __init__(self, world: World, random: Random) -> None:
        self._world = world
        self._random = random
        self._snapshots: list[Snapshot] = []
        self._is_over = False
        self._is_on = False
        """Not before the first one, and not beside one of several events."""
        self._epoch_faults = EpochFaults(world, random)
        world.surface.provoke = self._provoke
        world.network.on_arrival = self._notice
        self._readings = 0
        self._coincidences = Coincidences(world, random, self)
        self._tier_faults = TierFaults(world, world.random("tier faults"), self)
        self._tasks: list[asyncio.Task[object]] = []
        self._usual = [*world.redis_ways, *world.bucket_ways]
        self._saved = [replace(way) for way in self._usual]
        self._kinds: list[tuple[Callable[[], None], int]] = [
            (self.kill, 5),
            (self.kill_all, 1),
            (self.kill_before_put, 3),
            (self.kill_after_put, 3),
            (self.wipe_after_put, 1),
            (self.wipe_before_put, 3),
            (self.resynchronise, 2),
            (self.pause_before_put, 2),
            (self.read_beside_put, 3),
            (self.pause, 5),
            (self.lose_lifeline, 3),
            (self.wipe, 3),
            (self.lose_key, 2),
            (self.restart_redis, 3),
            (self.fail_over, 4),
            (self.fail_back, 3),
            (self.cut_redis, 3),
            (self.slow_redis, 2),
            (self.unsure_redis, 4),
            (self.cut_bucket, 3),
            (self.slow_bucket, 3),
            (self.unsure_bucket, 4),
            *self._coincidences.kinds,
            *self._tier_faults.kinds,
        ]

    async def run(self, longest_s: float) -> None:
        world, random = self._world, self._random
        deadline = world.loop.time() + longest_s
        self._task = asyncio.create_task(self._take_snapshots())
        shortest_s, range_s = random.choice(((0.2, 3.0), (1.0, 4.0), (0.1, 1.5)))
        made = 0
        await asyncio.sleep(1.0 + random.random() * 2.0)
        await self._epoch_faults.run()
        await self._tier_faults.run()
        await self._coincidences.run()
        self._is_on = True
        while world.trace.violation is None and (
            made < FAULTS_LEAST or world.loop.time() < deadline
        ):
            made += 1
            await asyncio.sleep(shortest_s + random.random() * range_s)
            calls, weights = zip(*self._kinds, strict=True)
            call = random.choices(calls, weights)[0]
            world.trace.fault(call)
            call()

    def heal(self) -> None:
        world = self._world
        self._is_over, self._is_on = True, False
        world.network.heal()
        for way, usual in zip(self._usual, self._saved, strict=True):
            vars(way).update(vars(usual))
        world.routes[:] = [self._world.primary] * len(world.routes)
        for broker in world.brokers:
            broker.go_on()
            if broker.process is None:
                broker.start()
        world.trace.add("fault", "all is healed")

    async def _take_snapshots(self) -> None:
        while not self._is_over:
            await asyncio.sleep(SNAPSHOT_EVERY_S)
            self._snapshots.append(self._world.primary.snapshot())
            del self._snapshots[:-SNAPSHOTS_KEPT]

    def later(self, longest_s: float, call: Callable[..., None], *args: object) -> None:
        self.later_by(self._random.random() * longest_s, call, *args)

    def later_by(self, delay_s: float, call: Callable[..., None], *args: object) -> None:
        """Unless all is healed by then."""
        self._world.loop.call_later(
            delay_s, lambda: None if self._is_over else call(*args), context=WORLD
        )

    # Brokers ---------------------------------------------------------------------------------

    def kill(self) -> None:
        self.kill_for_a_while(self._random.choice(self._world.brokers))

    def kill_for_a_while(self, broker: SimulatedBroker) -> None:
        broker.kill()
        self.later(4.0, broker.start_if_dead)

    def trap(
        self,
        broker: SimulatedBroker,
        *,
        after: bool,
        spring: Callable[[], None],
        label: str = "create log/",
        delay_s: float = 0.0,
    ) -> None:
        """One at a time."""
        trap = Trap(broker.name, label, after, spring, delay_s)
        self._world.network.traps = [trap]

    def _provoke(self, what: str, broker: SimulatedBroker, share: float) -> None:
        """A client is about to send this broker a request. During the request, the broker may be
        killed or paused. It may also stall: its next segment does not arrive, but later ones do."""
        alive = [one.name for one in self._world.brokers]
        is_set = any(trap.who in alive for trap in self._world.network.traps)
        if not self._is_on or is_set or self._random.random() > share:
            return
        self._world.trace.count(f"fault: {what} at the worst time")
        if what == "kill":
            self.trap(broker, after=False, spring=partial(self.kill_for_a_while, broker))
            return
        if what == "stall":
            dies = partial(self.later_by, DIES_BEHIND_S, self.kill_for_a_while, broker)
            self.trap(broker, after=False, spring=dies, delay_s=SEALED_BEFORE_S)
            return
        pause_s, late_s = self._random.choice(PAUSES_AT_RESERVE)
        pause = partial(broker.pause, pause_s)
        self.trap(broker, after=late_s == 0, spring=pause, label="reserve", delay_s=late_s)

    def _notice(self, who: str, label: str) -> None:
        """A reading begins where somebody has just been fenced."""
        if self._is_over:
            return
        self._coincidences.notice(who, label)
        self._tier_faults.notice(who, label)
        if self._is_on and label.startswith("fence") and self._random.random() < 0.5:
            self._world.loop.call_later(0.5, self.read, context=WORLD)

    def read(self) -> None:
        if self._readings < READINGS_MOST:
            self._readings += 1
            self._tasks.append(asyncio.create_task(self._world.readers[0].read()))

    def read_beside_put(self) -> None:
        """A reader of the bucket alone reads while a segment is on its way."""
        broker = self._random.choice(self._world.brokers)

        def spring() -> None:
            self._world.loop.call_later(1.0, self.read, context=WORLD)

        self.trap(broker, after=False, spring=spring, delay_s=2.5)

    def kill_before_put(self) -> None:
        broker = self._random.choice(self._world.brokers)
        self.trap(broker, after=False, spring=partial(self.kill_for_a_while, broker))

    def kill_after_put(self) -> None:
        broker = self._random.choice(self._world.brokers)
        self.trap(broker, after=True, spring=partial(self.kill_for_a_while, broker))

    def pause_before_put(self) -> None:
        """Its segment comes when others have given it up."""
        broker = self._random.choice(self._world.brokers)
        self.trap(broker, after=False, spring=partial(broker.pause, 9.0))

    def wipe_after_put(self) -> None:
        broker = self._random.choice(self._world.brokers)
        self.trap(broker, after=True, spring=self.wipe)

    def wipe_before_put(self) -> None:
        """The next epoch's seal comes before the segment."""
        broker = self._random.choice(self._world.brokers)
        self.trap(broker, after=False, spring=self.wipe, delay_s=4.0)

    def kill_all(self) -> None:
        for broker in self._world.brokers:
            broker.kill()
            self.later(3.0, broker.start_if_dead)

    def pause(self) -> None:
        broker = self._random.choice(self._world.brokers)
        broker.pause(self._random.choice((0.3, 2.0, 5.0, 12.0)) * (0.5 + self._random.random()))

    def lose_lifeline(self) -> None:
        """The others may consider a live broker dead, which works again in a moment."""
        broker = self._random.choice(self._world.brokers)
        broker.lose_lifeline()
        if self._random.random() < 0.7:
            broker.pause(0.1 + self._random.random())

    # Redis -----------------------------------------------------------------------------------

    def wipe(self) -> None:
        self._world.primary.wipe()

    def lose_key(self) -> None:
        """A part of the state goes: somebody's DEL, or an eviction."""
        self._world.primary.lose_key(self._random)

    def _some_past(self) -> Snapshot:
        return self._random.choice([*self._snapshots, []])

    def restart_redis(self) -> None:
        self._world.primary.restart(self._some_past())

    def fail_over(self) -> None:
        """Another server, which lags behind, is promoted; brokers find it one after the other."""
        old = self._world.primary
        self._world.primary = self._world.another_server(self._random)
        self._world.primary.restart(self._some_past())
        self._move_all(old)

    def fail_back(self) -> None:
        """A former primary is promoted again: the same process with older data."""
        old = self._world.primary
        self._world.primary = self._world.another_server(self._random)
        self._world.primary.promote(self._some_past())
        self._move_all(old)

    def resynchronise(self) -> None:
        """The primary was a replica for a moment, and has older data: the same process."""
        self._world.primary.promote(self._some_past())

    def _move_all(self, old: Server) -> None:
        slow = self._random.randrange(len(self._world.routes))
        for number in range(len(self._world.routes)):
            split_s = LONGEST_SPLIT_S if number == slow and self._random.random() < 0.7 else 0.5
            self.later(split_s, self._move, number, self._world.primary)
        if self._random.random() < 0.3:
            self.later(2.0, self._demote, old)

    def _move(self, number: int, to: Server) -> None:
        self._world.trace.add("fault", f"broker{number} finds {to.name}")
        self._world.routes[number] = to

    def _demote(self, server: Server) -> None:
        if server is not self._world.primary:
            server.demote()

    # Ways ------------------------------------------------------------------------------------

    def _some(self, ways: Sequence[Way]) -> list[Way]:
        if self._random.random() < 0.3:
            return list(ways)
        return self._random.sample(list(ways), 1)

    def _worsen(self, ways: Sequence[Way], longest_s: float, **how: float) -> None:
        for way in self._some(ways):
            vars(way).update(how)
            usual = self._saved[next(n for n, one in enumerate(self._usual) if one is way)]
            self.later(longest_s, vars(way).update, vars(usual))

    def cut_redis(self) -> None:
        self._worsen(self._world.redis_ways, 6.0, is_cut=True)

    def slow_redis(self) -> None:
        self._worsen(self._world.redis_ways, 4.0, slow_share=0.4, slow_s=1.5)

    def unsure_redis(self) -> None:
        self._worsen(
            self._world.redis_ways, 4.0, lost_answers=0.08, late_share=0.08, twice_share=0.08
        )

    def cut_bucket(self) -> None:
        self._worsen(self._world.bucket_ways, 6.0, is_cut=True)

    def slow_bucket(self) -> None:
        self._worsen(self._world.bucket_ways, 5.0, slow_share=0.4, slow_s=5.0)

    def unsure_bucket(self) -> None:
        shares = {"refused_share": 0.2, "lost_answers": 0.1, "late_share": 0.1, "short_share": 0.1}
        self._worsen(self._world.bucket_ways, 5.0, **shares)
