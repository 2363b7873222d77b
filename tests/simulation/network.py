"""The ways to Redis and to the bucket: how long a request takes, and what becomes of it.

Invariants: a request that left arrives or not whatever becomes of who sent it; what it does is done
in one moment; an error says nothing about whether it was done.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any

from redis.exceptions import RedisError

from bucketlog.log_format.errors import BucketlogError
from tests.simulation.loop import WORLD, current_process
from tests.simulation.trace import Trace


@dataclass
class Way:
    """One broker's way to one service. Times in seconds; shares of all requests."""

    quickest_s: float
    usual_s: float
    slow_share: float = 0.01
    slow_s: float = 0.4
    lost_answers: float = 0.0
    late_share: float = 0.0
    refused_share: float = 0.0
    twice_share: float = 0.0
    short_share: float = 0.0
    """Of answers with a body: those that end before it does."""
    is_cut: bool = False

    def time(self, random: Random) -> float:
        if random.random() < self.slow_share:
            return self.quickest_s + random.random() * self.slow_s
        return self.quickest_s + random.random() * self.usual_s


@dataclass(frozen=True)
class Errors:
    """What a caller gets who is not answered, and how long that takes."""

    timeout_s: float
    no_answer: Callable[[], Exception]
    refused: Callable[[], Exception]


@dataclass(frozen=True)
class Trap:
    """What happens when somebody's next request of a kind is on its way, or was done."""

    who: str
    label: str
    after: bool
    spring: Callable[[], None]
    delay_s: float = 0.0


@dataclass(frozen=True)
class SlowSpell:
    """Until then somebody's requests of a kind take so much longer to arrive."""

    who: str
    label: str
    until: float
    delay_s: float


@dataclass
class Network:
    loop: asyncio.AbstractEventLoop
    random: Random
    trace: Trace
    longest_late_s: float = 12.0
    traps: list[Trap] = field(default_factory=list)
    slow_spells: list[SlowSpell] = field(default_factory=list)
    _stepped_on: list[Trap] = field(default_factory=list)
    """Those that spring when a request that is on its way was done."""
    on_arrival: Callable[[str, str], None] = lambda who, label: None
    """Told who asked, and for what, just before it is done."""
    overhear: Callable[[str, str, Callable[[Any], Any]], None] = lambda who, label, do: None
    """Who asks Redis for what; the request itself can be delivered to a server again."""

    def _note(self, label: str, fault: str) -> None:
        self.trace.count(fault)
        self.trace.add("network", f"{fault}: {label}")

    def _with_traps(self, label: str, arrive: Callable[[], Any]) -> tuple[Callable[[], Any], float]:
        process = current_process()
        for trap in self.traps:
            if process is not None and process.name == trap.who and label.startswith(trap.label):
                self.traps.remove(trap)
                if not trap.after:
                    self.loop.call_soon(trap.spring, context=WORLD)
                    return arrive, trap.delay_s
                self._stepped_on.append(trap)
                return partial(_and_then, arrive, partial(self._spring, trap)), trap.delay_s
        return arrive, 0.0

    def _spring(self, trap: Trap) -> None:
        if trap in self._stepped_on:
            self._stepped_on.remove(trap)
            trap.spring()

    def heal(self) -> None:
        """No trap springs any more, and nothing is slow on purpose."""
        self.traps.clear()
        self._stepped_on.clear()
        self.slow_spells.clear()

    def _slower_s(self, who: str, label: str) -> float:
        now = self.loop.time()
        self.slow_spells = [spell for spell in self.slow_spells if spell.until > now]
        found = [
            spell.delay_s
            for spell in self.slow_spells
            if spell.who == who and label.startswith(spell.label)
        ]
        return max(found, default=0.0)

    def _unless_dropped(self, arrive: Callable[[], Any]) -> Callable[[], Any]:
        """What a process had just sent when it was killed may never arrive."""
        process, may_be_dropped = current_process(), self.random.random() < 0.5

        def unless_dropped() -> Any:
            if may_be_dropped and process is not None and not process.is_alive:
                return None
            return arrive()

        return unless_dropped

    async def request(
        self,
        way: Way,
        label: str,
        arrive: Callable[[], Any],
        errors: Errors,
        kind: str,
        *,
        finish: Callable[[Any], Any] = lambda result: result,
    ) -> Any:
        """`arrive` happens at the other end, `finish` when its answer comes. Raises what they
        raise, or one of `errors`."""
        loop, random = self.loop, self.random
        arrive, delay_s = self._with_traps(label, self._unless_dropped(arrive))
        there_s, back_s, dice = way.time(random), way.time(random), random.random()
        process = current_process()
        who = process.name if process is not None else ""
        there_s += delay_s
        if self.slow_spells:
            there_s += self._slower_s(who, label)
        answer: asyncio.Future[Any] = loop.create_future()

        def settle(result: Any, error: Exception | None) -> None:
            if answer.done():
                return
            if error is not None:
                answer.set_exception(error)
            else:
                answer.set_result(None if result is None else finish(result))

        def arrives() -> None:
            self.on_arrival(who, label)
            try:
                result, error = arrive(), None
            except (BucketlogError, RedisError) as raised:
                result, error = None, raised
            loop.call_later(back_s, settle, result, error, context=WORLD)

        def fails(after_s: float, make: Callable[[], Exception]) -> None:
            loop.call_later(after_s, settle, None, make(), context=WORLD)

        if way.is_cut:
            fails(errors.timeout_s * random.choice((0.01, 1)), errors.no_answer)
        elif dice < way.refused_share:
            self._note(label, f"{kind}: refused")
            fails(there_s + back_s, errors.refused)
        elif dice < way.refused_share + way.lost_answers:
            self._note(label, f"{kind}: done, answer lost")
            loop.call_later(there_s, _quietly(arrive), context=WORLD)
            fails(there_s + back_s, errors.no_answer)
        elif dice < way.refused_share + way.lost_answers + way.late_share:
            self._note(label, f"{kind}: done late")
            late_s = there_s + random.random() * self.longest_late_s
            loop.call_later(late_s, _quietly(arrive), context=WORLD)
            fails(min(errors.timeout_s, late_s * random.random()), errors.no_answer)
        else:
            loop.call_later(there_s, arrives, context=WORLD)
            if random.random() < way.twice_share:
                self._note(label, f"{kind}: done twice")
                again_s = there_s + random.random() * self.longest_late_s
                loop.call_later(again_s, _quietly(arrive), context=WORLD)
            if there_s + back_s >= errors.timeout_s:
                fails(errors.timeout_s, errors.no_answer)
        return await answer


def _and_then(arrive: Callable[[], Any], spring: Callable[[], None]) -> Any:
    try:
        return arrive()
    finally:
        spring()


def _quietly(arrive: Callable[[], Any]) -> Callable[[], None]:
    def call() -> None:
        with suppress(BucketlogError, RedisError):  # nobody waits for this answer
            arrive()

    return call
