"""The command line within this process: as `Shell`, without the start of an interpreter."""

import io
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from unittest.mock import patch

from bucketlog.cli.main import main
from tests.rigs.shell import Shell


class OwnShell(Shell):
    """For one thread at a time."""

    def __call__(self, *arguments: str, stdin: bytes = b"") -> "subprocess.CompletedProcess[bytes]":
        out, error = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
        given = io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8")
        with (
            patch.dict(os.environ, self.environment),
            patch.object(sys, "stdin", given),
            redirect_stdout(out),
            redirect_stderr(error),
        ):
            code = main(list(arguments))
            out.flush()
            error.flush()
        return subprocess.CompletedProcess(
            arguments, code, out.buffer.getvalue(), error.buffer.getvalue()
        )
