"""The composition root: a broker's node, its sockets and its HTTP endpoint, started and stopped in
order.

Invariant: the broker listens only when its epoch is active and its view is whole. When it leaves,
it flushes what it took. Clock, randomness, bucket and Redis enter here and nowhere else.
"""

import asyncio
import gc
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass

from bucketlog.log_format import record_check
from bucketlog.log_format.errors import ConfigurationError
from bucketlog.log_format.wire import plain_produce
from bucketlog.stateless_broker.assembly.tenant_plan import load_tenants
from bucketlog.stateless_broker.assembly.tokens import verification_keys
from bucketlog.stateless_broker.authentication.verification_keys import VerificationKeys
from bucketlog.stateless_broker.health import Health
from bucketlog.stateless_broker.network.certificates import Certificates
from bucketlog.stateless_broker.network.connection import Connection
from bucketlog.stateless_broker.network.incoming import RECEIVE_BYTES
from bucketlog.stateless_broker.network.listener import Listener, bound_socket
from bucketlog.stateless_broker.network.memory_budget import MemoryBudget
from bucketlog.stateless_broker.network.open_connections import OpenConnections
from bucketlog.stateless_broker.network.server_names import load_tls_with_names
from bucketlog.stateless_broker.network.tls_channel import HandshakeLimit, TlsChannel
from bucketlog.stateless_broker.network.tls_context import load_tls
from bucketlog.stateless_broker.network.turns import Turns
from bucketlog.stateless_broker.process.allocator import (
    Peaks,
    UnusedMemory,
    free_bytes,
    give_back_unused,
)
from bucketlog.stateless_broker.process.audit_output import open_audit_log
from bucketlog.stateless_broker.process.console_login import check_console
from bucketlog.stateless_broker.process.console_process import ROOT
from bucketlog.stateless_broker.process.hosted_log import HostedLog, ProcessParts, for_all
from bucketlog.stateless_broker.process.hosting import Hosting, OnlyLog, TenantLogs
from bucketlog.stateless_broker.process.http_connections import HttpLimits
from bucketlog.stateless_broker.process.http_endpoint import HttpEndpoint, application
from bucketlog.stateless_broker.process.open_files import OpenFilesWatch
from bucketlog.stateless_broker.process.served_console import ServedConsole
from bucketlog.stateless_broker.settings.broker import BrokerSettings
from bucketlog.stateless_broker.settings.listener_addresses import ListenerSpec
from bucketlog.stateless_broker.supervision import Supervisor

PEAK_LOOK_S = 5.0
"""The interval of checks whether a memory peak is over."""
LATE_MS = 1_000
"""The time in which a client can still get the response that the console is too late."""
OPEN_FILES_LOOK_S = 1.0
"""The interval of checks whether a file can be opened."""


