"""One-way and half-open connections, as the ways of tests make them."""

import socket
import threading
from collections.abc import Iterator

import pytest

from tests.rigs.patience import eventually
from tests.servers.way import ANY_PORT, State, Way

QUIET_S = 0.2


class Echo(threading.Thread):
    """A server that answers with what it got, and notes it."""

    def __init__(self) -> None:
        super().__init__(name="echo", daemon=True)
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.got: list[bytes] = []

    @property
    def address(self) -> tuple[str, int]:
        name = self.listening.getsockname()
        return name[0], name[1]

    def run(self) -> None:
        while True:
            try:
                connection, _ = self.listening.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            while data := connection.recv(100):
                self.got.append(data)
                connection.sendall(data)


@pytest.fixture
def echo() -> Iterator[Echo]:
    server = Echo()
    server.start()
    yield server
    server.listening.shutdown(socket.SHUT_RDWR)
    server.listening.close()
    server.join()


def connect(way: Way) -> socket.socket:
    return socket.create_connection(("127.0.0.1", way.port))


def is_silent(connection: socket.socket) -> bool:
    connection.settimeout(QUIET_S)
    try:
        connection.recv(1)
    except TimeoutError:
        return True
    finally:
        connection.settimeout(None)
    return False


def test_a_mute_way_loses_requests_and_keeps_the_connection(echo: Echo) -> None:
    with Way(echo.address, ANY_PORT) as way, connect(way) as connection:
        connection.sendall(b"one")
        assert connection.recv(100) == b"one"
        way.be(State.MUTE)
        connection.sendall(b"two")
        assert is_silent(connection)
        assert echo.got == [b"one"]


def test_a_deaf_way_loses_answers(echo: Echo) -> None:
    with Way(echo.address, ANY_PORT) as way, connect(way) as connection:
        connection.sendall(b"one")
        assert connection.recv(100) == b"one"
        way.be(State.DEAF)
        connection.sendall(b"two")
        eventually(lambda: echo.got == [b"one", b"two"])
        assert is_silent(connection)


def test_only_connections_that_there_are_become_half_open(echo: Echo) -> None:
    with Way(echo.address, ANY_PORT) as way, connect(way) as old:
        old.sendall(b"one")
        assert old.recv(100) == b"one"
        way.half_open()
        old.sendall(b"two")
        assert is_silent(old)
        with connect(way) as new:
            new.sendall(b"three")
            assert new.recv(100) == b"three"
        assert echo.got == [b"one", b"three"]
        way.break_connections()
        assert old.recv(100) == b""
