"""A process that has imported the broker and the command line, and forks for each order.

`tests.servers.prepared_process` starts it with the number of a connected socket. Each order is one
message: the length of a JSON text, with the file descriptors of stdin, stdout and stderr; then the
text. The answer is the pid of the new process. The new process is a grandchild whose parent has
ended, so it belongs to the process that gave the order. The first answer, the server's own pid,
says that the server is ready.
"""

import faulthandler
import gc
import importlib
import io
import json
import os
import runpy
import socket
import struct
import sys
from dataclasses import dataclass
from pathlib import Path

MODULES = (
    "bucketlog.stateless_broker.process.main",
    "bucketlog.stateless_broker.process.console_process",
    "bucketlog.tiered_storage.backends.file",
    "bucketlog.cli.main",
    "bucketlog.client.log",
    "bucketlog.client.control",
    "bucketlog.client.groups",
    "bucketlog.terminal",
    "confluent_kafka.admin",
    "rich.console",
    "rich.table",
)
LENGTH = struct.Struct(">i")
_STANDARD_FDS = 3


@dataclass(frozen=True)
class Order:
    """`python -m module arguments`, with `-P` if the path is safe."""

    module: str
    arguments: list[str]
    is_path_safe: bool
    folder: str
    environment: dict[str, str]

    def begin(self) -> None:
        """Run the module in this process."""
        os.chdir(self.folder)
        os.environ.clear()
        os.environ.update(self.environment)
        sys.stdin = _text(0, "r")
        sys.stdout = _text(1, "w")
        sys.stderr = _text(2, "w", errors="backslashreplace")
        if self.environment.get("PYTHONFAULTHANDLER"):
            faulthandler.enable()
        sys.path[0:1] = [] if self.is_path_safe else [self.folder]
        sys.argv = [self.module, *self.arguments]
        runpy.run_module(self.module, run_name="__main__", alter_sys=True)


def _text(fd: int, mode: str, errors: str = "strict") -> io.TextIOWrapper:
    """The stream that an interpreter opens at its start."""
    raw = io.FileIO(fd, mode, closefd=False)
    binary = io.BufferedReader(raw) if mode == "r" else io.BufferedWriter(raw)
    line_buffering = fd == 2 or raw.isatty()
    return io.TextIOWrapper(binary, encoding="utf-8", errors=errors, line_buffering=line_buffering)


def _next_order(door: socket.socket) -> Order | None:
    """The next order, or None when nobody can give one any more. Its file descriptors are the
    standard ones of this process afterwards."""
    first, fds, _, _ = socket.recv_fds(door, LENGTH.size, _STANDARD_FDS)
    if not first:
        return None
    text = bytearray()
    while len(text) < LENGTH.unpack(first)[0]:
        text += door.recv(LENGTH.unpack(first)[0] - len(text))
    for place, fd in enumerate(fds):
        os.dup2(fd, place)
        os.close(fd)
    return Order(**json.loads(text))


def _forked() -> int:
    """Return the pid of a new process without a parent, or 0 in the new process."""
    answers, answer = os.pipe()
    if (between := os.fork()) == 0:
        pid = os.fork()
        if pid == 0:
            os.close(answers)
            os.close(answer)
            return 0
        os.write(answer, LENGTH.pack(pid))
        os._exit(0)
    os.close(answer)
    os.waitpid(between, 0)
    (pid,) = LENGTH.unpack(os.read(answers, LENGTH.size))
    os.close(answers)
    return int(pid)


def _serve(door: socket.socket) -> Order | None:
    """Fork for each order. Return in each new process with its order, and without one at the
    end."""
    quiet = os.open(os.devnull, os.O_RDWR)
    while (order := _next_order(door)) is not None:
        pid = _forked()
        if pid == 0:
            os.close(quiet)
            return order
        for place in range(_STANDARD_FDS):  # a pipe ends with its last process
            os.dup2(quiet, place)
        door.sendall(LENGTH.pack(pid))
    return None


def main() -> None:
    sys.modules["hypothesis"] = None  # type: ignore[assignment]  # as a broker's own __main__ does
    for module in MODULES:
        importlib.import_module(module)
    threads = len(list(Path("/proc/self/task").iterdir()))
    assert threads == 1, f"{threads} threads: a fork would lose all but one"
    gc.freeze()
    with socket.socket(fileno=int(sys.argv[1])) as door:
        door.sendall(LENGTH.pack(os.getpid()))
        order = _serve(door)
    if order is not None:
        order.begin()


if __name__ == "__main__":
    main()
