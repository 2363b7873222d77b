"""All client connections of the broker, whatever listener they came through.

Invariants: connections are bounded in total, per address and per tenant. At the total limit, a new
connection replaces an idle one. A connection without requests is closed after a while, and earlier
if a request arrives too slowly.
"""

import asyncio
import time
from collections.abc import Callable

from bucketlog.stateless_broker.network.admission import Admission, AdmissionLimits
from bucketlog.stateless_broker.network.audit import AuditLog
from bucketlog.stateless_broker.network.closing_lines import ClosingLines
from bucketlog.stateless_broker.network.connection import Connection
from bucketlog.stateless_broker.network.connection_owner import (
    ConnectionLimits,
    Entrance,
    RequestHandler,
    Service,
)
from bucketlog.stateless_broker.network.incoming import RECEIVE_BYTES
from bucketlog.stateless_broker.network.memory_budget import MemoryBudget
from bucketlog.stateless_broker.network.receiving import Receiving
from bucketlog.stateless_broker.network.request_figures import RequestFigures
from bucketlog.stateless_broker.network.sending import Sending
from bucketlog.stateless_broker.network.tenant_connections import TenantConnections
from bucketlog.stateless_broker.settings.broker import BrokerSettings

LAST_ANSWERS_S = 0.2
LOOK_S = 1.0
"""The interval between checks of all connections."""


class OpenConnections:
    """`budget` is the memory of received frames, `answers` that of responses. `handler`
    serves connections whose entrance has no service."""

    def __init__(
        self,
        *,
        settings: BrokerSettings,
        budget: MemoryBudget,
        answers: MemoryBudget,
        figures: RequestFigures,
        audit: AuditLog | None = None,
        handler: RequestHandler | None = None,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._limits = ConnectionLimits(
            request_bytes_max=settings.request_bytes_max,
            other_request_bytes_max=settings.other_request_bytes_max,
            requests_in_flight=settings.requests_in_flight,
            other_requests_in_flight=settings.other_requests_in_flight,
            response_buffer_bytes=settings.response_buffer_bytes,
        )
        self._service = None if handler is None else Service(handler, figures)
        self._budget = budget
        self._figures = figures
        self._audit = audit
        self._now_s = now_s
        self._connections: Admission[Connection] = Admission(
            AdmissionLimits(
                connections=settings.connections_max,
                per_address=settings.connections_per_address_max,
                per_address_per_s=settings.connections_per_address_per_s_max,
                idle_ms=settings.connections_idle_ms_max,
            )
        )
        self._of_tenants = TenantConnections(
            settings.connections_max * settings.tenant_connections_percent_max // 100
        )
        self._receive_buffer = memoryview(bytearray(RECEIVE_BYTES))
        self._receiving = Receiving(
            budget,
            bytes_per_s_min=settings.request_bytes_per_s_min,
            window_ms=settings.request_slow_ms_max,
        )
        self._sending = Sending(
            answers,
            stalled_ms_max=settings.response_stalled_ms_max,
            slow_ms_max=settings.response_slow_ms_max,
        )
        self._lines = ClosingLines(per_minute=settings.closing_lines_per_minute, now_s=now_s)
        self._looking: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Check the connections from now on."""
        self._look_again()

    def _look_again(self) -> None:
        self._looking = asyncio.get_running_loop().call_later(LOOK_S, self._look)

    def _look(self) -> None:
        self._look_again()
        self.look()

    def look(self) -> None:
        """Close connections that are idle, or that send a request too slowly. Also close those
        whose clients do not read responses, or read too slowly while other responses wait."""
        self._close_idle()
        self._receiving.look(self._now_s())
        self._sending.look(self._now_s())
        if self._audit is not None:
            self._audit.look()

    def _close_idle(self) -> None:
        """Close connections without a recent request that wait for no response."""
        now_s = self._now_s()
        for connection in self._connections.idle(now_s):
            if connection.is_waiting_for_requests:
                limit_ms = self._settings.connections_idle_ms_max
                connection.end(f"no request for {limit_ms} ms (BUCKETLOG_CONNECTIONS_IDLE_MS_MAX)")
            else:
                connection.active_s = now_s

    def make(self, entrance: Entrance) -> Connection:
        """A connection that comes through the listener; it counts once it is made."""
        service = entrance.service or self._service
        assert service is not None, f"listener {entrance.listener} has nobody who serves it"
        return Connection(
            entrance=entrance,
            service=service,
            budget=self._budget,
            limits=self._limits,
            receive_buffer=self._receive_buffer,
            owner=self,
            now_s=self._now_s,
        )

    def opened(self, connection: Connection) -> str | None:
        now_s = self._now_s()
        refusal = self._connections.refusal(connection.host, now_s)
        if refusal is None:
            refusal = self.placed(connection)
        if refusal is None and self._connections.is_full and not self._make_room():
            refusal = f"{self._settings.connections_max} connections (BUCKETLOG_CONNECTIONS_MAX)"
        if refusal is not None:
            self._of_tenants.remove(connection)
            return refusal
        self._connections.add(connection, connection.host)
        self._figures.connections = self._connections.count
        return None

    def placed(self, connection: Connection) -> str | None:
        quotas = connection.service.quotas
        refusal = None if quotas is None else quotas.connection_refusal(connection.host)
        return refusal or self._of_tenants.add(connection)

    def _make_room(self) -> bool:
        """Close an idle connection of the address with the most connections. Its client can connect
        again when needed."""
        for connection in self._connections.by_least_active():
            if connection.is_waiting_for_requests:
                connection.end("another connection takes its place (BUCKETLOG_CONNECTIONS_MAX)")
                self.closed(connection)
                return True
        return False

    def sent(self, connection: Connection) -> None:
        self._sending.watch(connection)

    def receiving(self, connection: Connection, *, has_begun: bool) -> None:
        if has_begun:
            self._receiving.begin(connection, self._now_s())
        else:
            self._receiving.end(connection)

    def ended(self, connection: Connection, reason: str) -> None:
        connection.service.figures.closed_because(reason)
        self._lines.closed(connection.peer, reason)
        if self._audit is not None:
            self._audit.ended(connection, reason)

    def closed(self, connection: Connection) -> None:
        if self._audit is not None:
            self._audit.ended(connection, "the client closed the connection, or the broker stopped")
        self._sending.forget(connection)
        self._of_tenants.remove(connection)
        self._connections.remove(connection, connection.host)
        self._figures.connections = self._connections.count

    def take_no_more(self) -> None:
        """Take no new requests on the open connections."""
        if self._looking is not None:
            self._looking.cancel()
        for connection in self._connections:
            connection.take_no_more()

    async def stop(self) -> None:
        """Close the connections once their last answers are sent."""
        for connection in self._connections:
            connection.finish()
        for _ in range(10):
            if not self._connections.count:
                return
            await asyncio.sleep(LAST_ANSWERS_S / 10)
        for connection in self._connections:
            connection.end("the broker stops")
