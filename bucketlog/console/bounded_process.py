"""A process that gets an input and gives an output, both in bounded time and memory.

Invariants: the process has ended when the call returns. A process whose output is too large, or
that takes too long, is killed.
"""

import os
import selectors
import subprocess
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from bucketlog.log_format.errors import BucketlogError

PIECE_BYTES = 65_536
LOOK_S = 0.1
"""Time between two calls of `check` while nothing arrives."""


class OutputTooLargeError(BucketlogError):
    """A process of the console wrote more than it may."""

    code = "OUTPUT_TOO_LARGE"


class ProcessOutput(NamedTuple):
    """The output of a process, and its exit status: negative if a signal ended it."""

    data: bytes
    status: int


def output_of(
    command: Sequence[str],
    given: bytes,
    *,
    environment: Mapping[str, str],
    bytes_max: int,
    check: Callable[[], None],
) -> ProcessOutput:
    """Run `command` with `given` as its input. `check` is called often, and may raise to end the
    process. Raises `OutputTooLargeError` and the errors of `check`."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=dict(environment),
        start_new_session=True,
    )
    with process:
        try:
            data = _exchanged(process, given, bytes_max, check)
            while True:
                try:
                    return ProcessOutput(data, process.wait(LOOK_S))
                except subprocess.TimeoutExpired:
                    check()
        finally:
            process.kill()


def _exchanged(
    process: "subprocess.Popen[bytes]", given: bytes, bytes_max: int, check: Callable[[], None]
) -> bytes:
    assert process.stdin is not None
    assert process.stdout is not None
    left, found = memoryview(given), bytearray()
    os.set_blocking(process.stdin.fileno(), False)
    with selectors.DefaultSelector() as ready:
        ready.register(process.stdin, selectors.EVENT_WRITE)
        ready.register(process.stdout, selectors.EVENT_READ)
        while ready.get_map():
            check()
            for key, _ in ready.select(LOOK_S):
                if key.fileobj is process.stdout:
                    piece = os.read(key.fd, PIECE_BYTES)
                    found += piece
                    if len(found) > bytes_max:
                        raise OutputTooLargeError(
                            f"a process of the console wrote more than {bytes_max:,} bytes"
                        )
                    if not piece:
                        ready.unregister(process.stdout)
                    continue
                try:
                    left = left[os.write(key.fd, left[:PIECE_BYTES]) :]
                except BrokenPipeError:
                    left = left[:0]
                if not left:
                    ready.unregister(process.stdin)
                    process.stdin.close()
    return bytes(found)
