"""The console as a child process of the broker, which starts it again when it dies.

Invariants: the process ends with its broker, however the broker ends
(`bucketlog.console.broker_program`). It listens in a folder that only the broker's user can open.
It gets no variable of the broker that the console does not read, such as the password of Redis.
"""

import asyncio
import json
import logging
import os
import shutil
import sys
import tempfile
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping, Sequence
from pathlib import Path

from bucketlog.stateless_broker.process.workers import RestartPolicy, Restarts
from bucketlog.stateless_broker.settings.broker import BrokerSettings

logger = logging.getLogger(__name__)

PROGRAM = (sys.executable, "-P", "-m", "bucketlog.console.broker_program")
READY = b"ready\n"
ROOT = "/console"
"""The path of the console on the HTTP port."""
PASSED_ON = ("BUCKETLOG_CONSOLE_", "BUCKETLOG_S3_")
"""Beginnings of the variables with the broker's prefix that the console reads."""


def console_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables for the console. Pure."""
    return {
        name: value
        for name, value in environment.items()
        if not name.startswith("BUCKETLOG_") or name.startswith(PASSED_ON)
    }


def served_place(settings: BrokerSettings, socket_path: str) -> dict[str, object]:
    """Return the values of `bucketlog.console.broker_program.ServedPlace`. Pure, but for the
    process id."""
    key_file = settings.encryption_key_file
    return {
        "broker_pid": os.getpid(),
        "place": settings.bucket_url,
        "shard": settings.shard,
        "socket_path": socket_path,
        "root": ROOT,
        "hosts": [*filter(None, (settings.http_host, *settings.http_console_host_names))],
        "safety_age_ms": settings.deletion_safety_age_ms,
        "memory_bytes_max": settings.http_console_memory_bytes_max,
        "key_file": None if key_file is None else str(key_file),
        "kms_region": settings.encryption_kms_region,
        "kms_endpoint_url": settings.encryption_kms_endpoint_url,
        "kms_timeout_ms": settings.encryption_kms_timeout_ms,
    }


class ConsoleProcess:
    """`socket_path` is where the console listens while it `is_ready`. `command` is what runs it."""

    def __init__(
        self,
        settings: BrokerSettings,
        environment: Mapping[str, str],
        *,
        command: Sequence[str] = PROGRAM,
        policy: RestartPolicy | None = None,
    ) -> None:
        self._settings = settings
        self._environment = console_environment(environment)
        self._command = command
        self._policy = policy or RestartPolicy()
        self.socket_path = ""
        self.is_ready = False
        self.pid: int | None = None
        """The id of the running process. None: no process runs."""

    async def run(self) -> None:
        """Run the console until the task is cancelled. Then the process has ended."""
        loop = asyncio.get_running_loop()
        restarts = Restarts(self._policy)
        folder = Path(tempfile.mkdtemp(prefix="bucketlog-console-"))
        self.socket_path = str(folder / "socket")
        try:
            while True:
                began = loop.time()
                try:
                    end = f"ended with {await self._live()}"
                except OSError as error:
                    end = f"cannot be started: {error.strerror}"
                pause_s = restarts.pause_s((loop.time() - began) * 1000)
                logger.error("the console %s: it is started again in %.0f ms", end, pause_s * 1000)
                await asyncio.sleep(pause_s)
        finally:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)

    async def _live(self) -> int:
        """One life of the process. Returns its exit code. Raises `OSError` if it cannot start."""
        process = await asyncio.create_subprocess_exec(
            *self._command,
            env=self._environment,
            stdin=PIPE,
            stdout=PIPE,
            start_new_session=True,  # Ctrl-C is the broker's, which then ends this process
        )
        self.pid = process.pid
        try:
            await self._make_ready(process)
            return await process.wait()
        finally:
            self.is_ready, self.pid = False, None
            if process.returncode is None:
                process.kill()  # it has nothing to save
                await process.wait()

    async def _make_ready(self, process: Process) -> None:
        """Tell the process what to serve, and wait until it listens, has ended, or is too late."""
        assert process.stdin is not None
        assert process.stdout is not None
        given = json.dumps(served_place(self._settings, self.socket_path))
        ms_max = self._settings.http_console_start_ms_max
        try:
            async with asyncio.timeout(ms_max / 1000):
                process.stdin.write(given.encode() + b"\n")
                await process.stdin.drain()
                self.is_ready = await process.stdout.readline() == READY
        except (BrokenPipeError, ConnectionResetError):
            pass  # it has ended
        except TimeoutError:
            logger.error(
                "the console is not ready after %d ms (BUCKETLOG_HTTP_CONSOLE_START_MS_MAX)", ms_max
            )
            process.kill()
        if self.is_ready:
            logger.info("the console is process %d", process.pid)
