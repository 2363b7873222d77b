"""Several broker processes on one Valkey and one bucket, each of which may be killed or stopped.

Invariant: all processes are ended, by their pids, when the `with` block is left. A broker keeps its
port, its node id and its log file over restarts; ports are below those that the system gives to
clients, which would else come to talk to themselves at the port of a broker that is dead.
"""

import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from unittest import mock
from urllib.parse import urlsplit

import psutil

from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.tiered_storage.backends.location import open_sync_bucket
from bucketlog.tiered_storage.bucket import SyncBucket
from localstack.servers import RunningStore, StoreName, running
from localstack.slow_puts import Delay, SlowPuts
from tests.rigs.patience import Deadline
from tests.rigs.wire_client import WireClient
from tests.servers.broker_process import MODULE, BrokerProcess
from tests.servers.own_valkey import SOCKET as VALKEY_SOCKET
from tests.servers.own_valkey import FaultyValkey, OwnValkey
from tests.servers.put_faults import PutFaults
from tests.servers.way import ANY_PORT, Way

if TYPE_CHECKING:
    from tests.servers.replicated_valkey import ReplicatedValkey

BUCKET = "bucketlog"
LOWEST_PORT, HIGHEST_PORT = 15_000, 32_000
LOG_TAIL_LINES = 25
IN_MEMORY = Path("/dev/shm")
IN_MEMORY_FREE_BYTES = 8 << 30
_ports = iter(Random(os.getpid()).sample(range(LOWEST_PORT, HIGHEST_PORT), 10_000))


class Store(StrEnum):
    FILE = "file"
    MINIO = "minio"


def is_free(port: int) -> bool:
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


def free_port() -> int:
    """Never the same twice in a process, and below the ports that the system gives to clients: what
    is free now is free when a server is started there. Each process tries them in another order."""
    for port in _ports:
        if is_free(port):
            return port
    raise AssertionError(f"no free port from {LOWEST_PORT} to {HIGHEST_PORT}")


def _members(client: WireClient) -> Sequence[Any]:
    found: Sequence[Any] = client.call(ApiKey.METADATA, 1, topics=[]).brokers
    return found


@dataclass
class ClusterBroker:
    """One of the brokers, through all its restarts."""

    node_id: int
    log: Path
    settings: dict[str, str]
    store: dict[str, str]
    module: str = MODULE
    process: BrokerProcess | None = None
    stopped: bool = False
    """By SIGSTOP."""

    @property
    def bootstrap(self) -> str:
        """Where clients reach it: through a way, if there is one to it."""
        return f"127.0.0.1:{self.settings.get('advertised_port', self.settings['port'])}"

    @property
    def running(self) -> BrokerProcess:
        assert self.process is not None, f"broker {self.node_id} does not run"
        return self.process

    def valkey(self) -> psutil.Process | None:
        """The Valkey that this broker runs."""
        children = psutil.Process(self.running.process.pid).children()
        return next((child for child in children if child.name() == "valkey-server"), None)

    def begin(self) -> BrokerProcess:
        """Start it; it is not ready yet."""
        self.process = BrokerProcess(self.log, self.store, self.module, **self.settings)
        return self.process

    def start(self) -> None:
        self.begin().wait_until_ready()

    def kill(self) -> None:
        self.running.kill()
        self.process = None

    def stop_in_its_tracks(self) -> None:
        self.running.process.send_signal(signal.SIGSTOP)
        self.stopped = True

    def go_on(self) -> None:
        self.running.process.send_signal(signal.SIGCONT)
        self.stopped = False

    def end(self) -> None:
        if self.process is None:
            return
        if self.stopped:
            self.kill()
        else:
            self._terminate()
        self.process = None

    def _terminate(self) -> None:
        try:
            self.running.terminate()
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"broker {self.node_id} does not end at SIGTERM") from None


@dataclass(frozen=True, slots=True)
class BrokerWays:
    """How one broker reaches MinIO and Valkey. There is no way to a folder. `more_ways` add how
    clients reach the broker, and `puts` between the way and MinIO."""

    to_redis: Way
    store: Way | None
    clients: Way | None = None
    puts: PutFaults | None = None

    @property
    def from_clients(self) -> Way:
        assert self.clients is not None, "clients reach the broker directly"
        return self.clients

    @property
    def to_store(self) -> Way:
        assert self.store is not None, "there is no way to a folder"
        return self.store


