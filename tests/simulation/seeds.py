"""Many runs: each in a process of its own, several at once, each of these on its own Valkey."""

import gc
import importlib
import multiprocessing
import os
import pickle
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import NamedTuple, TypeVar

from bucketlog.log_format.batch import read_header
from bucketlog.tiered_storage.offset_map import MAP_BYTES_MIN, SECRET_BYTES, offset_map, open_batch
from tests.rigs.wire_client import build_batch
from tests.servers.sequencing import start_valkey
from tests.simulation.mutants import MUTANTS
from tests.simulation.redis_servers import simulate_identity
from tests.simulation.run import Outcome, simulate
from tests.simulation.source_changes import Change, apply
from tests.simulation.world import Sizes

EXIT_TERMINATED = 143
WARMS_FROM = 30
"""So many runs make up for it."""
T = TypeVar("T")


class _Ending:
    """A worker that is told to end ends the run that it waits for, and then goes its usual way out:
    an exception here might strike, and be lost, anywhere."""

    def __init__(self) -> None:
        self.is_asked = False
        self._child = 0

    def ask(self, *_: object) -> None:
        self.is_asked = True
        if self._child:
            os.kill(self._child, signal.SIGKILL)

    def wait_for(self, child: int, answer: int) -> bytes:
        self._child = child
        if self.is_asked:
            self.ask()
        with os.fdopen(answer, "rb") as data:
            found = data.read()
        self._child = 0
        os.waitpid(child, 0)
        return found


class Case(NamedTuple):
    """`second_lines_alone`: only those of the mutant are broken."""

    seed: int
    mutant: str | None = None
    second_lines_alone: bool = False

    @property
    def changes(self) -> Sequence[Change]:
        if self.mutant is None:
            return ()
        broken = MUTANTS[self.mutant]
        if self.second_lines_alone:
            return broken.second_lines
        return [*broken.changes, *broken.second_lines]


def run_cases(
    cases: Sequence[Case],
    *,
    jobs: int = 1,
    sizes: Sizes | None = None,
    everything: bool = False,
) -> Iterator[tuple[Case, Outcome]]:
    """As they end. Whoever stops asking stops them."""
    context = multiprocessing.get_context("fork")
    gc.collect()  # clients with threads that are garbage end here, not in a fork without those
    running: dict[Connection, BaseProcess] = {}
    for job in range(min(jobs, len(cases))):
        ours, theirs = context.Pipe(duplex=False)
        part = list(cases)[job::jobs]
        readers = [ours, *running]
        worker = context.Process(
            target=_work, args=(theirs, readers, part, sizes or Sizes(), everything)
        )
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
        for ours, left in running.items():
            ours.close()  # whoever is telling waits for nobody
            while left.is_alive():
                left.terminate()
                left.join(1.0)


def _work(
    told: Connection,
    readers: Sequence[Connection],
    cases: Sequence[Case],
    sizes: Sizes,
    everything: bool,
) -> None:
    """`readers` are whoever asked's, which alone may hold them: it may be gone one day."""
    gc.disable()  # nothing of the parent's is to be ended here
    for reader in readers:
        reader.close()
    ending = _Ending()
    signal.signal(signal.SIGTERM, ending.ask)  # Valkey goes, too
    with tempfile.TemporaryDirectory(prefix="bucketlog-simulation-") as folder:
        path = Path(folder) / "valkey.sock"
        with start_valkey(path):
            if len(cases) >= WARMS_FROM:
                _warm_up(ending, path)
            for case in cases:
                outcome = _in_child(ending, partial(_simulate, case, path, sizes, everything))
                try:
                    told.send((case, outcome))
                except BrokenPipeError:  # nobody asks any more
                    return


def _simulate(case: Case, redis: Path, sizes: Sizes, everything: bool) -> Outcome:
    simulate_identity(apply(case.changes))
    return simulate(case.seed, redis, sizes=sizes, everything=everything)


def _warm_up(ending: _Ending, redis: Path) -> None:
    """What a run imports and compiles, forks find done."""

    def modules() -> list[str]:
        _simulate(Case(0), redis, Sizes(batches_each=1), everything=False)
        return list(sys.modules)

    for name in _in_child(ending, modules):
        importlib.import_module(name)
    data = bytes(build_batch([(b"k", b"v")]))
    batch = open_batch(memoryview(data), read_header(data))
    offsets = offset_map(MAP_BYTES_MIN, bytes(SECRET_BYTES))
    offsets.add([batch], 0, split_first=True)
    offsets.judge([batch], 1, [False]).records(0, 0)


def _in_child(ending: _Ending, work: Callable[[], T]) -> T:
    """What `work` says in a fork: it begins in the same state as all others, and leaves nothing
    behind. Whoever is asked to end goes."""
    if ending.is_asked:
        sys.exit(EXIT_TERMINATED)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.close(reader)
            found = work()
            with os.fdopen(writer, "wb") as out:
                out.write(pickle.dumps(found))
            status = 0
        finally:
            if status:
                traceback.print_exc()
                sys.stderr.flush()
            os._exit(status)
    os.close(writer)
    data = ending.wait_for(child, reader)
    if ending.is_asked:
        sys.exit(EXIT_TERMINATED)
    if not data:
        raise RuntimeError("a run ended without an outcome")
    answer: T = pickle.loads(data)
    return answer