@dataclass(frozen=True, slots=True)
class ReadyReport:
    """The report of a started broker. `host` and `port` are the first listener's; `listeners` has
    the addresses by name."""

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
            tenant_percent_max=settings.tenant_memory_percent_max,
        )
        self._answers = MemoryBudget(
            settings.response_memory_bytes_max,
            address_percent_max=settings.response_memory_address_percent_max,
            tenant_percent_max=settings.tenant_memory_percent_max,
        )
        self._audit = open_audit_log(settings)
        self._hosting: Hosting | None = None
        self._looks = Supervisor()
        self._sockets: list[socket.socket] = []
        self._listeners: list[Listener] = []
        self._connections: OpenConnections | None = None
        self._certificates: Certificates | None = None
        self._keys: VerificationKeys | None = None
        self._http: HttpEndpoint | None = None
        self._console: ServedConsole | None = None

    async def start(self) -> ReadyReport:
        """Waits for Redis and the bucket. After a `BucketlogError`, `stop` ends all that runs."""
        settings = self._settings
        check_console(settings)
        warm = asyncio.create_task(asyncio.to_thread(_compile_kernels))
        ports = await self._bind_all()
        self._hosting = hosting = await self._open_logs()
        if settings.console:
            self._console = ServedConsole(settings, hosting.logs[0], self._audit)
        self._http = self._make_http(hosting)
        self._http.start()
        await hosting.begin(ports)
        await warm  # the first produce does not wait for a compiler
        await self._listen(hosting)
        await hosting.serve()
        self._spawn_looks()
        gc.collect()
        gc.freeze()
        self._health.started = True
        hosting.note_started()
        first = hosting.logs[0]
        return ReadyReport(
            host=settings.listener_specs[0].host,
            port=next(iter(ports.values())),
            listeners={
                spec.name: f"{spec.host}:{ports[spec.name]}" for spec in settings.listener_specs
            },
            http_host=settings.http_host,
            http_port=self._http.port,
            node_id=first.node.membership.me.node_id,
            cluster_id=first.node.membership.cluster_id,
            epoch=first.epoch,
        )

    async def _open_logs(self) -> Hosting:
        """Open the logs. Raises `BucketlogError`."""
        settings, plans = self._settings, load_tenants(self._settings)
        parts = ProcessParts(
            frames=self._budget,
            answers=self._answers,
            turns=Turns(time.monotonic),
            audit=self._audit,
            certificate_s=self._certificate_s,
            token_keys=lambda: self._keys,
        )
        if plans:
            tenants = TenantLogs(settings, plans, parts, self._health)
            await tenants.open()
            return tenants
        log = await HostedLog.open(
            "", settings, settings.listener_specs, parts=parts, health=self._health
        )
        return OnlyLog(log)

    async def _bind_all(self) -> dict[str, int]:
        """The ports of the listeners, by name. Loads the certificates, if there are any."""
        settings = self._settings
        if any(spec.is_tls for spec in settings.listener_specs):
            has_tenants = settings.tenants_file is not None
            self._certificates = Certificates(
                settings,
                self._health,
                now_s=time.time,
                load=load_tls_with_names if has_tenants else load_tls,
            )
            await self._certificates.start()
        self._keys = verification_keys(settings, self._health)
        for spec in settings.listener_specs:
            self._sockets.append(_bind(settings, spec))
        return {
            spec.name: int(listening.getsockname()[1])
            for spec, listening in zip(settings.listener_specs, self._sockets, strict=True)
        }

    def _certificate_s(self) -> float | None:
        return None if self._certificates is None else self._certificates.expires_in_s

    async def _listen(self, hosting: Hosting) -> None:
        settings = self._settings
        self._connections = connections = OpenConnections(
            settings=settings,
            budget=self._budget,
            answers=self._answers,
            figures=hosting.requests,
            audit=self._audit,
        )
        connections.start()
        entrances = hosting.entrances(self._keys)
        for spec, listening in zip(settings.listener_specs, self._sockets, strict=True):
            listener = Listener(
                entrances[spec.name],
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

    def _make_http(self, hosting: Hosting) -> HttpEndpoint:
        settings = self._settings
        return HttpEndpoint(
            application(
                hosting.readiness,
                hosting.figures,
                lambda: [name for log in hosting.logs if (name := log.name) is not None],
                None if self._console is None else self._console.app,
            ),
            host=settings.http_host,
            port=settings.http_port,
            limits=HttpLimits(
                settings.http_connections_max,
                settings.http_request_ms_max,
                settings.http_idle_ms_max,
                settings.http_header_bytes_max,
                slow_root=None if self._console is None else f"{ROOT}/",
                slow_ms=settings.http_console_response_ms_max + LATE_MS,
            ),
            closed=hosting.requests.closed_by_limit,
        )

    def _spawn_looks(self) -> None:
        spawn = self._looks.spawn
        spawn(self._trim_after_peaks(), "returning memory", on_failure=lambda _: None)
        spawn(_watch_open_files(), "checking open files", on_failure=lambda _: None)
        if self._certificates is not None:
            spawn(self._certificates.watch(), "reloading certificates", on_failure=lambda _: None)
        if self._keys is not None:
            spawn(self._keys.follow(), "loading keys for tokens", on_failure=lambda _: None)
        if self._console is not None:
            spawn(self._console.process.run(), "the console", on_failure=lambda _: None)
        if isinstance(self._hosting, TenantLogs):
            again = self._hosting.begin_absent()
            spawn(again, "starting tenants again", on_failure=lambda _: None)

    async def _trim_after_peaks(self) -> None:
        peaks, unused = Peaks(), UnusedMemory()
        while True:
            await asyncio.sleep(PEAK_LOOK_S)
            if peaks.is_over(self._budget.held_bytes + self._answers.held_bytes):
                await asyncio.to_thread(give_back_unused)
            elif unused.is_worth_returning(free_bytes()):
                await asyncio.to_thread(give_back_unused, 0)

    async def stop(self) -> None:
        """Stop accepting, flush, answer, leave."""
        deadline = asyncio.get_running_loop().time() + self._settings.drain_timeout_ms / 1000
        self._health.started = False
        logs = [] if self._hosting is None else self._hosting.logs
        await for_all(logs, HostedLog.hand_over)
        for listener in self._listeners:
            listener.stop_accepting()
        if self._connections is not None:
            self._connections.take_no_more()
        await for_all(logs, lambda log: log.drain(deadline))
        if self._connections is not None:
            await self._connections.stop()
        if self._http is not None:
            await self._http.stop()
        await self._looks.cancel_all()
        await for_all(logs, HostedLog.close)
        for listening in self._sockets:
            listening.close()
        if self._audit is not None:
            self._audit.close()


def _compile_kernels() -> None:
    record_check.warm_up()
    plain_produce.warm_up()


async def _watch_open_files() -> None:
    watch = OpenFilesWatch(now_s=time.monotonic)
    while True:
        watch.look()
        await asyncio.sleep(OPEN_FILES_LOOK_S)


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