@dataclass
class Cluster:
    """`proxies` are by node id: brokers that reach the store through one."""

    folder: Path
    bucket_url: str
    redis_url: str | None
    """None: the brokers have the bucket alone."""
    store: RunningStore | None
    valkey: FaultyValkey
    brokers: list[ClusterBroker] = field(default_factory=list)
    proxies: dict[int, SlowPuts] = field(default_factory=dict)
    ways: dict[int, BrokerWays] = field(default_factory=dict)
    """The ways of each broker, by node id."""

    @property
    def bootstrap(self) -> str:
        return ",".join(broker.bootstrap for broker in self.brokers)

    def open_bucket(self) -> SyncBucket:
        """Past every proxy. The caller closes it."""
        return open_sync_bucket(self.bucket_url)

    def wait_until_ready(self) -> None:
        """All brokers that were begun."""
        for broker in self.brokers:
            if broker.process is not None and not broker.process.ready:
                broker.process.wait_until_ready()

    def wait_until_all_are_members(self) -> None:
        """Each running broker names all that run to its clients."""
        running = [broker for broker in self.brokers if broker.process is not None]
        wanted = {broker.node_id for broker in running}
        for broker in running:
            with WireClient(broker.bootstrap) as client:
                deadline = Deadline(f"not all brokers are members: {wanted}")
                while {row.node_id for row in _members(client)} != wanted:
                    deadline.pause()

    def metric(self, name: str) -> dict[int, float]:
        """A sample of /metrics of each broker, by node id; 0 where a broker has no such sample."""
        return {each.node_id: each.running.metrics().get(name, 0.0) for each in self.brokers}

    def requests(self) -> float:
        """To the bucket, of all brokers since they started."""
        return sum(
            value
            for broker in self.brokers
            if broker.process is not None
            for name, value in broker.running.metrics().items()
            if name.startswith("bucketlog_bucket_requests_total")
        )


def _place() -> Path | None:
    """Where there is room, in memory: disks of small machines let an fsync wait for many seconds
    now and then, and what is measured here is brokers. None: where temporary files are."""
    if not IN_MEMORY.is_mount() or shutil.disk_usage(IN_MEMORY).free < IN_MEMORY_FREE_BYTES:
        return None
    return IN_MEMORY


def _without_brokers(closing: ExitStack, store: Store, *, without_redis: bool) -> Cluster:
    """A bucket and a Valkey, until `closing` is left; the Valkey does not run `without_redis`."""
    there = TemporaryDirectory(prefix="bucketlog-cluster-", dir=_place())
    folder = Path(closing.enter_context(there))
    valkey = OwnValkey(folder)
    if not without_redis:
        valkey.start()
        closing.callback(valkey.stop)
    lent = None
    if store is Store.MINIO:
        lent = closing.enter_context(running(StoreName.MINIO, folder / "minio"))
        lent.make_bucket(BUCKET)
        closing.enter_context(mock.patch.dict(os.environ, lent.environment()))
    return Cluster(
        folder=folder,
        bucket_url=f"s3://{BUCKET}" if lent else f"file://{folder}/bucket",
        redis_url=None if without_redis else f"unix://{folder / VALKEY_SOCKET}",
        store=lent,
        valkey=valkey,
    )


def _by_ways(
    closing: ExitStack,
    cluster: Cluster,
    node_id: int,
    port: str,
    *,
    more: bool,
    replicated: "ReplicatedValkey | None",
) -> tuple[dict[str, str], dict[str, str]]:
    """The broker's settings and variables that name its ways."""
    redis = cluster.folder / VALKEY_SOCKET if replicated is None else replicated.address
    ways = cluster.ways[node_id] = _ways(closing, cluster, redis, int(port), more=more)
    settings = {"redis_url": f"redis://127.0.0.1:{ways.to_redis.port}"}
    if replicated is not None:
        replicated.ways.append(ways.to_redis)
    if ways.clients is not None:
        settings["advertised_port"] = str(ways.clients.port)
    if ways.store is None:
        return settings, {}
    return settings, {"AWS_ENDPOINT_URL_S3": f"http://127.0.0.1:{ways.store.port}"}


