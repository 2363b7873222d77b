"""The listening socket and the connections that came through it."""

import asyncio
import socket

from bucketlog.stateless_broker.network.connection import (
    Connection,
    ConnectionLimits,
    RequestHandler,
)
from bucketlog.stateless_broker.network.memory_budget import MemoryBudget
from bucketlog.stateless_broker.network.request_figures import RequestFigures
from bucketlog.stateless_broker.settings import BrokerSettings

LAST_ANSWERS_S = 0.2
BACKLOG = 1024


def bound_socket(host: str, port: int) -> socket.socket:
    """The address is this process'. Nobody is kept waiting there before a listener has started:
    clients are refused, and ask another broker. Raises `OSError`."""
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, port))
    except OSError:
        bound.close()
        raise
    return bound


class Listener:
    def __init__(
        self,
        *,
        settings: BrokerSettings,
        handler: RequestHandler,
        budget: MemoryBudget,
        figures: RequestFigures,
    ) -> None:
        self._settings = settings
        self._limits = ConnectionLimits(
            request_bytes_max=settings.request_bytes_max,
            other_request_bytes_max=settings.other_request_bytes_max,
            request_receive_ms_max=settings.request_receive_ms_max,
            requests_in_flight=settings.requests_in_flight,
            other_requests_in_flight=settings.other_requests_in_flight,
            response_buffer_bytes=settings.response_buffer_bytes,
        )
        self._handler = handler
        self._budget = budget
        self._figures = figures
        self._connections: set[Connection] = set()
        self._server: asyncio.Server | None = None

    async def start(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._connect, sock=listening, backlog=BACKLOG)

    def _connect(self) -> Connection:
        return Connection(
            handler=self._handler,
            budget=self._budget,
            limits=self._limits,
            figures=self._figures,
            on_open=self._opened,
            on_close=self._closed,
        )

    def _opened(self, connection: Connection) -> bool:
        if len(self._connections) >= self._settings.connections_max:
            return False
        self._connections.add(connection)
        self._figures.connections = len(self._connections)
        return True

    def _closed(self, connection: Connection) -> None:
        self._connections.discard(connection)
        self._figures.connections = len(self._connections)

    def stop_accepting(self) -> None:
        """No new connections, and no new requests on those that are there."""
        if self._server is not None:
            self._server.close()
        for connection in list(self._connections):
            connection.take_no_more()

    async def stop(self) -> None:
        """Close the connections once their last answers are sent."""
        for connection in list(self._connections):
            connection.finish()
        for _ in range(10):
            if not self._connections:
                return
            await asyncio.sleep(LAST_ANSWERS_S / 10)
        for connection in list(self._connections):
            connection.end("the broker stops")
