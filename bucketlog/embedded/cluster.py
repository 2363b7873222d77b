"""A cluster on this machine: the wheel's Valkey or any Redis, one broker or several, a folder as
the bucket, or any other bucket.

Invariants: a data folder is held by one cluster at a time (an flock that every process of the
cluster shares, so it is free only when all are gone); exactly the processes started here are
ended, also when this process is killed (see `bucketlog.embedded.guard`). The data is the bucket
alone: Valkey is filled again from it at each start.
"""

import json
import logging
import os
import select
import selectors
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from bucketlog.embedded.folder import lock_folder
from bucketlog.embedded.ports import brokers_named, listening_error, ports_beside
from bucketlog.embedded.settings import (
    first_http_port,
    own_variables,
    shared_variables,
    variable,
)
from bucketlog.log_format.errors import BucketlogError, ConfigurationError
from bucketlog.log_format.extras import check_installed
from bucketlog.log_format.private_files import check_folder, make_folder

_logger = logging.getLogger(__name__)

READY_TIMEOUT_S = 90.0
"""On a busy machine a start takes long; a broker that ends by itself is reported at once."""
STOP_TIMEOUT_S = 25.0
"""More than a broker gives its last flush."""
MEMBERS_PAUSE_S = 0.02
LOG_TAIL_LINES = 15
_BROKER_SAYS = "bucketlog broker: "
WRONG_CONFIGURATION = 2
"""A broker's exit code."""
_GUARD = Path(__file__).with_name("guard.py")


class ClusterStartError(BucketlogError):
    """Error of an embedded cluster that does not start, or whose process ends. Raised by
    `EmbeddedCluster`.

    Examples:
        >>> with bucketlog.EmbeddedCluster("data") as cluster:
        ...     try:
        ...         cluster.check()
        ...     except bucketlog.ClusterStartError as error:
        ...         print(error.message)
    """

    code = "CLUSTER_START"


@dataclass(frozen=True, slots=True)
class EmbeddedBroker:
    """One that became ready. `name` is its key in `EmbeddedCluster.pids`."""

    name: str
    pid: int
    node_id: int
    host: str
    port: int
    http_host: str
    http_port: int

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"


