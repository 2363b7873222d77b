"""The HTTP port under clients that send slowly, read nothing, or open many connections."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from bucketlog.stateless_broker.process.http_connections import HttpLimits
from bucketlog.stateless_broker.process.http_endpoint import HttpEndpoint
from tests.rigs.patience import PATIENCE_S, let_pass_async

LONG_MS = 3_600_000
SHORT_MS = 50
GET = b"GET /x HTTP/1.1\r\nHost: x\r\n\r\n"
SLOW_ROOT = "/slow/"
GET_SLOW = GET.replace(b"/x", b"/slow/x")
POST = b"POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n"


class Port:
    def __init__(self, **limits: int) -> None:
        self.closed: Counter[str] = Counter()
        self.clients: list[Client] = []
        self.asked = asyncio.Event()
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        usual = HttpLimits(10, LONG_MS, LONG_MS, 4_096, SLOW_ROOT, LONG_MS)
        changed: dict[str, Any] = {**limits}
        app = Starlette(
            routes=[
                Route("/x", self._answer, methods=["GET", "POST"]),
                Route(f"{SLOW_ROOT}x", self._answer),
            ]
        )
        self.endpoint = HttpEndpoint(
            app,
            host="127.0.0.1",
            port=0,
            limits=replace(usual, **changed),
            closed=lambda setting: self.closed.update([setting]),
        )

    async def _answer(self, _: Request) -> Response:
        self.asked.set()
        await self.may_answer.wait()
        return PlainTextResponse("here")

    async def connect(self) -> "Client":
        client = Client(*await asyncio.open_connection("127.0.0.1", self.endpoint.port))
        self.clients.append(client)
        return client


class Client:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    def send(self, data: bytes) -> None:
        self._writer.write(data)

    async def answer(self) -> bytes:
        """One response; empty when the connection is closed."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                head = await self._reader.readuntil(b"\r\n\r\n")
                if b"200 OK" in head:
                    assert await self._reader.readexactly(4) == b"here"
                return head
        except (asyncio.IncompleteReadError, ConnectionError):
            return b""

    async def trickle(self, data: bytes) -> None:
        """Send a byte at a time until the connection is closed."""
        closed = asyncio.create_task(self.answer())
        for at in range(len(data)):
            if closed.done():
                break
            self.send(data[at : at + 1])
            await let_pass_async(SHORT_MS / 5_000)
        assert await closed == b""

    async def close(self) -> None:
        self._writer.close()
        with suppress(ConnectionError):
            await self._writer.wait_closed()


@asynccontextmanager
async def port(**limits: int) -> AsyncIterator[Port]:
    served = Port(**limits)
    served.endpoint.start()
    try:
        yield served
    finally:
        served.may_answer.set()
        for client in served.clients:
            await client.close()
        await served.endpoint.stop()


@pytest.mark.parametrize("sent", [b"", b"GET /x HTTP/1.1\r\nHost:", POST[:30]])
async def test_a_request_must_arrive_in_time(sent: bytes) -> None:
    async with port(request_ms=SHORT_MS) as served:
        client = await served.connect()
        client.send(sent)
        assert await client.answer() == b""
        assert served.closed == {"http_request_ms_max": 1}


@pytest.mark.parametrize("begin", [b"GET /x HTTP/1.1\r\nHost: ", GET + GET[:20]])
async def test_a_byte_now_and_then_gains_no_time(begin: bytes) -> None:
    async with port(request_ms=SHORT_MS) as served:
        client = await served.connect()
        client.send(begin)
        if begin.startswith(GET):
            assert b"200 OK" in await client.answer()
        await client.trickle(b"x" * 3_000)
        assert served.closed == {"http_request_ms_max": 1}


async def test_a_body_that_never_ends_is_closed() -> None:
    async with port(request_ms=SHORT_MS, idle_ms=SHORT_MS) as served:
        client = await served.connect()
        client.send(POST)
        assert b"200 OK" in await client.answer()
        await client.trickle(b"x" * 3_000)
        assert served.closed.total() == 1


async def test_a_slow_path_has_its_own_time() -> None:
    async with port(request_ms=SHORT_MS) as served:
        served.may_answer.clear()
        slow, usual = await served.connect(), await served.connect()
        slow.send(GET_SLOW)
        await served.asked.wait()
        usual.send(GET)
        assert await usual.answer() == b""
        assert served.closed == {"http_request_ms_max": 1}
        served.may_answer.set()
        assert b"200 OK" in await slow.answer()


async def test_the_time_of_a_slow_path_ends_whatever_the_client_sends() -> None:
    async with port(slow_ms=SHORT_MS) as served:
        served.may_answer.clear()
        client = await served.connect()
        client.send(GET_SLOW)
        await client.trickle(GET_SLOW * 100)
        assert served.closed == {"http_console_response_ms_max": 1}


async def test_a_slow_path_gives_no_time_to_the_header() -> None:
    async with port(request_ms=SHORT_MS) as served:
        client = await served.connect()
        client.send(GET_SLOW[:-2])
        assert await client.answer() == b""
        assert served.closed == {"http_request_ms_max": 1}


async def test_an_idle_connection_is_closed() -> None:
    async with port(idle_ms=SHORT_MS) as served:
        client = await served.connect()
        client.send(GET)
        assert b"200 OK" in await client.answer()
        assert await client.answer() == b""
        assert served.closed == {"http_idle_ms_max": 1}


async def test_requests_one_after_the_other_and_at_once() -> None:
    async with port() as served:
        client = await served.connect()
        for _ in range(3):
            client.send(GET)
            assert b"200 OK" in await client.answer()
        client.send(3 * GET)
        for _ in range(3):
            assert b"200 OK" in await client.answer()
        await client.close()
        assert not served.closed


async def test_a_header_that_is_too_long_is_refused() -> None:
    async with port() as served:
        client = await served.connect()
        client.send(b"GET /x HTTP/1.1\r\nX: " + b"x" * 5_000)
        assert b" 400 " in await client.answer()


async def test_at_the_limit_the_connection_that_waits_longest_gives_way() -> None:
    async with port(connections=3) as served:
        clients = [await served.connect() for _ in range(3)]
        for client in clients:
            client.send(GET)
            assert b"200 OK" in await client.answer()
        clients[0].send(GET)
        assert b"200 OK" in await clients[0].answer()
        newest = await served.connect()
        newest.send(GET)
        assert b"200 OK" in await newest.answer()
        assert await clients[1].answer() == b""
        for client in (clients[0], clients[2]):
            client.send(GET)
            assert b"200 OK" in await client.answer()
        assert served.closed == {"http_connections_max": 1}


async def test_a_request_that_is_being_answered_does_not_give_way() -> None:
    async with port(connections=1) as served:
        served.may_answer.clear()
        first = await served.connect()
        first.send(GET)
        await served.asked.wait()
        second = await served.connect()
        assert await second.answer() == b""
        served.may_answer.set()
        assert b"200 OK" in await first.answer()


async def test_many_connections() -> None:
    async with port(connections=5) as served:
        for _ in range(50):
            await served.connect()
        last = await served.connect()
        last.send(GET)
        assert b"200 OK" in await last.answer()
        assert served.closed == {"http_connections_max": 46}
