"""The composition root: a broker's node, its sockets and its HTTP endpoint, started and stopped in
order.

Invariant: it listens only when its epoch is active and its view is whole; it goes by flushing what
it took. Clock, randomness, bucket and Redis enter here and nowhere else.
"""

import asyncio
import gc
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from uuid import uuid4

from redis.asyncio import Redis

from bucketlog.log_format import record_check
from bucketlog.log_format.errors import ConfigurationError
from bucketlog.metadata.sequencer.producer_rows import ProducerRows
from bucketlog.metadata.sequencer.redis_url import connect_redis
from bucketlog.stateless_broker.assembly.broker_parts import WorkCounts
from bucketlog.stateless_broker.assembly.logins import Logins
from bucketlog.stateless_broker.assembly.node import Node, NodeEnvironment
from bucketlog.stateless_broker.assembly.tokens import verification_keys
from bucketlog.stateless_broker.authentication.login import LoginRules
from bucketlog.stateless_broker.authentication.verification_keys import VerificationKeys
from bucketlog.stateless_broker.health import Health
from bucketlog.stateless_broker.listener_addresses import ListenerSpec
from bucketlog.stateless_broker.network.certificates import Certificates
from bucketlog.stateless_broker.network.connection import Connection
from bucketlog.stateless_broker.network.connection_owner import Entrance
from bucketlog.stateless_broker.network.incoming import RECEIVE_BYTES
from bucketlog.stateless_broker.network.listener import Listener, bound_socket
from bucketlog.stateless_broker.network.memory_budget import MemoryBudget
from bucketlog.stateless_broker.network.open_connections import OpenConnections
from bucketlog.stateless_broker.network.request_figures import RequestFigures
from bucketlog.stateless_broker.network.tls_channel import HandshakeLimit, TlsChannel
from bucketlog.stateless_broker.process.allocator import (
    Peaks,
    Unused,
    free_bytes,
    give_back_unused,
)
from bucketlog.stateless_broker.process.audit_output import open_audit_log
from bucketlog.stateless_broker.process.embedded_redis import ValkeyProcesses
from bucketlog.stateless_broker.process.http_connections import HttpLimits
from bucketlog.stateless_broker.process.http_endpoint import HttpEndpoint, application
from bucketlog.stateless_broker.process.metrics import (
    BoundedState,
    BrokerFigures,
    FigureSources,
    MemoryBudgets,
)
from bucketlog.stateless_broker.process.open_files import OpenFilesWatch
from bucketlog.stateless_broker.settings import BrokerSettings
from bucketlog.tiered_storage.backends.location import open_bucket, open_sync_bucket
from bucketlog.tiered_storage.backends.threaded import ThreadedBucket
from bucketlog.tiered_storage.counting import CountingBucket
from bucketlog.tiered_storage.state_signature import NO_KEYS, StateKeys, read_state_keys

PEAK_LOOK_S = 5.0
"""The interval of checks whether a memory peak is over."""
EXPORTED_LIMITS = (
    "client_quota_tracked_max",
    "cluster_partitions_max",
    "connections_max",
    "coordinated_groups_bytes_max",
    "groups_max",
    "http_connections_max",
    "offsets_max",
    "produce_buffer_bytes",
    "producers_max",
    "response_memory_bytes_max",
    "transactional_ids_max",
)
"""Settings that /metrics shows, so that alerts can compare metrics with limits."""
OPEN_FILES_LOOK_S = 1.0
"""The interval of checks whether a file can be opened."""


def wall_clock_ms() -> int:
    return time.time_ns() // 1_000_000


@dataclass(frozen=True, slots=True)
class ReadyReport:
    """What a started broker tells. `host` and `port` are the first listener's; `listeners` has the
    addresses by name."""

    host: str
    port: int
    listeners: dict[str, str]
    http_host: str
    http_port: int
    node_id: int
    cluster_id: str
    epoch: int


