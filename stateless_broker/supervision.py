"""A supervisor, and the place where failures of its tasks are reported."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from typing import Any, Self

from bucketlog.stateless_broker.health import Health
from bucketlog.stateless_broker.supervisor import Supervisor


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
