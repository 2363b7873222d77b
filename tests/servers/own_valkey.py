"""A Valkey of a test's own, which it may wipe, pause, end and start again."""

import os
import signal
from pathlib import Path
from typing import Any, Protocol, cast

import psutil
from redis import Redis as SyncRedis

from tests.servers.sequencing import start_valkey

SOCKET = "valkey.sock"


class FaultyValkey(Protocol):
    """What faults do to a Valkey."""

    def kill(self) -> None: ...
    def start(self) -> None: ...
    def pause(self) -> None: ...
    def go_on(self) -> None: ...
    def wipe(self) -> None: ...


class OwnValkey:
    """A server of the test's own, which it may wipe, pause, end and start again empty."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / SOCKET
        self._server = start_valkey(self.path)
        self._pid = 0

    def start(self) -> None:
        self._server.start()
        with SyncRedis(unix_socket_path=str(self.path)) as redis:
            self._pid = int(cast(dict[str, Any], redis.info("server"))["process_id"])

    def stop(self) -> None:
        self.go_on()
        self._pid = 0
        if self._server.is_running():
            self._server.stop()

    def kill(self) -> None:
        """kill -9; until it is gone."""
        process, self._pid = psutil.Process(self._pid), 0
        self._server.terminate()
        process.wait()

    def pause(self) -> None:
        """Connections to it stay, and nothing is answered before `go_on`."""
        os.kill(self._pid, signal.SIGSTOP)

    def go_on(self) -> None:
        if self._pid:
            os.kill(self._pid, signal.SIGCONT)

    def wipe(self) -> None:
        with SyncRedis(unix_socket_path=str(self.path)) as redis:
            redis.flushall()
