"""Faults at the worst moments of jobs on tiers: between what a job has written and the entry by
which it counts, and between what is deleted and the entry that says so.

Invariant: each is a death, a silence or a slow request; nothing is reached into.
"""

import asyncio
from collections.abc import Callable
from random import Random

from bucketlog.tiered_storage import keys
from tests.simulation.brokers import SimulatedBroker
from tests.simulation.coincidences import Hand
from tests.simulation.loop import WORLD
from tests.simulation.network import SlowSpell
from tests.simulation.world import TOPIC, World

WRITES = (f"create {keys.SEGMENTS}", f"create {keys.MANIFESTS}")
SILENCES_S = (2.0, 4.5, 9.0, 14.0)
"""Others take its duties after 1.5 s; 9 s are past the safety age where it is short."""
SLOW_S = (0.5, 1.5, 4.0)
OVER_S_MAX = 20.0
"""Until what a job has written is deleted because it is over, where the safety age is short."""
LOOK_S = 0.2
PATIENCE_S = 8.0
LATE_ENTRIES = (
    ("create log/", 3.0, 1.5, (0.15, 0.4, 0.8)),
    ("reserve", 1.0, 0.8, (0.05, 0.2)),
)
"""The requests for an entry that are late, for how long, by how much, and when others write."""
NEVER_S = 10.0
"""Longer than a request to the bucket may take."""


class TierFaults:
    def __init__(self, world: World, random: Random, hand: Hand) -> None:
        self._world = world
        self._random = random
        self._hand = hand
        self._waits_for: Callable[[str], bool] | None = None
        self._spring: Callable[[SimulatedBroker], None] = lambda broker: None
        self.kinds: list[tuple[Callable[[], None], int]] = [
            (self.die_before_swap, 3),
            (self.swap_late, 10),
            (self.write_tiers_slowly, 4),
            (self.sweep_late, 2),
            (self.delete_beside_swap, 5),
            (self.delete_beside_rewriting, 5),
            (self.swap_when_over, 3),
        ]

    async def run(self) -> None:
        """One of them by itself, when a job comes next."""
        world = self._world
        if not await world.until(world.is_well, PATIENCE_S):
            return
        alone = {self.die_before_swap: 0.0, self.swap_late: 0.0, self.delete_beside_rewriting: 4.0}
        if world.deletes_soon:
            alone[self.swap_when_over] = OVER_S_MAX
        call = self._random.choice(list(alone))
        world.trace.fault(call)
        call()
        await world.until(lambda: self._waits_for is None, PATIENCE_S)
        await asyncio.sleep(alone[call])

    def notice(self, who: str, label: str) -> None:
        """Somebody's request is about to be done."""
        if self._waits_for is None or not self._waits_for(label):
            return
        for broker in self._world.brokers:
            if broker.name == who:
                self._waits_for = None
                self._world.trace.count("tier: a fault in the middle of a job")
                self._world.trace.add("fault", f"in the middle of a job of {who}")
                self._world.loop.call_soon(self._spring, broker, context=WORLD)

    def _wait_for(
        self, is_worst: Callable[[str], bool], spring: Callable[[SimulatedBroker], None]
    ) -> None:
        """Until a request of that label is about to be done."""
        self._waits_for, self._spring = is_worst, spring

    def die_before_swap(self) -> None:
        """What the job has written is nobody's."""
        self._wait_for(_writes_tiers, self._hand.kill_for_a_while)

    def swap_late(self) -> None:
        """A broker is silent beside what it has written. Others do the same job meanwhile; then it
        offers its swap."""
        silence_s = self._random.choice(SILENCES_S)
        self._wait_for(_writes_tiers, lambda broker: broker.pause(silence_s))

    def delete_beside_swap(self) -> None:
        """The entry of a job is on its way for long; log starts are moved by another broker
        meanwhile."""
        others = self._random.sample(self._world.brokers, 2)

        def spring(broker: SimulatedBroker) -> None:
            self._slow_down(broker.name, "create log/", 3.0, 1.5)
            other = next(one for one in others if one is not broker)
            for deleter in self._world.deleters:
                for delay_s in (0.15, 0.4, 0.8):
                    self._hand.later_by(delay_s, deleter.ask_unheard, other)

        self._wait_for(_writes_tiers, spring)

    def _slow_down(self, who: str, label: str, for_s: float, delay_s: float) -> None:
        until = self._world.loop.time() + for_s
        self._world.network.slow_spells.append(SlowSpell(who, label, until, delay_s))

    def delete_beside_rewriting(self) -> None:
        """The entry of a rewriting is late; another broker's, by which the first row that it
        replaces leaves the tier, is there before it. The rewriting has either the lower ticket or
        the higher one."""
        label, for_s, late_s, deleted_after_s = self._random.choice(LATE_ENTRIES)
        found: list[tuple[int, int]] = []

        def rewrites(label: str) -> bool:
            found[:] = self._second_row(label) if label.startswith(WRITES[0]) else []
            return bool(found)

        def spring(broker: SimulatedBroker) -> None:
            self._slow_down(broker.name, label, for_s, late_s)
            ((number, second),) = found
            others = [one for one in self._world.brokers if one is not broker]
            for deleter in self._world.deleters:
                for delay_s in deleted_after_s:
                    other = self._random.choice(others)
                    self._hand.later_by(delay_s, deleter.ask_unheard, other, {number: second})

        self._wait_for(rewrites, spring)

    def _second_row(self, label: str) -> list[tuple[int, int]]:
        """Partition and start of the row after the one in whose place an object is written, if it
        is of the topic that records are deleted of."""
        written = keys.parse_tier_object(label.split()[1])
        partition = written.partition
        if partition != self._world.surface.partition(TOPIC, partition.partition):
            return []
        views = [broker.view for broker in self._world.brokers]
        logs = [view.log(partition) for view in views if view is not None]
        rows = max(([row.start for row in log.tier.rows] for log in logs if log), default=[])
        later = [start for start in rows if start > written.start]
        return [(partition.partition, later[0])] if written.start in rows and later else []

    def swap_when_over(self) -> None:
        """A broker is silent beside what it has written until its job is over and that is deleted.
        Nobody else could do the job meanwhile."""
        written: list[str] = []

        def writes(label: str) -> bool:
            written[:] = [label.split()[1]] if _writes_tiers(label) else []
            return bool(written)

        def spring(broker: SimulatedBroker) -> None:
            broker.pause(OVER_S_MAX)
            look(broker)

        def look(broker: SimulatedBroker) -> None:
            if written[0] in self._world.store.objects and broker.is_paused:
                for other in self._world.brokers:
                    for label in WRITES:
                        self._slow_down(other.name, label, LOOK_S, NEVER_S)
                self._hand.later_by(LOOK_S, look, broker)
            else:
                broker.go_on()

        self._wait_for(writes, spring)

    def write_tiers_slowly(self) -> None:
        """The log goes on beside jobs that take long."""
        for_s = 4.0 + self._random.random() * 6.0
        delay_s = self._random.choice(SLOW_S)
        for broker in self._world.brokers:
            for label in WRITES:
                self._slow_down(broker.name, label, for_s, delay_s)

    def sweep_late(self) -> None:
        """A broker is silent after it has deleted, and says later what it has deleted."""
        silence_s = self._random.choice(SILENCES_S)
        self._wait_for(_deletes, lambda broker: broker.pause(silence_s))


def _writes_tiers(label: str) -> bool:
    return label.startswith(WRITES)


def _deletes(label: str) -> bool:
    return label.startswith("delete ")
