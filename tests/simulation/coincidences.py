"""Coincidences: two or three of the usual faults at such moments that one rule of the protocol
alone stands between them and the log.

Invariant: each thing that happens may happen to a real system by itself; nothing is reached into.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Protocol

from bucketlog.log_format.wire.api_keys import ApiKey
from tests.simulation.brokers import SimulatedBroker
from tests.simulation.clients import Client
from tests.simulation.loop import WORLD
from tests.simulation.network import SlowSpell
from tests.simulation.world import TOPIC, World

SLOW_PUTS_S = (1.0, 2.6)
DIES_AFTER_S = 2.8
"""Before it gives its PUT up."""
ALONE_S = 5.0
"""Until a dead broker's chain is sealed, and what is void is known."""
LONG_SILENCE_S = 9.0
"""Of a broker that is sealed meanwhile."""


READINGS_AFTER_FENCE_S = (0.08, 1.2)
"""Before fresh stamps are written, and after it."""


class Hand(Protocol):
    """What the chooser of faults does with a broker; none of it once all is healed."""

    def kill_for_a_while(self, broker: SimulatedBroker) -> None: ...

    def trap(
        self,
        broker: SimulatedBroker,
        *,
        after: bool,
        spring: Callable[[], None],
        label: str = "create log/",
        delay_s: float = 0.0,
    ) -> None: ...

    def later_by(self, delay_s: float, call: Callable[..., None], *args: object) -> None: ...

    def read(self) -> None: ...


class Coincidences:
    def __init__(self, world: World, random: Random, hand: Hand) -> None:
        self._world = world
        self._random = random
        self._hand = hand
        self._silent: SimulatedBroker | None = None
        self._reads_at_fence = False
        self._client = Client("side", world.surface, random)
        self._writes = 0
        self.kinds: list[tuple[Callable[[], None], int]] = [
            (self.slow_puts, 4),
            (self.void_beside_slow_puts, 5),
            (self.die_in_turn, 5),
            (self.return_beside_seal, 4),
        ]

    async def run(self) -> None:
        """One of them by itself, before anything else goes wrong."""
        calls = (self.void_beside_slow_puts, self.die_in_turn, self.return_beside_seal)
        (call,) = self._random.choices(calls, (3, 1, 1))
        self._world.trace.count(f"fault: {call.__name__.replace('_', ' ')}")
        call()
        await asyncio.sleep(ALONE_S)

    def notice(self, who: str, label: str) -> None:
        """Somebody's request is about to be done."""
        if label.startswith("seal") and self._silent is not None and who != self._silent.name:
            silent, self._silent = self._silent, None
            self._world.loop.call_soon(self._return, silent, who, context=WORLD)
        if label.startswith("fence") and self._reads_at_fence:
            self._reads_at_fence = False
            for delay_s in READINGS_AFTER_FENCE_S:
                self._hand.later_by(delay_s, self._hand.read)

    def _slow_puts(self, broker: SimulatedBroker, for_s: float, delay_s: float) -> None:
        until = self._world.loop.time() + for_s
        spell = SlowSpell(broker.name, "create log/", until, delay_s)
        self._world.network.slow_spells.append(spell)
        self._world.trace.add(broker.name, f"writes slowly for {for_s:.1f} s")

    def slow_puts(self) -> None:
        """What one broker writes comes when others, and checkpoints, are further."""
        broker = self._random.choice(self._world.brokers)
        self._slow_puts(
            broker, 4.0 + self._random.random() * 4.0, self._random.uniform(*SLOW_PUTS_S)
        )

    def _write(self, broker: SimulatedBroker, partition: int) -> None:
        self._writes += 1
        value = f"nside{self._writes}:0".encode()
        self._client.send(
            broker, ApiKey.PRODUCE, 9, **self._client.lone_batch(TOPIC, partition, value)
        )

    def void_beside_slow_puts(self) -> None:
        """What one broker has reserved becomes void behind a third one's batch. Another broker's
        segment in that partition is on its way then, before one more of the third. All of them were
        reserved before the fence, so none carries a stamp past the gap: fresh stamps come when the
        slow segment is missing."""
        dead, slow, quick = self._random.sample(self._world.brokers, 3)
        partition = self._random.randrange(self._world.sizes.partitions)

        def spring() -> None:
            self._hand.kill_for_a_while(dead)
            self._reads_at_fence = True
            self._slow_puts(slow, 1.2, 2.9)
            for delay_s, broker in ((0.02, quick), (0.1, slow), (0.18, quick)):
                self._hand.later_by(delay_s, self._write, broker, partition)

        self._hand.trap(dead, after=False, spring=spring, delay_s=12.0)
        self._write(dead, partition)

    def die_in_turn(self) -> None:
        """One broker dies right after a PUT, without a word; another one, whose earlier segments
        are still on their way, a little later. The first one's chain is closed first."""
        first, second = self._random.sample(self._world.brokers, 2)
        partition = self._random.randrange(self._world.sizes.partitions)

        def go_on() -> None:
            kill = partial(self._hand.kill_for_a_while, first)
            self._hand.trap(first, after=True, spring=kill)
            self._write(first, partition)

        self._slow_puts(second, DIES_AFTER_S, 12.0)
        self._write(second, partition)
        self._hand.later_by(0.3, go_on)
        self._hand.later_by(DIES_AFTER_S, self._hand.kill_for_a_while, second)

    def return_beside_seal(self) -> None:
        """A broker is silent until another one seals its chain, and dies of that; it returns before
        anybody has told the sequencer."""
        broker = self._random.choice(self._world.brokers)
        if broker.process is not None:
            broker.pause(LONG_SILENCE_S)
            self._silent = broker

    def _return(self, silent: SimulatedBroker, sealed_by: str) -> None:
        for broker in self._world.brokers:
            if broker.name == sealed_by:
                self._hand.kill_for_a_while(broker)
        silent.go_on()
