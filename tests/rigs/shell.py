"""The command line as a shell runs it: processes with arguments, input and output."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tests.rigs.patience import PATIENCE_S
from tests.servers.prepared_process import PreparedProcess, run_prepared

COMMAND = [sys.executable, "-m", "bucketlog.cli"]


class Shell:
    def __init__(self, bootstrap: str) -> None:
        self.environment = {**os.environ, "BUCKETLOG_BOOTSTRAP": bootstrap}

    def __call__(self, *arguments: str, stdin: bytes = b"") -> "subprocess.CompletedProcess[bytes]":
        return run_prepared(
            [*COMMAND, *arguments], stdin, environment=self.environment, timeout_s=PATIENCE_S
        )

    def ok(self, *arguments: str, stdin: bytes = b"") -> bytes:
        done = self(*arguments, stdin=stdin)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout

    def failing(self, code: int, *arguments: str, stdin: bytes = b"", lines: int = 1) -> str:
        """stderr, which must have so many lines, with nothing on stdout."""
        done = self(*arguments, stdin=stdin)
        assert (done.returncode, done.stdout) == (code, b""), done.stderr.decode()
        assert done.stderr.count(b"\n") == lines, done.stderr.decode()
        return done.stderr.decode()

    @contextmanager
    def start(self, *arguments: str) -> Iterator["subprocess.Popen[bytes]"]:
        """It does not outlive the block, however that ends."""
        with PreparedProcess(
            [*COMMAND, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=self.environment,
        ) as process:
            try:
                yield process
            finally:
                process.kill()
