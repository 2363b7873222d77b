"""One cluster for all workers of pytest-xdist, held by the process that runs them.

Invariants: it is started when the first worker asks, once; whoever asks gets the same answer, a
cluster or why there is none; who says nothing keeps nobody waiting; `stop` returns when no process
of it is left.
"""

import secrets
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, suppress
from multiprocessing import AuthenticationError
from multiprocessing.connection import (
    Client,
    Connection,
    Listener,
    answer_challenge,
    deliver_challenge,
)
from pathlib import Path
from threading import Lock, Thread
from typing import Any, TypeAlias

from bucketlog.log_format.errors import BucketlogError
from bucketlog.testing.cluster import Cluster, error_text

Address: TypeAlias = tuple[str, int, bytes]
"""Host, port and key: other users of this machine are not answered."""
_BACKLOG = 128
_STRANGER = (AuthenticationError, EOFError, OSError)
"""Errors of a process that asks and is not a worker, or has ended."""


class SharedClusterError(BucketlogError):
    """The cluster did not start; another worker got the same error."""

    code = "CLUSTER_START"


class SharedCluster:
    """`start` makes the cluster, in the folder that the first worker names."""

    def __init__(self, start: Callable[[Path], AbstractContextManager[Cluster]]) -> None:
        self._start = start
        self._key = secrets.token_bytes()
        self._listener = Listener(("127.0.0.1", 0), backlog=_BACKLOG)
        host, port = self._listener.address
        self.address: Address = (str(host), int(port), self._key)
        self._stack = ExitStack()
        self._starting = Lock()
        self._outcome: Cluster | str | None = None
        self._is_ending = False
        self._thread = Thread(target=self._serve, name="bucketlog-cluster", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._is_ending = True
        with suppress(*_STRANGER):
            Client(self.address[:2]).close()  # wakes the thread
        self._thread.join()
        with self._starting:
            self._stack.close()

    def _serve(self) -> None:
        with self._listener:
            while not self._is_ending:
                with suppress(*_STRANGER):
                    Thread(target=self._meet, args=(self._listener.accept(),), daemon=True).start()

    def _meet(self, connection: "Connection[Any, Any]") -> None:
        with suppress(*_STRANGER), connection:
            deliver_challenge(connection, self._key)
            answer_challenge(connection, self._key)
            folder = connection.recv()
            connection.send(self._answer(Path(folder)))

    def _answer(self, folder: Path) -> Cluster | str:
        with self._starting:
            if self._outcome is None:
                if self._is_ending:
                    return "the run has ended"
                try:
                    self._outcome = self._stack.enter_context(self._start(folder))
                except BucketlogError as error:
                    self._outcome = error_text(error)
            return self._outcome


def ask(address: Address, folder: Path) -> Cluster:
    """In a worker: the cluster, started in `folder` unless it runs already. Raises
    `SharedClusterError`."""
    try:
        with _connect(address) as connection:
            connection.send(str(folder))
            answer = connection.recv()
    except _STRANGER as error:
        raise SharedClusterError(
            "the process that runs the workers does not answer",
            remedy="run pytest with -n 0 to see what fails",
        ) from error
    if isinstance(answer, Cluster):
        return answer
    raise SharedClusterError(str(answer))


def _connect(address: Address) -> "Connection[Any, Any]":
    host, port, key = address
    return Client((host, port), authkey=key)