def _ways(
    closing: ExitStack,
    cluster: Cluster,
    redis: Path | tuple[str, int],
    port: int,
    *,
    more: bool,
) -> BrokerWays:
    to_redis = closing.enter_context(Way(redis, ANY_PORT))
    clients = None
    if more:
        clients = Way(("127.0.0.1", port), ("127.0.0.1", free_port()))
        closing.enter_context(clients)
    if cluster.store is None:
        return BrokerWays(to_redis, None, clients)
    endpoint_url, puts = cluster.store.endpoint_url, None
    if more:
        puts = closing.enter_context(PutFaults(endpoint_url))
        endpoint_url = puts.endpoint_url
    there = urlsplit(endpoint_url)
    assert there.hostname is not None
    assert there.port is not None
    store = closing.enter_context(Way((there.hostname, there.port), ANY_PORT))
    return BrokerWays(to_redis, store, clients, puts)


@contextmanager
def running_cluster(
    count: int,
    *,
    store: Store = Store.FILE,
    settings: Mapping[str, str] | None = None,
    zones: Sequence[str] = (),
    delays: Mapping[int, Delay] | None = None,
    late: int = 0,
    module: str = MODULE,
    environment: Mapping[str, str] | None = None,
    redis_ports: Sequence[int] = (),
    by_ways: bool = False,
    replicated: "ReplicatedValkey | None" = None,
    more_ways: bool = False,
    without_redis: bool = False,
) -> Iterator[Cluster]:
    """`count` brokers that are ready, and `late` ones that somebody else starts. `delays`: by node
    id, what becomes of its PUTs; in MinIO only. `zones`: by node id. While the block lasts, AWS's
    variables of this process name MinIO. Raises `ConfigurationError` where MinIO is not
    installed. `module` is what each broker runs, with `environment` beside its own; `redis_ports`
    has the port of each broker's Redis, if it is not the cluster's Valkey. With `by_ways`, each
    broker reaches MinIO and Valkey through `Cluster.ways`. These lead to `replicated`, if it is
    given. `more_ways`: see `BrokerWays`. `without_redis`: brokers have the bucket alone. Values of
    `settings` may have `{port}`, the broker's port."""
    with ExitStack() as closing:
        cluster = _without_brokers(closing, store, without_redis=without_redis)
        cluster.valkey, given = replicated or cluster.valkey, settings or {}
        lent = cluster.store
        for node_id in range(count + late):
            variables = {**(environment or {}), **(lent.environment() if lent else {})}
            if delays is not None and node_id in delays:
                assert lent is not None, "only what is sent to a server can be delayed"
                proxy = closing.enter_context(SlowPuts(lent.endpoint_url, delays[node_id]))
                cluster.proxies[node_id] = proxy
                variables["AWS_ENDPOINT_URL_S3"] = proxy.endpoint_url
            ours = {
                "bucket_url": cluster.bucket_url,
                **({"redis_url": cluster.redis_url} if cluster.redis_url is not None else {}),
                "node_id": str(node_id),
                "port": str(free_port()),
                "zone": zones[node_id] if zones else "",
            }
            if redis_ports:
                ours["redis_url"] = f"redis://127.0.0.1:{redis_ports[node_id]}"
            if by_ways:
                named, found = _by_ways(
                    closing, cluster, node_id, ours["port"], more=more_ways, replicated=replicated
                )
                ours |= named
                variables |= found
            broker = ClusterBroker(
                node_id,
                cluster.folder / f"broker-{node_id}.log",
                ours | {name: text.replace("{port}", ours["port"]) for name, text in given.items()},
                variables,
                module,
            )
            cluster.brokers.append(broker)
            closing.callback(broker.end)
        for broker in cluster.brokers[:count]:
            broker.begin()
        cluster.wait_until_ready()
        cluster.wait_until_all_are_members()
        try:
            yield cluster
        except BaseException as error:
            for broker in cluster.brokers:
                lines = broker.log.read_text(errors="replace").splitlines()[-LOG_TAIL_LINES:]
                error.add_note("\n".join([f"-- the log of broker {broker.node_id}:", *lines]))
            raise
