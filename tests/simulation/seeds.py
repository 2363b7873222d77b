"""Many runs: each in a process of its own, several at once, each of these on its own Valkey."""

import multiprocessing
import os
import pickle
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import NamedTuple

from tests.sequencing import start_valkey
from tests.simulation.mutants import MUTANTS, apply, unchanged
from tests.simulation.redis_servers import simulate_identity
from tests.simulation.run import Outcome, simulate
from tests.simulation.world import Sizes

EXIT_TERMINATED = 143


class Case(NamedTuple):
    seed: int
    mutant: str | None = None


def run_cases(
    cases: Sequence[Case],
    *,
    jobs: int = 1,
    sizes: Sizes | None = None,
    everything: bool = False,
) -> Iterator[tuple[Case, Outcome]]:
    """As they end. Whoever stops asking stops them."""
    context = multiprocessing.get_context("fork")
    running: dict[Connection, BaseProcess] = {}
    for job in range(min(jobs, len(cases))):
        ours, theirs = context.Pipe(duplex=False)
        part = list(cases)[job::jobs]
        worker = context.Process(target=_work, args=(theirs, part, sizes or Sizes(), everything))
        worker.start()
        theirs.close()
        running[ours] = worker
    try:
        while running:
            for ready in wait(list(running)):
                assert isinstance(ready, Connection)
                try:
                    yield ready.recv()
                except EOFError:
                    ended = running.pop(ready)
                    ended.join()
                    if ended.exitcode:
                        raise RuntimeError("a run of the simulation broke down") from None
    finally:
        for left in running.values():
            while left.is_alive():
                left.terminate()
                left.join(1.0)


def _work(told: Connection, cases: Sequence[Case], sizes: Sizes, everything: bool) -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(EXIT_TERMINATED))  # Valkey goes, too
    with tempfile.TemporaryDirectory(prefix="bucketlog-simulation-") as folder:
        path = Path(folder) / "valkey.sock"
        with start_valkey(path):
            for case in cases:
                told.send((case, _in_child(case, path, sizes, everything)))


def _in_child(case: Case, redis: Path, sizes: Sizes, everything: bool) -> Outcome:
    """A fork: every run begins in the same state, and leaves nothing behind."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.close(reader)
            patch = apply(MUTANTS[case.mutant]) if case.mutant is not None else unchanged
            simulate_identity(patch)
            found = simulate(case.seed, redis, sizes=sizes, everything=everything)
            with os.fdopen(writer, "wb") as out:
                out.write(pickle.dumps(found))
            status = 0
        finally:
            os._exit(status)
    os.close(writer)
    with os.fdopen(reader, "rb") as answer:
        data = answer.read()
    os.waitpid(child, 0)
    if not data:
        raise RuntimeError(f"{case} ended without an outcome")
    outcome: Outcome = pickle.loads(data)
    return outcome
