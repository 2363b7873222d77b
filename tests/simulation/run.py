"""One seed, from an empty bucket to the last check."""

import asyncio
import gc
import logging
import time
import traceback
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bucketlog.log_format.errors import InvalidDataError
from tests.simulation import ending
from tests.simulation.clients import Client
from tests.simulation.committed_transactions import watch
from tests.simulation.faults import Faults
from tests.simulation.loop import StalledError
from tests.simulation.redis_outage import RedisOutage
from tests.simulation.trace import Trace
from tests.simulation.transaction_scenes import TransactionScenes
from tests.simulation.world import Sizes, World
from tests.simulation.zone_split import ZoneSplit

FAULTS_S = 30.0
LONGEST_S = 60.0
logger = logging.getLogger()


@dataclass(frozen=True)
class Outcome:
    seed: int
    digest: str
    violation: str | None
    events: dict[str, int]
    batches: int
    virtual_s: float
    cpu_s: float
    tail: list[str]


class _ToTrace(logging.Handler):
    """What the product logs is part of what happened; a stack that it logs is a violation."""

    def __init__(self, trace: Trace) -> None:
        super().__init__(logging.INFO)
        self._trace = trace

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno >= logging.ERROR and "differ" in record.getMessage():
            self._trace.violate("checkpoints", record.getMessage())
        if record.exc_info:
            self._trace.violate("no surprises", f"{record.getMessage()}: {record.exc_info[1]!r}")
        self._trace.add(record.name.rpartition(".")[2], record.getMessage())


def simulate(seed: int, redis: Path, *, sizes: Sizes, everything: bool = False) -> Outcome:
    """In a process of its own: the event loop, logging and scripts stay changed."""
    began = time.process_time()
    gc.disable()
    world = World(seed, redis, sizes, everything=everything)
    logger.handlers = [_ToTrace(world.trace)]
    logger.setLevel(logging.INFO)
    try:
        world.loop.run_until_complete(_run(world))
    except StalledError as error:
        world.trace.violate("progress", str(error))
    violation = world.trace.violation
    return Outcome(
        seed,
        world.trace.digest(),
        str(violation) if violation is not None else None,
        dict(world.trace.events),
        world.truth.batches,
        world.loop.time() - 1000,
        time.process_time() - began,
        world.trace.tail(10**9 if everything else 400),
    )


def _check_ended(trace: Trace, task: asyncio.Task[None]) -> None:
    error = None if task.cancelled() else task.exception()
    if error is not None:
        place = traceback.extract_tb(error.__traceback__)[-1]
        trace.violate("a client of the simulation failed", f"{error!r} at {place}")


async def _run(world: World) -> None:
    for broker in world.brokers:
        broker.start()
    await world.create_topics()
    clients: list[Client] = [*world.producers, *world.consumers]
    clients += [*world.committers, *world.changers, *world.namesakes, *world.deleters, *world.keyed]
    clients += [*world.copy_jobs, *world.committed_consumers]
    for job in world.copy_jobs:
        watch(world, job)
    works = [client.run() for client in clients] + [reader.run() for reader in world.readers]
    world.tasks += [asyncio.create_task(work) for work in works]
    for task in world.tasks:
        task.add_done_callback(partial(_check_ended, world.trace))
    faults = Faults(world, world.random("faults"))
    await faults.run(FAULTS_S)
    faults.heal()
    await ZoneSplit(world, world.random("zone split")).run()
    await RedisOutage(world, world.random("redis outage")).run()
    await TransactionScenes(world).run()
    done = await world.until(lambda: all(p.is_done for p in world.producers), LONGEST_S)
    if not done:
        world.trace.violate(
            "progress", f"{[p.name for p in world.producers if not p.is_done]} are not done"
        )
        return
    try:
        await ending.check(world)
    except InvalidDataError as error:
        world.trace.violate("control entries", str(error))
