"""A bucket that fails as real ones do, to a plan: for tests and the simulation.

Invariant: a fault is decided by the plan alone (a script or a seeded generator), so that a run can
be repeated exactly; time passes only in the injected sleep.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import partial
from random import Random
from typing import TypeAlias, TypeVar

from bucketlog.log_format.errors import BucketlogError, BucketUnavailableError
from bucketlog.log_format.model import Buffer
from bucketlog.tiered_storage.bucket import Body, Bucket, ObjectInfo, Span, Suffix

Result = TypeVar("Result")


class BucketVerb(Enum):
    CREATE = auto()
    GET = auto()
    LIST = auto()
    DELETE = auto()
    HEAD = auto()


class Effect(Enum):
    """The effect of a request whose caller got an error."""

    NONE = auto()
    DONE = auto()
    LATER = auto()
    """The request was still in progress, and takes effect after `Fault.later_ms`."""


def _lost() -> BucketUnavailableError:
    return BucketUnavailableError("injected: the answer was lost", remedy="try again")


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault of one request. `error` None: the request only takes `delay_ms` longer."""

    effect: Effect = Effect.NONE
    error: BucketlogError | None = field(default_factory=_lost)
    delay_ms: float = 0
    later_ms: float = 0


FaultPlan: TypeAlias = Callable[[BucketVerb, str], Fault | None]
"""Called once for each request, with its verb and key (or prefix). Returns the fault; None: the
request succeeds."""


class ScriptedFaults:
    """A plan that was written down: the faults of each verb's first requests, in order."""

    def __init__(self, steps: dict[BucketVerb, Sequence[Fault | None]]) -> None:
        self._steps = {verb: deque(faults) for verb, faults in steps.items()}

    def __call__(self, verb: BucketVerb, key: str) -> Fault | None:
        steps = self._steps.get(verb)
        return steps.popleft() if steps else None

    @property
    def exhausted(self) -> bool:
        return not any(self._steps.values())


@dataclass(frozen=True, slots=True)
class RandomFaults:
    """A plan by chance: `failures` of all requests fail, their effects in equal shares; every
    request takes up to `longest_delay_ms` longer."""

    random: Random
    failures: float
    longest_delay_ms: float = 0

    def __call__(self, verb: BucketVerb, key: str) -> Fault | None:
        delay_ms = self.random.random() * self.longest_delay_ms
        if self.random.random() >= self.failures:
            return Fault(error=None, delay_ms=delay_ms)
        later_ms = self.random.random() * self.longest_delay_ms
        return Fault(self.random.choice(tuple(Effect)), _lost(), delay_ms, later_ms)


class FaultyBucket:
    """`Bucket` around `inner`, which it owns."""

    def __init__(
        self,
        inner: Bucket,
        plan: FaultPlan,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._inner = inner
        self.plan = plan
        self._sleep = sleep
        self._later: set[asyncio.Task[None]] = set()

    async def create(self, key: str, parts: Sequence[Buffer], *, crc32c: int | None = None) -> bool:
        body = b"".join(parts)  # a request under way has left the caller's buffers behind
        call = partial(self._inner.create, key, [body], crc32c=crc32c)
        return await self._run(BucketVerb.CREATE, key, call)

    async def get(self, key: str, span: Span | Suffix | None = None) -> Body:
        return await self._run(BucketVerb.GET, key, partial(self._inner.get, key, span))

    async def list(self, prefix: str, *, start_after: str = "") -> AsyncIterator[ObjectInfo]:
        """A fault with an effect comes in the middle: after half of the objects."""

        async def read() -> list[ObjectInfo]:
            return [info async for info in self._inner.list(prefix, start_after=start_after)]

        fault = self.plan(BucketVerb.LIST, prefix) or Fault(error=None)
        await self._sleep(fault.delay_ms / 1_000)
        if fault.error is not None and fault.effect is Effect.NONE:
            raise fault.error
        infos = await read()
        for info in infos if fault.error is None else infos[: len(infos) // 2]:
            yield info
        if fault.error is not None:
            raise fault.error

    async def delete(self, keys: Sequence[str]) -> None:
        await self._run(
            BucketVerb.DELETE, keys[0] if keys else "", partial(self._inner.delete, list(keys))
        )

    async def head(self, key: str) -> ObjectInfo | None:
        return await self._run(BucketVerb.HEAD, key, partial(self._inner.head, key))

    async def settle(self) -> None:
        """Wait until every request that was under way has happened."""
        while self._later:
            await asyncio.gather(*self._later)

    async def close(self) -> None:
        await self.settle()
        await self._inner.close()

    async def _run(
        self, verb: BucketVerb, key: str, call: Callable[[], Awaitable[Result]]
    ) -> Result:
        fault = self.plan(verb, key)
        if fault is None:
            return await call()
        await self._sleep(fault.delay_ms / 1_000)
        if fault.error is None:
            return await call()
        if fault.effect is Effect.DONE:
            await call()
        elif fault.effect is Effect.LATER:
            task = asyncio.create_task(self._run_later(fault, call))
            self._later.add(task)
            task.add_done_callback(self._later.discard)
        raise fault.error

    async def _run_later(self, fault: Fault, call: Callable[[], Awaitable[Result]]) -> None:
        await self._sleep(fault.later_ms / 1_000)
        try:
            await call()
        except BucketlogError:
            pass  # nobody waits for this answer any more
