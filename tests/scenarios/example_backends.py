"""What the services of `examples/` call: a payment service, and a database on a socket."""

import json
import socketserver
import threading
from collections import Counter
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

import pg8000.dbapi

from tests.rigs.patience import let_pass

CHARGE_S, STORE_S = 0.03, 0.01
"""How long an answer takes, so that several requests wait at the same time."""


class _Backend:
    """A server with a thread for each request."""

    def __init__(self, server: socketserver.TCPServer) -> None:
        self._server = server
        self._thread = threading.Thread(target=server.serve_forever)
        self._lock = threading.Lock()
        self._at_once = 0
        self.most_at_once = 0

    def begin(self) -> None:
        with self._lock:
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)

    def end(self) -> None:
        with self._lock:
            self._at_once -= 1

    @property
    def address(self) -> str:
        host, port = self._server.server_address[:2]
        return f"{host!s}:{port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class Payments(_Backend):
    """Charges orders. Every n-th order is refused: twice, or always."""

    def __init__(self, *, fails_twice: int, fails_always: int) -> None:
        backend = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                backend.begin()
                try:
                    let_pass(CHARGE_S)
                    status, text = backend.charge(int(json.loads(body)["id"]))
                finally:
                    backend.end()
                self.send_response(status)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *args: Any) -> None:
                pass

        super().__init__(_Server(("127.0.0.1", 0), Handler))
        self._fails_twice, self._fails_always = fails_twice, fails_always
        self.charged: list[int] = []
        self.attempts: Counter[int] = Counter()

    @property
    def url(self) -> str:
        return f"http://{self.address}/charge"

    def charge(self, number: int) -> tuple[int, bytes]:
        self.attempts[number] += 1
        if number and number % self._fails_always == 0:
            return 402, b"no money"
        if number and number % self._fails_twice == 0 and self.attempts[number] <= 2:
            return 503, b"try again"
        self.charged.append(number)
        return 200, b"payment-%d" % number


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Programs are killed while they wait."""


class _TcpServer(socketserver.ThreadingTCPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Programs are killed while they wait."""


class Database(_Backend):
    """Stores readings, one for each connection."""

    def __init__(self) -> None:
        backend = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                line = self.rfile.readline()
                if not line.endswith(b"\n"):
                    return
                backend.begin()
                try:
                    let_pass(STORE_S)
                    backend.stored.append(int(json.loads(line)["number"]))
                finally:
                    backend.end()
                self.wfile.write(b"ok\n")

        super().__init__(_TcpServer(("127.0.0.1", 0), Handler))
        self.stored: list[int] = []


def row_counter(url: str) -> Callable[[], int]:
    """Counts the rows of the table `sales` of a PostgreSQL."""
    parts = urlsplit(url)

    def rows() -> int:
        connection = pg8000.dbapi.connect(
            parts.username or "", host=parts.hostname or "", port=parts.port or 0
        )
        try:
            cursor = connection.cursor()
            cursor.execute("SELECT count(*) FROM sales")
            return int(cursor.fetchall()[0][0])
        except pg8000.dbapi.Error:
            return 0  # the table is not there yet
        finally:
            connection.close()

    return rows
