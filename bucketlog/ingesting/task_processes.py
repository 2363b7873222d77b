"""Processes of this machine that run the tasks of an ingest.

Invariants: as many tasks wait as run, so that a plan of many tasks needs no memory for all. The
processes end with this process, also if it is killed.
"""

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import Connection

from bucketlog.log_format.errors import BucketlogError
from bucketlog.log_reader.plan import TaskPiece
from bucketlog.log_reader.tables.task import TaskFiles, TaskWork

WAITING_PER_PROCESS = 2


class TaskProcessError(BucketlogError):
    """A process that ran a task of an ingest ended. Nothing of the batch is committed."""

    code = "TASK_PROCESS_ENDED"
    retriable = True


class TaskProcesses:
    """`processes` run tasks at the same time. They start with the first task."""

    def __init__(self, processes: int) -> None:
        self.processes = processes
        self._pool: ProcessPoolExecutor | None = None
        self._lifeline: Connection | None = None
        """The processes end when this end of a pipe is closed."""

    def run(self, work: TaskWork, tasks: Sequence[Sequence[TaskPiece]]) -> Iterator[TaskFiles]:
        """Return the files of the tasks, in their order. Raises the errors of `TaskWork.run`, and
        `TaskProcessError`."""
        pool = self._pool = self._pool or self._started()
        waiting: deque[Future[TaskFiles]] = deque()
        try:
            for pieces in tasks:
                waiting.append(_submitted(pool, work, pieces))
                if len(waiting) == WAITING_PER_PROCESS * self.processes:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        except BrokenProcessPool as error:
            self.close()
            raise TaskProcessError(
                "a process that runs or starts the tasks of the ingest ended",
                remedy="look for a lack of memory, and lower --processes; run the ingest again",
            ) from error
        finally:
            for future in waiting:
                future.cancel()

    def close(self) -> None:
        """End the processes. A task that runs is not waited for."""
        pool, self._pool = self._pool, None
        if pool is None or self._lifeline is None:
            return
        self._lifeline.close()
        pool.shutdown(cancel_futures=True)

    def _started(self) -> ProcessPoolExecutor:
        context = multiprocessing.get_context("forkserver")  # threads of this process hold locks
        context.set_forkserver_preload(["bucketlog.log_reader.tables.task"])
        theirs, self._lifeline = context.Pipe(duplex=False)
        return ProcessPoolExecutor(
            self.processes, mp_context=context, initializer=_begin, initargs=(theirs,)
        )


def _submitted(
    pool: ProcessPoolExecutor, work: TaskWork, pieces: Sequence[TaskPiece]
) -> Future[TaskFiles]:
    """Submit a task. Raises `BrokenProcessPool`, also if the fork server ended, which starts the
    task processes: the pool does not know this end."""
    try:
        return pool.submit(work.run, pieces)
    except (OSError, EOFError) as error:  # the connection to the fork server failed
        raise BrokenProcessPool("the fork server ended") from error


def _begin(lifeline: Connection) -> None:
    """Prepare a new process. Signals of the terminal are for the process that started this one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(lifeline,), name="lifeline", daemon=True).start()


def _end_with(lifeline: Connection) -> None:
    lifeline.poll(None)
    os._exit(1)
