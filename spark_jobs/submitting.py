"""How a job is started: by `spark-submit`, by `bucketlog spark`, or by its old module name."""

import os
import sys
from collections.abc import Sequence
from typing import Protocol


class Main(Protocol):
    def __call__(self, arguments: Sequence[str], *, program: str) -> None: ...


def is_submitted() -> bool:
    """Whether `spark-submit` started this process."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def run_as_module(main: Main, *, module: str, verb: str) -> None:
    """Run `main` with this process' arguments.

    `python -m MODULE` is deprecated and will be removed in version 0.2; a line on stderr names the
    command to use instead. `spark-submit` keeps running the file.
    """
    if is_submitted():
        main(sys.argv[1:], program=os.path.basename(sys.argv[0]))
        return
    sys.stderr.write(f"python -m {module} is deprecated; run: {verb}\n")
    main(sys.argv[1:], program=verb)
