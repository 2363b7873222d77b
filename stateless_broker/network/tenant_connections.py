"""The connections of each tenant: their limit, and their number for the metrics.

Invariant: at its limit, a tenant's new connection replaces the oldest one that is idle; without an
idle one, the new connection is refused. Other tenants' connections stay.
"""

from bucketlog.stateless_broker.network.connection import Connection


class TenantConnections:
    """`limit`: how many connections one tenant may have."""

    def __init__(self, limit: int) -> None:
        self._limit = max(limit, 1)
        self._open: dict[str, dict[Connection, None]] = {}

    def add(self, connection: Connection) -> str | None:
        """The reason to refuse the connection; None: it is counted. A connection without a tenant
        is not counted."""
        service = connection.service
        if not service.tenant:
            return None
        own = self._open.setdefault(service.tenant, {})
        if len(own) >= self._limit and not self._make_room(own):
            return (
                f"its tenant has {self._limit} connections "
                "(BUCKETLOG_TENANT_CONNECTIONS_PERCENT_MAX)"
            )
        own[connection] = None
        service.figures.connections = len(own)
        return None

    def _make_room(self, own: dict[Connection, None]) -> bool:
        oldest = next((each for each in own if each.is_waiting_for_requests), None)
        if oldest is None:
            return False
        oldest.end("another connection takes its place (BUCKETLOG_TENANT_CONNECTIONS_PERCENT_MAX)")
        self.remove(oldest)
        return True

    def remove(self, connection: Connection) -> None:
        service = connection.service
        own = self._open.get(service.tenant)
        if own is not None and own.pop(connection, connection) is None:
            service.figures.connections = len(own)
