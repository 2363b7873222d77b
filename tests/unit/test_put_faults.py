"""What a faulty store does with PUTs: how often it delivers each, and what it answers."""

import http.client
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

import pytest

from tests.rigs.patience import eventually
from tests.servers.put_faults import PutFate, PutFaults


class Store(ThreadingHTTPServer):
    """Notes the bodies of its PUTs. Answers 200 to the first of a path and 412 to others."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.puts: list[tuple[str, bytes]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Store

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        known = any(path == self.path for path, _ in self.server.puts)
        self.server.puts.append((self.path, body))
        self._answer(412 if known else 200)

    def do_GET(self) -> None:
        self._answer(200)

    def _answer(self, code: int) -> None:
        self.send_response(code)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server's name
        pass


@pytest.fixture
def store() -> Iterator[Store]:
    with Store() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def put(proxy: PutFaults, path: str, *, method: str = "PUT") -> int:
    place = urlsplit(proxy.endpoint_url)
    assert place.hostname is not None
    connection = http.client.HTTPConnection(place.hostname, place.port)
    try:
        connection.request(method, path, body=b"segment" if method == "PUT" else None)
        return connection.getresponse().status
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("fate", "status", "delivered"),
    [
        (PutFate.PASSED, 200, 1),
        (PutFate.LOST, 503, 0),
        (PutFate.DELIVERED, 503, 1),
        (PutFate.TWICE, 412, 2),
    ],
)
def test_fates(store: Store, fate: PutFate, status: int, delivered: int) -> None:
    with PutFaults(store.url) as proxy:
        proxy.fate = lambda path: fate
        assert put(proxy, "/log/1") == status
        assert put(proxy, "/log/1", method="GET") == 200
    assert store.puts == [("/log/1", b"segment")] * delivered
    assert proxy.fates[fate] == 1


def test_a_late_put_comes_after_its_successor(store: Store) -> None:
    with PutFaults(store.url) as proxy:
        proxy.fate = lambda path: PutFate.LATE
        proxy.late_s = 0.2
        assert put(proxy, "/log/1") == 503
        proxy.fate = lambda path: PutFate.PASSED
        assert put(proxy, "/log/2") == 200
        eventually(lambda: len(store.puts) == 2, lambda: store.puts)
    assert {path for path, _ in store.puts} == {"/log/1", "/log/2"}


def test_a_sender_may_go_on_with_its_connection(store: Store) -> None:
    fates = iter([PutFate.LOST, PutFate.PASSED])
    with PutFaults(store.url) as proxy:
        proxy.fate = lambda path: next(fates)
        place = urlsplit(proxy.endpoint_url)
        assert place.hostname is not None
        connection = http.client.HTTPConnection(place.hostname, place.port)
        statuses = []
        for _ in range(2):
            connection.request("PUT", "/log/1", body=b"segment")
            answer = connection.getresponse()
            answer.read()
            statuses.append(answer.status)
        connection.close()
    assert statuses == [503, 200]
