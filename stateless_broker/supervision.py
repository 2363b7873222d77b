"""Starts, watches and ends the broker's tasks, and reports their failures.

Invariants: only this module catches every exception. An unexpected exception is logged with its
stack and reported to the task's starter, and never lost. `cancel_all` cancels no task before its
first step: a task that others wait for answers them in a `finally`, which would not run.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from typing import Any, Self

from bucketlog.stateless_broker.health import Health

logger = logging.getLogger(__name__)

CANCEL_AGAIN_S = 0.5


class Supervisor:
    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def spawn(
        self,
        work: Coroutine[Any, Any, None],
        name: str,
        *,
        on_failure: Callable[[Exception], None],
    ) -> asyncio.Task[None]:
        """Run `work`; `on_failure` gets the exception that it did not handle."""
        task = asyncio.get_running_loop().create_task(self._watch(work, name, on_failure))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: work.close())  # cancelled before it began
        return task

    @staticmethod
    async def _watch(
        work: Coroutine[Any, Any, None], name: str, on_failure: Callable[[Exception], None]
    ) -> None:
        try:
            await work
        except Exception as error:
            logger.exception("%s failed", name)
            on_failure(error)

    async def cancel_all(self) -> None:
        """Cancel all tasks, and wait until they have ended. The cancellation is repeated:
        libraries use `asyncio.wait_for`, which can lose a cancellation before Python 3.12."""
        while tasks := [task for task in self._tasks if not task.done()]:
            await asyncio.sleep(0)  # the newest take their first steps
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks, timeout=CANCEL_AGAIN_S)


@dataclass(frozen=True, slots=True)
class Supervision:
    """`on_failure` gets each exception that a task did not handle."""

    supervisor: Supervisor
    health: Health
    on_failure: Callable[[Exception], None]

    def spawn(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        return self.supervisor.spawn(work, name, on_failure=self.on_failure)

    def with_own_tasks(self) -> Self:
        """The same with a new supervisor, so that its tasks end separately from the others."""
        return replace(self, supervisor=Supervisor())