class Broker:
    def __init__(self, settings: BrokerSettings) -> None:
        self._settings = settings
        self._health = Health()
        self._budget = MemoryBudget(
            settings.produce_buffer_bytes,
            address_percent_max=settings.produce_buffer_address_percent_max,
        )
        self._audit = open_audit_log(settings)
        self._node: Node | None = None
        self._sockets: list[socket.socket] = []
        self._listeners: list[Listener] = []
        self._connections: OpenConnections | None = None
        self._certificates: Certificates | None = None
        self._keys: VerificationKeys | None = None
        self._http: HttpEndpoint | None = None

    async def start(self) -> ReadyReport:
        """Waits for Redis and the bucket. After a `BucketlogError`, `stop` ends all that runs."""
        settings = self._settings
        warm = asyncio.create_task(asyncio.to_thread(record_check.warm_up))
        ports = await self._bind_all()
        environment = await node_environment(settings)
        counts = WorkCounts()
        requests = RequestFigures(slow_request_ms=settings.slow_request_ms)
        self._node = node = Node(
            settings,
            environment,
            health=self._health,
            counts=counts,
        )
        node.dispatcher.audit = self._audit
        figures = BrokerFigures(
            FigureSources(
                bucket=environment.bucket,
                budgets=MemoryBudgets(frames=self._budget, answers=node.answers),
                health=self._health,
                work=counts,
                requests=requests,
                limits={name: getattr(settings, name) for name in EXPORTED_LIMITS},
                state=BoundedState(
                    view=lambda: node.view,
                    producers=lambda: _producer_rows(node),
                    certificate_s=self._certificate_s,
                    token_keys=lambda: self._keys,
                    group_bytes=lambda: node.epochs.group_bytes if self._health.started else None,
                ),
            )
        )
        self._http = self._make_http(figures, requests)
        self._http.start()
        epoch = await node.begin(ports)
        await warm  # the first produce does not wait for a compiler
        await self._listen(node, requests)
        await node.serve()
        self._spawn_looks(node)
        gc.collect()
        gc.freeze()
        self._health.started = True
        me, cluster_id = node.membership.me.node_id, node.membership.cluster_id
        http_port = self._http.port
        return ReadyReport(
            host=settings.listener_specs[0].host,
            port=ports[0],
            listeners={
                spec.name: f"{spec.host}:{port}"
                for spec, port in zip(settings.listener_specs, ports, strict=True)
            },
            http_host=settings.http_host,
            http_port=http_port,
            node_id=me,
            cluster_id=cluster_id,
            epoch=epoch,
        )

    async def _bind_all(self) -> list[int]:
        """The ports of the listeners, in their order. Loads the certificates, if there are any."""
        settings = self._settings
        if any(spec.is_tls for spec in settings.listener_specs):
            self._certificates = Certificates(settings, self._health, now_s=time.time)
            await self._certificates.start()
        self._keys = verification_keys(settings, self._health)
        for spec in settings.listener_specs:
            self._sockets.append(_bind(settings, spec))
        return [int(listening.getsockname()[1]) for listening in self._sockets]

    def _certificate_s(self) -> float | None:
        return None if self._certificates is None else self._certificates.expires_in_s

    async def _listen(self, node: Node, requests: RequestFigures) -> None:
        settings = self._settings
        self._connections = connections = OpenConnections(
            settings=settings,
            handler=node.dispatcher.handle,
            budget=self._budget,
            answers=node.answers,
            figures=requests,
            audit=self._audit,
            quotas=node.parts.log.quotas,
        )
        connections.start()
        logins = Logins(settings, node.parts.log.view, seal=node.parts.seal, keys=self._keys)
        for spec, listening in zip(settings.listener_specs, self._sockets, strict=True):
            listener = Listener(
                Entrance(spec.name, _login_rules(spec, logins)),
                listening,
                connections,
                backlog=settings.listen_backlog_size,
                secure=self._secure() if spec.is_tls else None,
            )
            try:
                await listener.start()
            except OSError as error:  # somebody was quicker
                raise _cannot_listen(settings, spec, error) from error
            self._listeners.append(listener)

    def _secure(self) -> Callable[[Connection], TlsChannel]:
        """Puts TLS between a socket and its connection."""
        certificates, limit = (
            self._certificates,
            HandshakeLimit(self._settings.ssl_handshake_ms_max),
        )
        audit = self._audit
        assert certificates is not None, "there are SSL listeners"
        received = memoryview(bytearray(RECEIVE_BYTES))
        return lambda connection: TlsChannel(connection, certificates, limit, received, audit)

    def reload_certificates(self) -> None:
        if self._certificates is not None:
            self._certificates.reload_soon()

    def _make_http(self, figures: BrokerFigures, requests: RequestFigures) -> HttpEndpoint:
        settings = self._settings
        return HttpEndpoint(
            application(self._health, figures),
            host=settings.http_host,
            port=settings.http_port,
            limits=HttpLimits(
                settings.http_connections_max,
                settings.http_request_ms_max,
                settings.http_idle_ms_max,
                settings.http_header_bytes_max,
            ),
            closed=requests.closed_by_limit,
        )

    def _spawn_looks(self, node: Node) -> None:
        spawn = node.parts.supervision.supervisor.spawn
        spawn(self._trim_after_peaks(node), "returning memory", on_failure=lambda _: None)
        spawn(_watch_open_files(), "checking open files", on_failure=lambda _: None)
        if self._certificates is not None:
            spawn(self._certificates.watch(), "reloading certificates", on_failure=lambda _: None)
        if self._keys is not None:
            spawn(self._keys.follow(), "loading keys for tokens", on_failure=lambda _: None)

    async def _trim_after_peaks(self, node: Node) -> None:
        peaks, unused = Peaks(), Unused()
        while True:
            await asyncio.sleep(PEAK_LOOK_S)
            if peaks.is_over(self._budget.held_bytes + node.answers.held_bytes):
                await asyncio.to_thread(give_back_unused)
            elif unused.is_worth_returning(free_bytes()):
                await asyncio.to_thread(give_back_unused, 0)

    async def stop(self) -> None:
        """Stop accepting, flush, answer, leave."""
        deadline = asyncio.get_running_loop().time() + self._settings.drain_timeout_ms / 1000
        self._health.started = False
        if self._node is not None:
            await self._node.hand_over()
        for listener in self._listeners:
            listener.stop_accepting()
        if self._connections is not None:
            self._connections.take_no_more()
        if self._node is not None:
            await self._node.drain(deadline)
        if self._connections is not None:
            await self._connections.stop()
        if self._http is not None:
            await self._http.stop()
        if self._node is not None:
            await self._node.close()
        for listening in self._sockets:
            listening.close()
        if self._audit is not None:
            self._audit.close()


