"""A broker's container on this machine: its command and its variables, without its image."""

import os
import select
import stat
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.rigs.patience import PATIENCE_S


def programs(folder: Path) -> str:
    """A PATH on which `python` and `bucketlog` are those of the tests."""
    folder.mkdir(exist_ok=True)
    for name, command in (("python", ""), ("bucketlog", "-m bucketlog.cli")):
        program = folder / name
        program.write_text(f'#!/bin/sh\nexec {sys.executable} {command} "$@"\n')
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return f"{folder}:{os.environ['PATH']}"


def environment(variables: Mapping[str, str], folder: Path) -> dict[str, str]:
    """The container's variables, and what every process of the tests needs."""
    kept = {name: os.environ[name] for name in ("HOME", "PYTHONPATH") if name in os.environ}
    return {**kept, **variables, "PATH": programs(folder / "bin")}


@contextmanager
def running_broker(
    command: Sequence[str], variables: Mapping[str, str], folder: Path
) -> Iterator[int]:
    """The process id of the command, which has become a broker that is ready."""
    log = folder / "broker.log"
    with (
        log.open("wb") as errors,
        subprocess.Popen(
            command, env=environment(variables, folder), stdout=subprocess.PIPE, stderr=errors
        ) as process,
    ):
        try:
            assert process.stdout is not None
            assert select.select([process.stdout], [], [], PATIENCE_S)[0], log.read_text()
            assert process.stdout.readline(), log.read_text()
            yield process.pid
        finally:
            process.terminate()
