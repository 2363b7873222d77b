"""The listening sockets, one `Listener` each.

Invariant: nobody is kept waiting at a socket before its listener has started.
"""

import asyncio
import socket
from collections.abc import Callable

from bucketlog.stateless_broker.network.connection import Connection
from bucketlog.stateless_broker.network.connection_owner import Entrance
from bucketlog.stateless_broker.network.open_connections import OpenConnections
from bucketlog.stateless_broker.network.tls_channel import TlsChannel

KEEPALIVE_PROBES = 4


def bound_socket(host: str, port: int, *, keepalive_ms: int) -> socket.socket:
    """The address is this process'. Nobody is kept waiting there before a listener has started:
    clients are refused, and ask another broker. Raises `OSError`.

    Accepted sockets inherit the TCP keepalive. A dead client is detected after `keepalive_ms`
    without a byte, and the same time again without an answer to a probe."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in (
            ("TCP_KEEPIDLE", max(1, keepalive_ms // 1000)),
            ("TCP_KEEPINTVL", max(1, keepalive_ms // 1000 // KEEPALIVE_PROBES)),
            ("TCP_KEEPCNT", KEEPALIVE_PROBES),
        ):
            if hasattr(socket, name):
                bound.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
        bound.bind((host, port))
    except OSError:
        bound.close()
        raise
    return bound


class Listener:
    """`entrance` has the listener's name in the settings. All listeners share `connections`.
    `secure` puts TLS between a socket and its connection; None: the listener has no TLS."""

    def __init__(
        self,
        entrance: Entrance,
        listening: socket.socket,
        connections: OpenConnections,
        *,
        backlog: int,
        secure: Callable[[Connection], TlsChannel] | None = None,
    ) -> None:
        self._entrance = entrance
        self._listening = listening
        self._connections = connections
        self._backlog = backlog
        self._secure = secure
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        """Begin to listen. Raises `OSError`."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            self._accept, sock=self._listening, backlog=self._backlog
        )

    def _accept(self) -> asyncio.BufferedProtocol:
        connection = self._connections.make(self._entrance)
        return connection if self._secure is None else self._secure(connection)

    def stop_accepting(self) -> None:
        if self._server is not None:
            self._server.close()