async def node_environment(settings: BrokerSettings) -> NodeEnvironment:
    """The clock, randomness, bucket and Redis of a broker on this machine. Raises
    `BucketlogError`."""
    state_keys = _state_keys(settings)
    bucket = CountingBucket(
        await open_bucket(settings.bucket_url, shard=settings.shard, state_keys=state_keys)
    )
    return NodeEnvironment(
        bucket=bucket,
        history=bucket.beside(_open_history(settings, state_keys)),
        connect_redis=_redis_connector(settings),
        now_ms=wall_clock_ms,
        monotonic=time.monotonic,
        new_uuid=uuid4,
        random=Random(),
        embedded=ValkeyProcesses(settings),
    )


def _login_rules(spec: ListenerSpec, logins: Logins) -> LoginRules | None:
    return logins.rules(is_tls=spec.is_tls) if spec.has_login else None


def _redis_connector(settings: BrokerSettings) -> Callable[[], Redis] | None:
    """None without a configured Redis."""
    url, timeout_ms = settings.redis_url, settings.redis_timeout_ms
    return (lambda: connect_redis(url, timeout_ms=timeout_ms)) if url is not None else None


def _producer_rows(node: Node) -> ProducerRows | None:
    """None while the broker looks for Redis."""
    return None if node.view is None else node.parts.cluster.sequencer.producer_rows


async def _watch_open_files() -> None:
    watch = OpenFilesWatch(now_s=time.monotonic)
    while True:
        watch.look()
        await asyncio.sleep(OPEN_FILES_LOOK_S)


def _state_keys(settings: BrokerSettings) -> StateKeys:
    if settings.state_key_file is None:
        return NO_KEYS
    return read_state_keys(
        settings.state_key_file, unsigned_accepted=settings.state_unsigned_accepted
    )


def _open_history(settings: BrokerSettings, state_keys: StateKeys) -> ThreadedBucket:
    """The same bucket, with requests of its own for old segments."""
    return ThreadedBucket(
        open_sync_bucket(settings.bucket_url, shard=settings.shard, state_keys=state_keys),
        threads=settings.history_ranges_in_flight,
    )


def _bind(settings: BrokerSettings, spec: ListenerSpec) -> socket.socket:
    try:
        return bound_socket(spec.host, spec.port, keepalive_ms=settings.connections_keepalive_ms)
    except OSError as error:
        raise _cannot_listen(settings, spec, error) from error


def _cannot_listen(
    settings: BrokerSettings, spec: ListenerSpec, error: OSError
) -> ConfigurationError:
    reason = error.strerror or str(error)
    if settings.listeners is None:
        return ConfigurationError(
            f"cannot listen on {spec.host}:{spec.port}: {reason}",
            remedy="choose another port: BUCKETLOG_PORT, or --port of bucketlog dev",
        )
    return ConfigurationError(
        f"listener {spec.name} cannot listen on {spec.host}:{spec.port}: {reason}",
        remedy="choose another address in BUCKETLOG_LISTENERS",
    )
