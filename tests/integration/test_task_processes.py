"""Processes that run the tasks of an ingest: kill -9 of the process that starts them."""

import multiprocessing.forkserver as forkserver
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import Any, cast

import pytest

from bucketlog.ingesting.task_processes import TaskProcessError, TaskProcesses
from bucketlog.log_reader.plan import TaskPiece
from bucketlog.log_reader.tables.task import TaskWork

# the fork server of this process, which multiprocessing starts again if it has ended
SERVER = cast(Any, forkserver)._forkserver


class Counting:
    """Work whose result is the number of pieces."""

    def run(self, pieces: Sequence[TaskPiece]) -> int:
        return len(pieces)


def ran(processes: TaskProcesses, *sizes: int) -> list[int]:
    tasks = [cast(Sequence[TaskPiece], [None] * size) for size in sizes]
    return cast(list[int], list(processes.run(cast(TaskWork, Counting()), tasks)))


def kill_the_server() -> None:
    os.kill(SERVER._forkserver_pid, signal.SIGKILL)
    os.waitid(os.P_PID, SERVER._forkserver_pid, os.WEXITED | os.WNOWAIT)


def before_the_request(patch: pytest.MonkeyPatch) -> None:
    """The server ends after multiprocessing has looked whether it runs."""
    look: Callable[[], None] = SERVER.ensure_running

    def looked() -> None:
        look()
        kill_the_server()

    patch.setattr(SERVER, "ensure_running", looked)


def before_the_answer(patch: pytest.MonkeyPatch) -> None:
    """The server ends with a request that it has not read."""
    look: Callable[[], None] = SERVER.ensure_running
    request = cast(Any, forkserver).connect_to_new_process

    def looked() -> None:
        look()
        os.kill(SERVER._forkserver_pid, signal.SIGSTOP)

    def requested(fds: Sequence[int]) -> tuple[int, int]:
        ends: tuple[int, int] = request(fds)
        kill_the_server()
        return ends

    patch.setattr(SERVER, "ensure_running", looked)
    patch.setattr(forkserver, "connect_to_new_process", requested)


@pytest.fixture
def processes() -> Iterator[TaskProcesses]:
    with closing(TaskProcesses(2)) as made:
        yield made


@pytest.mark.parametrize("fault", [before_the_request, before_the_answer])
def test_a_start_that_fails_can_be_tried_again(
    processes: TaskProcesses,
    fault: Callable[[pytest.MonkeyPatch], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as patch:
        fault(patch)
        with pytest.raises(TaskProcessError) as raised:
            ran(processes, 1, 2)
    assert raised.value.retriable
    assert ran(processes, 3, 1, 2) == [3, 1, 2]


def test_the_server_ends_between_tasks(processes: TaskProcesses) -> None:
    """multiprocessing takes its processes for ended, too."""
    assert ran(processes, 1) == [1]
    kill_the_server()
    for _ in range(2):
        try:
            assert ran(processes, 2, 4) == [2, 4]
        except TaskProcessError:
            continue
    assert ran(processes, 2, 4) == [2, 4]
