"""Processes of the broker and of the command line that are forked instead of started.

The imports of a broker take more than a second of CPU time, and tests start some thousand
processes. `PreparedProcess` is `subprocess.Popen` for them: a server, one for each process that
runs tests, has imported the modules, and forks. `BUCKETLOG_TESTS_FORK=false` turns this off. Some
tests start real processes in any case: of the README, the examples, the console script, the
package, and the start-up itself.
"""

import ctypes
import inspect
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from tests.models.repository import ROOT
from tests.servers.prepared_server import LENGTH

_PR_SET_CHILD_SUBREAPER = 36
_OF_THE_INTERPRETER = ("PYTHON", "LANG", "LC_", "TZ", "MALLOC_", "LD_", "OPENSSL_")
"""Beginnings of the names of variables that only the start of a process reads."""
_READ_LATER = {"PYTHONFAULTHANDLER"}
"""The forked process enables the fault handler itself."""

_USUAL = {
    "executable": None,
    "preexec_fn": None,
    "pass_fds": (),
    "shell": False,
    "start_new_session": False,
    "process_group": -1,
    "umask": -1,
    "uid": None,
    "gid": None,
    "gids": None,
}
"""Arguments of the start that a forked process does not know, with their defaults."""


class Command(NamedTuple):
    module: str
    arguments: list[str]
    is_path_safe: bool


class PreparedServer:
    """The server of this process. It ends with this process."""

    def __init__(self) -> None:
        self._door, other = socket.socketpair()
        self._lock = threading.Lock()
        with other:
            fd = other.fileno()
            command = [sys.executable, "-m", "tests.servers.prepared_server", str(fd)]
            self._process = subprocess.Popen(command, cwd=ROOT, pass_fds=[fd])
        self._answer()

    def fork(self, order: dict[str, Any], fds: list[int]) -> int:
        """Return the pid of a new child of this process."""
        text = json.dumps(order).encode()
        with self._lock:
            _adopt_orphans(True)
            try:
                socket.send_fds(self._door, [LENGTH.pack(len(text))], fds)
                self._door.sendall(text)
                pid = self._answer()
            finally:
                _adopt_orphans(False)
        return pid

    def _answer(self) -> int:
        answer = self._door.recv(LENGTH.size, socket.MSG_WAITALL)
        assert answer, f"the server of prepared processes ended with {self._process.wait()}"
        return int(LENGTH.unpack(answer)[0])


@cache
def _server(pid: int) -> PreparedServer:
    """The server of the process `pid`: a forked process does not use its parent's."""
    return PreparedServer()


def _adopt_orphans(adopts: bool) -> None:
    """Say whether a descendant whose parent ends becomes a child of this process (`prctl`, 2)."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_CHILD_SUBREAPER, int(adopts), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "PR_SET_CHILD_SUBREAPER")


def _command(argv: list[str]) -> Command | None:
    match argv:
        case [sys.executable, "-P", "-m", "bucketlog.stateless_broker" as module, *rest]:
            return Command(module, rest, True)
        case [sys.executable, "-m", "bucketlog.cli" as module, *rest]:
            return Command(module, rest, False)
    return None


def _interpreter(environment: dict[str, str]) -> dict[str, str]:
    """The variables that the interpreter reads at its start."""
    return {
        name: text
        for name, text in environment.items()
        if name.startswith(_OF_THE_INTERPRETER) and name not in _READ_LATER
    }


class PreparedProcess(subprocess.Popen[bytes]):
    """A process of Python. It is forked from a prepared one if its command, its environment and the
    other arguments allow that, and otherwise started."""

    def _execute_child(self, *args: Any) -> None:
        start = super()._execute_child  # type: ignore[misc]  # the one place that makes the process
        given = inspect.signature(start).bind(*args).arguments
        command = None
        if os.environ.get("BUCKETLOG_TESTS_FORK") != "false" and sys.platform == "linux":
            command = _command([os.fspath(word) for word in given["args"]])
        environment = dict(os.environ if given["env"] is None else given["env"])
        if (
            command is None
            or any(given[name] != usual for name, usual in _USUAL.items())
            or _interpreter(environment) != _interpreter(dict(os.environ))
        ):
            start(*args)
            return
        order = command._asdict() | {
            "folder": os.fspath(given["cwd"] or Path.cwd()),
            "environment": environment,
        }
        own = [given["p2cread"], given["c2pwrite"], given["errwrite"]]
        fds = [place if fd == -1 else fd for place, fd in enumerate(own)]
        self.pid = _server(os.getpid()).fork(order, fds)
        self._child_created = True
        ends = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
        self._close_pipe_fds(*(given[end] for end in ends))  # type: ignore[attr-defined]  # as above


def run_prepared(
    command: Sequence[str],
    stdin: bytes = b"",
    *,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
    timeout_s: float | None = None,
) -> "subprocess.CompletedProcess[bytes]":
    """`subprocess.run` with a `PreparedProcess`, and with its output."""
    pipe = subprocess.PIPE
    with PreparedProcess(
        command, stdin=pipe, stdout=pipe, stderr=pipe, env=environment, cwd=folder
    ) as process:
        try:
            out, errors = process.communicate(stdin, timeout_s)
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(command, process.returncode, out, errors)
