"""An event loop on virtual time, and the processes that live on it.

Invariants: what runs next depends on the program alone: time jumps to the next timer when nothing
is ready, work for threads is done where it is asked for, and sets of tasks, futures and events
iterate alike in every run. A callback belongs to the process in whose context it was made: a
paused process' callbacks wait for it, a dead one's never run.
"""

import asyncio
import contextvars
import heapq
from asyncio import events
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor
from itertools import count
from random import Random
from typing import Any, TypeVar, TypeVarTuple

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

BEGIN_S = 1_000.0
LONGEST_THREAD_S = 0.005
CALLBACKS_MOST = 1_000_000
"""Of a whole run; some 100,000 are usual."""
_numbers = count()


class Process:
    """Something that is killed or paused as a whole: all that runs in its context."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_alive = True
        self.is_paused = False
        self.waiting: list[events.Handle] = []
        self.context = contextvars.Context()
        self.context.run(_owner.set, self)


_owner: contextvars.ContextVar[Process | None] = contextvars.ContextVar("owner", default=None)


def current_process() -> Process | None:
    return _owner.get()


WORLD = contextvars.Context()
"""Of what nobody can kill: networks, servers, stores."""


class _Task(asyncio.Task[Any]):
    def __init__(self, *args: Any, **values: Any) -> None:
        self._number = next(_numbers)
        super().__init__(*args, **values)

    def __hash__(self) -> int:
        return self._number


class _Future(asyncio.Future[Any]):
    def __init__(self, *args: Any, **values: Any) -> None:
        self._number = next(_numbers)
        super().__init__(*args, **values)

    def __hash__(self) -> int:
        return self._number


def _numbered(thing: Any) -> int:
    number: int | None = thing.__dict__.get("_simulation_number")
    if number is None:
        number = thing._simulation_number = next(_numbers)
    return number


def _make_task(loop: Any, coro: Any, **values: Any) -> _Task:
    return _Task(coro, loop=loop, name="task", **values)


class StalledError(Exception):
    """Nobody will ever do anything again, or somebody never rests."""


class VirtualLoop(asyncio.BaseEventLoop):
    def __init__(self, random: Random) -> None:
        super().__init__()
        self._random = random
        self._now = BEGIN_S
        self._callbacks = 0
        self._ready: deque[Any]
        self._timers: list[tuple[float, int, Any]] = []
        self._stopping: bool
        self.set_task_factory(_make_task)
        type.__setattr__(asyncio.Event, "__hash__", _numbered)

    def time(self) -> float:
        return self._now

    def now_ms(self) -> int:
        """The time of day."""
        return 1_700_000_000_000 + int(self._now * 1000)

    def create_future(self) -> asyncio.Future[Any]:
        return _Future(loop=self)

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[*Ts], T], *args: *Ts
    ) -> "asyncio.Future[T]":
        """At once; it is known a little later."""
        future, done = self.create_future(), func(*args)

        def tell() -> None:
            if not future.done():
                future.set_result(done)

        self.call_later(self._random.random() * LONGEST_THREAD_S, tell)
        return future

    def resume(self, process: Process) -> None:
        process.is_paused = False
        self._ready.extend(process.waiting)
        process.waiting.clear()

    def call_at(
        self,
        when: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: contextvars.Context | None = None,
    ) -> events.TimerHandle:
        timer = events.TimerHandle(when, callback, args, self, context)
        heapq.heappush(self._timers, (when, next(_numbers), timer))
        return timer

    def _timer_handle_cancelled(self, handle: events.TimerHandle) -> None:
        pass

    def _run_once(self) -> None:
        ready, timers = self._ready, self._timers
        if not ready:
            while timers and timers[0][2]._cancelled:
                heapq.heappop(timers)
            if not timers:
                if self._stopping:
                    return
                raise StalledError("nobody will do anything any more")
            self._now = max(self._now, timers[0][0])
        now = self._now
        while timers and timers[0][0] <= now:
            ready.append(heapq.heappop(timers)[2])
        self._callbacks += len(ready)
        if self._callbacks > CALLBACKS_MOST:
            raise StalledError(f"{CALLBACKS_MOST} callbacks: somebody never rests")
        for _ in range(len(ready)):
            handle = ready.popleft()
            if handle._cancelled:
                continue
            owner = handle._context.get(_owner)
            if owner is not None and (owner.is_paused or not owner.is_alive):
                if owner.is_alive:
                    owner.waiting.append(handle)
                continue
            handle._run()

    def _process_events(self, event_list: Any) -> None:
        pass

    def _write_to_self(self) -> None:
        pass
