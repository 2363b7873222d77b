"""Slow clients of the console lose their connections."""

import asyncio
from typing import Any

import pytest
from starlette.types import Receive, Scope, Send
from uvicorn import Config
from uvicorn.server import ServerState

from bucketlog.console.limited_connection import LimitedConnection, limited_connection
from tests.rigs.patience import PATIENCE_S

HEAD = b"POST /change HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n"
LONG_MS = 1000 * 3600


class WatchedTransport(asyncio.Transport):
    """Stands for a socket. `aborted` is set when the connection is cut."""

    def __init__(self) -> None:
        super().__init__()
        self.aborted = asyncio.Event()

    def abort(self) -> None:
        self.aborted.set()

    def is_closing(self) -> bool:
        return self.aborted.is_set()

    def write(self, data: Any) -> None:
        pass

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass

    def close(self) -> None:
        """As of a socket whose client reads nothing: it stays open."""


async def waiting_app(scope: Scope, receive: Receive, send: Send) -> None:
    await asyncio.Event().wait()


def connection(
    *, receive_ms_max: int = LONG_MS, send_ms_max: int = LONG_MS
) -> tuple[LimitedConnection, WatchedTransport]:
    kind = limited_connection(receive_ms_max=receive_ms_max, send_ms_max=send_ms_max)
    config = Config(waiting_app, http=kind, ws="none", lifespan="off", log_config=None)
    config.load()
    found, transport = kind(config, ServerState(), {}), WatchedTransport()
    found.connection_made(transport)
    return found, transport


def timers(found: LimitedConnection) -> int:
    return sum(each is not None for each in (found._receiving, found._sending))


@pytest.mark.parametrize("sent", [b"", HEAD[:20], HEAD, HEAD + b"do=creat"])
async def test_a_request_that_does_not_arrive_loses_its_connection(sent: bytes) -> None:
    found, transport = connection(receive_ms_max=10)
    for at in range(len(sent)):
        found.data_received(sent[at : at + 1])
    await asyncio.wait_for(transport.aborted.wait(), PATIENCE_S)
    found.connection_lost(None)


async def test_a_request_that_has_arrived_is_no_longer_timed() -> None:
    found, transport = connection(receive_ms_max=LONG_MS)
    found.data_received(HEAD)
    assert timers(found) == 1
    found.data_received(b"do=create")
    assert timers(found) == 0
    found.connection_lost(None)
    assert not transport.aborted.is_set()


async def test_a_response_that_nobody_reads_loses_its_connection() -> None:
    found, transport = connection(send_ms_max=10)
    found.data_received(HEAD + b"do=create")
    found.pause_writing()
    transport.close()
    await asyncio.wait_for(transport.aborted.wait(), PATIENCE_S)
    found.connection_lost(None)


async def test_a_response_that_is_read_keeps_its_connection() -> None:
    found, transport = connection(send_ms_max=LONG_MS)
    found.pause_writing()
    assert timers(found) == 2
    found.resume_writing()
    assert timers(found) == 1, "the request has not arrived"
    found.connection_lost(None)
    assert not transport.aborted.is_set()
