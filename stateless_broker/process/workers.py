"""`python -m bucketlog.stateless_broker.process.workers N`: several brokers on one machine.

Each broker is its own process. A process is one core: a machine of N cores runs N brokers, on the
ports from `BUCKETLOG_PORT` on. Invariants: a worker that ends is started again, after a pause that
grows while it keeps ending early. If its configuration does not work when it is first started, all
workers end. SIGTERM and SIGINT end all of them, each by its pid; on Linux, so does the death of
this process, however it dies. The workers print and log to this process' outputs.
"""

import argparse
import asyncio
import logging
import os
import shutil
import signal
import sys
from asyncio.subprocess import Process
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bucketlog.log_format.backoff import Backoff
from bucketlog.log_format.errors import ConfigurationError
from bucketlog.stateless_broker.process.start_up import (
    EXIT_CONFIGURATION,
    EXIT_FAILED,
    EXIT_STOPPED,
    exit_code,
    load_settings,
)
from bucketlog.stateless_broker.settings.broker import BrokerSettings
from bucketlog.stateless_broker.settings.listener_addresses import (
    HIGHEST_PORT,
    advertised_text,
    listeners_text,
    shifted,
)

logger = logging.getLogger("bucketlog.stateless_broker.process.workers")

RESTART_BACKOFF = Backoff(first_pause_ms=200, longest_pause_ms=10_000)
STOP_TIMEOUT_S = 45.0
"""Time that a worker has to stop: more than a broker gives its last flush."""


@dataclass(frozen=True, slots=True)
class RestartPolicy:
    """Rules for the pause before a worker is started again."""

    backoff: Backoff = RESTART_BACKOFF
    healthy_after_ms: int = 10_000
    """A worker that ran for this long started well: the next pause is the first one again."""


class Restarts:
    """The pauses of one worker, each before it is started again."""

    def __init__(self, policy: RestartPolicy) -> None:
        self._policy = policy
        self._pauses_s = policy.backoff.pauses_s()

    def pause_s(self, lived_ms: float) -> float:
        """Return the pause before a worker is started again. `lived_ms`: how long it ran."""
        if lived_ms >= self._policy.healthy_after_ms:
            self._pauses_s = self._policy.backoff.pauses_s()
        return next(self._pauses_s)


def worker_settings(settings: BrokerSettings, count: int) -> list[dict[str, str]]:
    """Return the settings in which `count` workers differ, as environment variables. Pure.

    Given ports are the first of a row; port 0 is any free port for each worker. A given node id is
    the first of a row, too. Raises `ConfigurationError` if rows collide or end too high.
    """
    _check_ports(settings, count)
    found = []
    for number in range(count):
        row: dict[str, object] = {
            "BUCKETLOG_HTTP_PORT": settings.http_port and settings.http_port + number,
        }
        if settings.console and number:
            row["BUCKETLOG_CONSOLE"] = "false"  # one process of the console on a machine
        if settings.node_id is not None:
            row["BUCKETLOG_NODE_ID"] = settings.node_id + number
        own = shifted(settings.listener_specs, number)
        if settings.listeners is None:
            row["BUCKETLOG_PORT"] = own[0].port
            if own[0].advertised_port is not None:
                row["BUCKETLOG_ADVERTISED_PORT"] = own[0].advertised_port
        else:
            row["BUCKETLOG_LISTENERS"] = listeners_text(own)
            if settings.advertised_listeners is not None:
                row["BUCKETLOG_ADVERTISED_LISTENERS"] = advertised_text(own)
        found.append({name: str(value) for name, value in row.items()})
    return found


def _check_ports(settings: BrokerSettings, count: int) -> None:
    name = "BUCKETLOG_PORT" if settings.listeners is None else "BUCKETLOG_LISTENERS"
    rows: list[tuple[str, str, int]] = [
        (name, f"port {spec.port}", spec.port) for spec in settings.listener_specs
    ]
    rows.append(("BUCKETLOG_HTTP_PORT", f"HTTP port {settings.http_port}", settings.http_port))
    taken: dict[int, str] = {}
    for variable, what, first in rows:
        if not first:
            continue
        if first + count - 1 > HIGHEST_PORT:
            raise _no_room(variable, first, count)
        for port in range(first, first + count):
            if port in taken:
                raise ConfigurationError(
                    f"{count} workers from {taken[port]} and from {what} on would share ports",
                    remedy=f"set {variable} to 0, or {count} away from {name}"
                    if variable != name
                    else f"choose ports that are {count} apart in {name}",
                )
            taken[port] = what


