"""How tests wait: the only module of the tests that sleeps or reads the clock to judge a wait.

A bound ends a test that would wait forever. It says nothing about speed and is reached only in
failures. It is therefore minutes long, and `TEST_PATIENCE` multiplies it on slow machines.
Invariant: `eventually` waits for a fact that can be observed. `let_pass` is for loads and faults
that are meant to last; no check may depend on it.
"""

import asyncio
import os
import time
from collections.abc import Callable

PATIENCE_S = 300.0 * float(os.environ.get("TEST_PATIENCE", "1"))
PAUSE_S = 0.02


class Deadline:
    """For a loop that does something else between two looks. `what` describes the failure."""

    def __init__(self, what: Callable[[], object] | str = "", bound_s: float = PATIENCE_S) -> None:
        self._what = what
        self._bound_s = bound_s
        self._ends_s = time.monotonic() + bound_s

    @property
    def is_over(self) -> bool:
        return time.monotonic() > self._ends_s

    @property
    def left_s(self) -> float:
        """For calls that have a timeout."""
        return max(0.0, self._ends_s - time.monotonic())

    def check(self) -> None:
        """Fails when the bound has been reached."""
        if self.is_over:
            what = self._what if isinstance(self._what, str) else self._what()
            raise AssertionError(f"still waiting after {self._bound_s:.0f} s: {what}")

    def pause(self, pause_s: float = PAUSE_S) -> None:
        """Between two looks; fails when the bound has been reached."""
        self.check()
        time.sleep(pause_s)

    async def pause_async(self, pause_s: float = PAUSE_S) -> None:
        """The same, while other tasks run."""
        self.check()
        await asyncio.sleep(pause_s)


def eventually(
    condition: Callable[[], bool],
    what: Callable[[], object] | str = "",
    *,
    bound_s: float = PATIENCE_S,
    pause_s: float = PAUSE_S,
    despite: tuple[type[Exception], ...] = (),
) -> None:
    """Returns once the condition holds. `despite` are errors that mean: not yet."""
    deadline = Deadline(what, bound_s)
    while True:
        try:
            if condition():
                return
        except despite:
            pass
        deadline.pause(pause_s)


async def eventually_async(
    condition: Callable[[], bool],
    what: Callable[[], object] | str = "",
    *,
    bound_s: float = PATIENCE_S,
    pause_s: float = 0.002,
) -> None:
    """The same, while other tasks run."""
    deadline = Deadline(what, bound_s)
    while not condition():
        deadline.check()
        await asyncio.sleep(pause_s)


def let_pass(seconds: float) -> None:
    """A load or a fault lasts this long."""
    time.sleep(max(0.0, seconds))


async def let_pass_async(seconds: float) -> None:
    """The same, while other tasks run."""
    await asyncio.sleep(max(0.0, seconds))


def cancel_task(task: asyncio.Task[None]) -> None:
    """Until the task ends: redis-py may swallow a cancellation (`Supervisor.cancel_all`)."""
    if task.cancel():  # False if the task has ended
        asyncio.get_running_loop().call_later(0.05, cancel_task, task)


async def end_task(task: asyncio.Task[None]) -> None:
    cancel_task(task)
    await asyncio.wait([task], timeout=PATIENCE_S)