class EmbeddedCluster:
    """Cluster of brokers and a Valkey as child processes, for programs and tests. Used as a context
    manager.

    The cluster is ready when the block begins. If a broker ends, the others continue, and the
    broker is not started again. Files in `data_dir` are private to their owner. A folder that all
    users may write to is refused.

    Args:
        data_dir: Folder of the data. Its folder `bucket` is the bucket, unless `bucket_url` names
            another one.
        host: Address on which brokers listen.
        port: Port of the first broker. The others take free ports next to it. Default: 0, which
            means any free ports.
        redis_url: Address of a Redis to use; None means that a Valkey is started.
        bucket_url: Address of a bucket, whose credentials are in AWS_* variables; None means a
            folder in `data_dir`.
        settings: Settings of the brokers, named without the prefix, as in {"num_partitions": "4"};
            None means no settings. "http_port" is the first broker's. The others take free ports
            next to it.
        brokers: Number of brokers. Default: 1.

    Raises:
        ClusterInUseError: If another cluster uses the folder.
        ClusterStartError: If a process does not start.
        ConfigurationError: If an argument is not valid.

    Examples:
        >>> with bucketlog.EmbeddedCluster("data", brokers=2) as cluster:
        ...     with bucketlog.connect(cluster.bootstrap) as log:
        ...         log.topics.create("bills", partitions=3)
        TopicInfo(name='bills', partitions=3)
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
        brokers: int = 1,
    ) -> None:
        check_installed("broker", extra="embedded")
        if brokers < 1:
            raise ConfigurationError(f"{brokers} brokers", remedy="a cluster has at least one")
        self.data_dir = Path(data_dir).absolute()
        self.host = host
        self.redis_url = redis_url
        self.bucket_url = bucket_url or f"file://{self.data_dir}/bucket"
        self.pids: dict[str, int] = {}
        """The processes of the cluster as they were started: `guard`, unless it was given `valkey`,
        and `broker`, or `broker-0`, `broker-1`, ... where there are several."""
        self.members: tuple[EmbeddedBroker, ...] = ()
        """The brokers, in the order of `bootstrap`, once all are ready."""
        self._settings = dict(settings or {})
        self._ports = [port, *[0] * (brokers - 1)]
        self._http_ports = [first_http_port(self._settings), *[0] * (brokers - 1)]
        self._lock_fd = -1
        self._guard: subprocess.Popen[bytes] | None = None
        self._unread = b""
        self._running: dict[str, EmbeddedBroker] = {}
        """By name; those that became ready, and of which no end was heard."""
        self._log_begin = 0
        """How long the log was when this cluster started: it has been written to before."""

    @property
    def port(self) -> int:
        """Port of the first broker; 0 before the cluster is ready."""
        return self._ports[0]

    @property
    def http_port(self) -> int:
        """HTTP port of the first broker; 0 before the cluster is ready."""
        return self.members[0].http_port if self.members else 0

    @property
    def bootstrap(self) -> str:
        """Addresses of all brokers, comma-separated."""
        return ",".join(f"{self.host}:{port}" for port in self._ports)

    @property
    def log_path(self) -> Path:
        """Path of the file with the messages of brokers and Valkey."""
        return self.data_dir / "broker.log"

    def start(self) -> None:
        """Start the processes, and wait until each broker serves clients and knows the others.

        Raises:
            ClusterInUseError: If another cluster uses the folder.
            ClusterStartError: If a process does not start. All processes are then ended.
            ConfigurationError: If a setting is not valid.
        """
        if self._guard is not None:
            return
        valkey = None if self.redis_url else _valkey_binary()
        self._choose_ports()
        try:
            make_folder(self.data_dir)
            warning = check_folder(self.data_dir)
            if warning:
                _logger.warning("%s", warning)
            self._lock_fd = lock_folder(self.data_dir)
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
        """Stop the brokers, which write what they have accepted, and Valkey. A second call does
        nothing."""
        guard, self._guard = self._guard, None
        if guard is not None:
            assert guard.stdin is not None
            assert guard.stdout is not None
            guard.stdin.close()
            guard.wait()
            guard.stdout.close()
        self.pids = {}
        self.members = ()
        self._unread = b""
        self._running = {}
        if self._lock_fd >= 0:
            os.close(self._lock_fd)
            self._lock_fd = -1

    def wait(self, on_loss: Callable[[str], object] | None = None) -> None:
        """Wait until Valkey or the last broker ends, which is an error.

        Args:
            on_loss: Function that is called with a message for each broker that ends before; None
                means no function.

        Raises:
            ClusterStartError: When the cluster has ended.
        """
        while True:
            self._watch_exit(on_loss)

    def check(self, on_loss: Callable[[str], object] | None = None) -> None:
        """Check whether Valkey and a broker still run, without a wait.

        Args:
            on_loss: Function that is called with a message for each broker that has ended; None
                means no function.

        Raises:
            ClusterStartError: If the cluster has ended.
        """
        guard = self._guard
        assert guard is not None, "not started"
        assert guard.stdout is not None
        while b"\n" in self._unread or select.select([guard.stdout], [], [], 0)[0]:
            self._watch_exit(on_loss)

    def _watch_exit(self, on_loss: Callable[[str], object] | None) -> None:
        loss = self._take(self._read_event(None))
        if loss is not None and on_loss is not None:
            on_loss(loss)

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
        environment = {**os.environ, **self._variables()}
        own = own_variables(environment, self._ports, self._http_ports, is_alone=not self.redis_url)
        orders = {
            "valkey": str(valkey) if valkey else None,
            "command": [sys.executable, "-P", "-m", "bucketlog.stateless_broker"],
            "brokers": dict(zip(self._names(), own, strict=True)),
            "environment": environment,
            "log": str(self.log_path),
            "lock_fd": self._lock_fd,
            "stop_timeout_s": STOP_TIMEOUT_S,
        }
        assert guard.stdin is not None
        guard.stdin.write(json.dumps(orders).encode() + b"\n")
        guard.stdin.flush()
        return guard

    def overridden(self, environment: Mapping[str, str]) -> list[tuple[str, str]]:
        """Return the environment variables that have no effect, because this cluster sets other
        values.

        Args:
            environment: Variables by their names.

        Returns:
            Names of variables, with the values that the brokers get.
        """
        ours = self._variables()
        if not self.redis_url:
            ours[variable("redis_url")] = "a Valkey that it starts"
        return [
            (name, text)
            for name, text in sorted(ours.items())
            if environment.get(name, text) != text
        ]

    def _names(self) -> list[str]:
        count = len(self._ports)
        return ["broker"] if count == 1 else [f"broker-{place}" for place in range(count)]

    def _variables(self) -> dict[str, str]:
        """Settings of all brokers, without those that differ by broker."""
        fixed = {"bucket_url": self.bucket_url, "host": self.host, "port": str(self.port)}
        if self.redis_url:
            fixed["redis_url"] = self.redis_url
        return shared_variables(self._settings, fixed, brokers=len(self._ports))

    def _choose_ports(self) -> None:
        """Choose the ports before anything is made or started. Raises `ClusterStartError` if the
        first Kafka port or the first HTTP port is in use."""
        http, http_host = self._http_ports, self._http_host()
        for host, port, flag in (
            (self.host, self.port, "--port"),
            (http_host, http[0], "--http-port"),
        ):
            error = listening_error(host, port) if port else None
            if error is not None:
                raise ClusterStartError(
                    f"cannot listen on {host}:{port}: {os.strerror(error.errno or 0)}",
                    remedy=f"stop what listens there, or give another {flag}",
                ) from error
        self._ports[1:] = ports_beside(self.host, self.port, self._ports[1:], http[:1])
        http[1:] = ports_beside(http_host, http[0], http[1:], self._ports)

    def _http_host(self) -> str:
        name = variable("http_host")
        return self._settings.get("http_host") or os.environ.get(name) or "127.0.0.1"

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + READY_TIMEOUT_S
        while len(self._running) < len(self._ports):
            self._take(self._read_event(deadline), "did not start")
        self.members = tuple(self._running[name] for name in self._names())
        self._ports = [member.port for member in self.members]
        if len(self.members) > 1:
            self._wait_until_members(deadline)

    def _wait_until_members(self, deadline: float) -> None:
        """Clients ask once, and then not for minutes: each broker is to name all of them."""
        for member in self.members:
            while True:
                try:
                    count = brokers_named(member.host, member.port, READY_TIMEOUT_S)
                except OSError as error:
                    raise self._failure(f"{member.name} did not start: {error}") from error
                if count >= len(self.members):
                    break
                if time.monotonic() > deadline:
                    raise self._failure(f"{member.name} knows {count} brokers only")
                time.sleep(MEMBERS_PAUSE_S)

    def _take(self, event: dict[str, Any], what: str = "ended") -> str | None:
        """The report of a broker that has ended while others continue. Raises
        `ClusterStartError` or `ConfigurationError` where that was the end."""
        match event["event"]:
            case "children":
                own = {name: event[name] for name in ("guard", "valkey") if event[name]}
                self.pids = {**own, **event["brokers"]}
            case "ready":
                name = next(name for name, pid in self.pids.items() if pid == event["pid"])
                self._running[name] = EmbeddedBroker(
                    name,
                    event["pid"],
                    event["node_id"],
                    self.host,
                    event["port"],
                    event["http_host"],
                    event["http_port"],
                )
            case "ended":
                return self._ended(event["child"], event["code"], what)
        return None

    def _ended(self, child: str, code: int, what: str) -> str | None:
        lost = self._running.pop(child, None)
        if lost is None or not self.members or not self._running:
            is_refused = child != "valkey" and code == WRONG_CONFIGURATION
            raise self._failure(f"the {child} {what} (exit code {code})", refused=is_refused)
        return (
            f"broker {lost.node_id} at {lost.address} ended (exit code {code}): "
            f"{len(self._running)} of {len(self.members)} left"
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
        if told and not self.members:  # why it did not start, in one line
            kind = ConfigurationError if refused else ClusterStartError
            return kind(told[-1].removeprefix(_BROKER_SAYS))
        lines = lines[-LOG_TAIL_LINES:]
        error = ClusterStartError(message, remedy=f"see {self.log_path}")
        error.add_note("\n".join(lines))
        return error


def _valkey_binary() -> Path:
    from bucketlog.metadata.sequencer.valkey_process import valkey_binary

    return valkey_binary("embedded")
