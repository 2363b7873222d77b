"""Faults at the worst moments of jobs on tiers: between what a job has written and the entry by
which it counts, and between what is deleted and the entry that says so.

Invariant: each is a death, a silence or a slow request; nothing is reached into.
"""

from collections.abc import Callable
from random import Random

from tests.simulation.brokers import SimulatedBroker
from tests.simulation.coincidences import Hand
from tests.simulation.loop import WORLD
from tests.simulation.network import SlowSpell
from tests.simulation.world import World
from tiered_storage import keys

WRITES = (f"create {keys.SEGMENTS}", f"create {keys.MANIFESTS}")
SILENCES_S = (2.0, 4.5, 9.0, 14.0)
"""Others take its duties after 1.5 s; 9 s are past the safety age where it is short."""
SLOW_S = (0.5, 1.5, 4.0)


class TierFaults:
    def __init__(self, world: World, random: Random, hand: Hand) -> None:
        self._world = world
        self._random = random
        self._hand = hand
        self._waits_for: tuple[str, ...] = ()
        self._spring: Callable[[SimulatedBroker], None] = lambda broker: None
        self.kinds: list[tuple[Callable[[], None], int]] = [
            (self.die_before_swap, 3),
            (self.swap_late, 10),
            (self.write_tiers_slowly, 4),
            (self.sweep_late, 2),
            (self.delete_beside_swap, 5),
        ]

    def begin(self) -> None:
        """One of them, when a job comes next."""
        self._random.choice((self.die_before_swap, self.swap_late))()

    def notice(self, who: str, label: str) -> None:
        """Somebody's request is about to be done."""
        if not self._waits_for or not label.startswith(self._waits_for):
            return
        for broker in self._world.brokers:
            if broker.name == who:
                self._waits_for = ()
                self._world.trace.count("tier: a fault in the middle of a job")
                self._world.loop.call_soon(self._spring, broker, context=WORLD)

    def _wait_for(self, labels: tuple[str, ...], spring: Callable[[SimulatedBroker], None]) -> None:
        self._waits_for, self._spring = labels, spring

    def die_before_swap(self) -> None:
        """What the job has written is nobody's."""
        self._wait_for(WRITES, self._hand.kill_for_a_while)

    def swap_late(self) -> None:
        """A broker is silent beside what it has written. Others do the same job meanwhile; then it
        offers its swap."""
        silence_s = self._random.choice(SILENCES_S)
        self._wait_for(WRITES, lambda broker: broker.pause(silence_s))

    def delete_beside_swap(self) -> None:
        """The entry of a job is on its way for long; log starts are moved by another broker
        meanwhile."""
        others = self._random.sample(self._world.brokers, 2)

        def spring(broker: SimulatedBroker) -> None:
            until = self._world.loop.time() + 3.0
            self._world.network.slow_spells.append(
                SlowSpell(broker.name, "create log/", until, 1.5)
            )
            other = next(one for one in others if one is not broker)
            for deleter in self._world.deleters:
                for delay_s in (0.15, 0.4, 0.8):
                    self._hand.later_by(delay_s, deleter.ask_unheard, other)

        self._wait_for(WRITES, spring)

    def write_tiers_slowly(self) -> None:
        """The log goes on beside jobs that take long."""
        until = self._world.loop.time() + 4.0 + self._random.random() * 6.0
        delay_s = self._random.choice(SLOW_S)
        for broker in self._world.brokers:
            spells = [SlowSpell(broker.name, label, until, delay_s) for label in WRITES]
            self._world.network.slow_spells += spells

    def sweep_late(self) -> None:
        """A broker is silent after it has deleted, and says later what it has deleted."""
        silence_s = self._random.choice(SILENCES_S)
        self._wait_for(("delete ",), lambda broker: broker.pause(silence_s))