def _no_room(name: str, first: int, count: int) -> ConfigurationError:
    return ConfigurationError(
        f"{name}: {count} workers from port {first} on need ports beyond {HIGHEST_PORT}",
        remedy="choose a lower port, or 0 for any free ones",
    )


class Workers:
    """`command` is what each worker runs, with its own variables added to `environment`."""

    def __init__(
        self,
        command: Sequence[str],
        own: Sequence[Mapping[str, str]],
        environment: Mapping[str, str],
        policy: RestartPolicy,
        *,
        stop_timeout_s: float = STOP_TIMEOUT_S,
    ) -> None:
        self._command = command
        self._own = own
        self._environment = environment
        self._policy = policy
        self._stop_timeout_s = stop_timeout_s
        self._stopping = asyncio.Event()
        self._exit_code = EXIT_STOPPED

    def stop(self) -> None:
        self._stopping.set()

    async def run(self) -> int:
        """Run the workers until `stop`. Returns the exit code: 0 if every worker then ended
        well."""
        async with asyncio.TaskGroup() as group:
            for number, own in enumerate(self._own):
                group.create_task(self._keep(number, {**self._environment, **own}))
        return self._exit_code

    async def _keep(self, number: int, environment: Mapping[str, str]) -> None:
        loop = asyncio.get_running_loop()
        restarts, lives = Restarts(self._policy), 0
        while not self._stopping.is_set():
            began = loop.time()
            process = await asyncio.create_subprocess_exec(*self._command, env=environment)
            logger.info("worker %d is process %d", number, process.pid)
            ended = asyncio.create_task(process.wait())
            stopping = asyncio.create_task(self._stopping.wait())
            await asyncio.wait({ended, stopping}, return_when=asyncio.FIRST_COMPLETED)
            stopping.cancel()
            if not ended.done():
                await self._end(number, process)
                return
            lives += 1
            if lives == 1 and ended.result() == EXIT_CONFIGURATION:
                self._exit_code = EXIT_CONFIGURATION
                self.stop()
                return
            pause_s = restarts.pause_s((loop.time() - began) * 1000)
            logger.error(
                "worker %d ended with %d: it is started again in %.0f ms",
                number,
                ended.result(),
                pause_s * 1000,
            )
            await self._sleep(pause_s)

    async def _sleep(self, pause_s: float) -> None:
        try:
            await asyncio.wait_for(self._stopping.wait(), pause_s)
        except TimeoutError:
            pass

    async def _end(self, number: int, process: Process) -> None:
        process.terminate()
        try:
            code = await asyncio.wait_for(process.wait(), self._stop_timeout_s)
        except TimeoutError:
            logger.error("worker %d does not end: it is killed", number)
            process.kill()
            code = await process.wait()
        if code != EXIT_STOPPED and self._exit_code == EXIT_STOPPED:
            self._exit_code = EXIT_FAILED


def broker_command() -> list[str]:
    """Return the command of a broker that ends when its supervisor has died, if the system can do
    so."""
    setpriv = shutil.which("setpriv")
    bound = [setpriv, "--pdeathsig", "TERM", "--"] if setpriv else []
    return [*bound, sys.executable, "-P", "-m", "bucketlog.stateless_broker"]


async def supervise(count: int) -> int:
    workers = Workers(
        broker_command(), worker_settings(load_settings(), count), os.environ, RestartPolicy()
    )
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, workers.stop)
    return await workers.run()


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="bucketlog.stateless_broker.process.workers")
    parser.add_argument("count", type=int, help="how many brokers")
    count = parser.parse_args(arguments).count
    return exit_code(lambda: asyncio.run(supervise(count)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
