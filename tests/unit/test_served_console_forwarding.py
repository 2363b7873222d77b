"""Requests for the console of a broker: what is forwarded, what is refused, and what ends."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount, Route

from bucketlog.stateless_broker.process.console_forwarding import (
    ConsoleForwarder,
    ForwardingLimits,
)
from bucketlog.stateless_broker.process.console_login import LOGIN_NEEDED, HttpRefusal
from bucketlog.stateless_broker.process.http_connections import HttpLimits
from bucketlog.stateless_broker.process.http_endpoint import HttpEndpoint
from tests.rigs.patience import PATIENCE_S, eventually_async

LONG_MS = 3_600_000
SHORT_MS = 50
HEADER_BYTES = 4_096
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nhere"
ENDLESS = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
CHUNK = b"10000\r\n" + bytes(65_536) + b"\r\n"


def get(path: str = "/console/topics?a=%20b", *headers: str, method: str = "GET") -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: logs.example", *headers]
    return "".join(f"{line}\r\n" for line in (*lines, "")).encode()


class Console:
    """A stand-in for the process of the console, behind the HTTP port of a broker. `answer` are the
    bytes of its responses; `repeated` follow them without an end."""

    def __init__(self, folder: Path) -> None:
        self.socket_path = str(folder / "socket")
        self.is_ready = True
        self.refusal: HttpRefusal | None = None
        self.answer = OK
        self.repeated = b""
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.may_enter = asyncio.Event()
        self.may_enter.set()
        self.requests: list[bytes] = []
        self.checked: list[tuple[str | None, str]] = []
        self.open = 0
        self.written = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open += 1
        try:
            self.requests.append(await reader.readuntil(b"\r\n\r\n"))
            await self.may_answer.wait()
            writer.write(self.answer)
            while self.repeated:
                writer.write(self.repeated)
                self.written += len(self.repeated)
                await writer.drain()
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            self.open -= 1
            writer.close()

    async def check(self, login: str | None, host: str, peer: str) -> HttpRefusal | None:
        self.checked.append((login, host))
        assert peer.startswith("('127.0.0.1', ")
        await self.may_enter.wait()
        return self.refusal


class Port:
    def __init__(self, console: Console, limits: ForwardingLimits) -> None:
        self.console = console
        self.closed: Counter[str] = Counter()
        forwarder = ConsoleForwarder(console, console.check, limits, root="/console")
        routes = [Route("/readyz", _ready), Mount("/console", app=forwarder)]
        self.endpoint = HttpEndpoint(
            Starlette(routes=routes),
            host="127.0.0.1",
            port=0,
            limits=HttpLimits(50, LONG_MS, LONG_MS, HEADER_BYTES, "/console/", LONG_MS),
            closed=lambda setting: self.closed.update([setting]),
        )
        self.clients: list[Client] = []

    async def send(self, request: bytes) -> "Client":
        client = Client(*await asyncio.open_connection("127.0.0.1", self.endpoint.port))
        self.clients.append(client)
        client.writer.write(request)
        return client

    async def answered(self, request: bytes) -> tuple[int, bytes, bytes]:
        return await (await self.send(request)).answer()


async def _ready(_: Request) -> Response:
    return PlainTextResponse("ready")


class Client:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self.writer = reader, writer

    async def answer(self) -> tuple[int, bytes, bytes]:
        """Status, header and body of a response with a length."""
        async with asyncio.timeout(PATIENCE_S):
            head = await self._reader.readuntil(b"\r\n\r\n")
            length = next(
                int(line.split(b":")[1])
                for line in head.lower().split(b"\r\n")
                if line.startswith(b"content-length:")
            )
            body = await self._reader.readexactly(length)
        return int(head.split()[1]), head.lower(), body

    async def rest(self) -> bytes:
        """What comes until the broker closes the connection."""
        async with asyncio.timeout(PATIENCE_S):
            return await self._reader.read()

    async def close(self) -> None:
        self.writer.close()
        with suppress(ConnectionError):
            await self.writer.wait_closed()


@asynccontextmanager
async def port(
    folder: Path,
    *,
    requests_in_flight: int = 4,
    response_ms: int = LONG_MS,
    response_bytes: int = 10_000_000,
) -> AsyncIterator[Port]:
    console = Console(folder)
    server = await asyncio.start_unix_server(console.serve, console.socket_path)
    served = Port(
        console, ForwardingLimits(requests_in_flight, HEADER_BYTES, response_ms, response_bytes)
    )
    served.endpoint.start()
    try:
        yield served
    finally:
        console.may_answer.set()
        for client in served.clients:
            await client.close()
        await served.endpoint.stop()
        await eventually_async(lambda: console.open == 0)
        server.close()
        await server.wait_closed()


async def test_a_request_is_forwarded_below_the_root(tmp_path: Path) -> None:
    async with port(tmp_path) as served:
        status, _, body = await served.answered(get())
        assert (status, body) == (200, b"here")
        line, *headers = served.console.requests[0].lower().split(b"\r\n")
        assert line == b"get /topics?a=%20b http/1.1"
        assert b"host: logs.example" in headers


async def test_headers_of_a_connection_and_passwords_stay_here(tmp_path: Path) -> None:
    async with port(tmp_path) as served:
        served.console.answer = OK.replace(
            b"\r\n\r\n",
            b"\r\nKeep-Alive: 5\r\nConnection: X-Hop\r\nX-Hop: 1\r\nDate: never\r\n"
            b"Proxy-Authenticate: x\r\nX-Kept: yes\r\n\r\n",
        )
        sent = ("Authorization: Basic YTpi", "Connection: keep-alive, X-Own", "X-Own: 1")
        more = ("TE: trailers", "Upgrade: h2c", "Proxy-Authorization: b", "Keep-Alive: 5")
        status, head, _ = await served.answered(get("/console/", *sent, *more, "Cookie: a=b"))
        assert status == 200
        assert served.console.checked == [("Basic YTpi", "127.0.0.1")]
        forwarded = served.console.requests[0].lower()
        names = sorted(line.split(b":")[0] for line in forwarded.strip().split(b"\r\n")[1:])
        assert names == [b"connection", b"cookie", b"host"]
        assert b"connection: close" in forwarded
        for name in (b"keep-alive", b"x-hop", b"never", b"proxy-"):
            assert name not in head
        assert b"x-kept: yes" in head


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (get(method="POST"), 405),
        (get(method="DELETE"), 405),
        (get("/console/", "Content-Length: 5") + b"12345", 413),
        (get("/console/", "Transfer-Encoding: chunked") + b"0\r\n\r\n", 413),
        (get("/console/", "X: " + "x" * HEADER_BYTES), 431),
        (b"GET /console/ HTTP/1.0\r\n\r\n", 400),
        (get("/console%2Ftopics"), 404),
    ],
)
async def test_what_is_refused(tmp_path: Path, request_bytes: bytes, status: int) -> None:
    async with port(tmp_path) as served:
        assert (await served.answered(request_bytes))[0] == status
        assert served.console.requests == []
        assert served.console.checked == []


async def test_a_refused_client_reaches_no_page(tmp_path: Path) -> None:
    async with port(tmp_path) as served:
        served.console.refusal = LOGIN_NEEDED
        status, head, _ = await served.answered(get())
        assert status == 401
        assert b'www-authenticate: basic realm="bucketlog"' in head
        assert b"cache-control: no-store" in head
        assert served.console.requests == []


@pytest.mark.parametrize("is_ready", [True, False])
async def test_without_the_process_the_client_may_try_again(tmp_path: Path, is_ready: bool) -> None:
    async with port(tmp_path) as served:
        served.console.is_ready = is_ready
        if is_ready:
            served.console.socket_path += ".absent"
        status, head, body = await served.answered(get())
        assert (status, body) == (503, b"The console is starting. Try again soon.\n")
        assert b"retry-after: 2" in head


async def test_a_console_that_hangs_costs_its_requests_only(tmp_path: Path) -> None:
    async with port(tmp_path, requests_in_flight=2) as served:
        served.console.may_answer.clear()
        hanging = [await served.send(get()) for _ in range(2)]
        await eventually_async(lambda: len(served.console.requests) == 2)
        status, head, body = await served.answered(get())
        assert (status, b"Too many" in body, b"retry-after: 2" in head) == (503, True, True)
        assert (await served.answered(get("/readyz")))[::2] == (200, b"ready")
        served.console.may_answer.set()
        for client in hanging:
            assert (await client.answer())[0] == 200
        assert (await served.answered(get()))[0] == 200


async def test_a_response_must_begin_in_time(tmp_path: Path) -> None:
    async with port(tmp_path, response_ms=SHORT_MS) as served:
        served.console.may_answer.clear()
        status, _, body = await served.answered(get())
        assert (status, body) == (504, b"The console did not answer in time.\n")


async def test_a_response_must_end_in_time(tmp_path: Path) -> None:
    async with port(tmp_path, response_ms=500, response_bytes=10**12) as served:
        served.console.answer, served.console.repeated = ENDLESS, CHUNK
        received = await (await served.send(get())).rest()
        assert received.startswith(b"HTTP/1.1 200 OK")
        assert not received.endswith(b"0\r\n\r\n")


async def test_a_response_may_not_be_endless(tmp_path: Path) -> None:
    async with port(tmp_path, response_bytes=1_000_000) as served:
        served.console.answer, served.console.repeated = ENDLESS, CHUNK
        received = await (await served.send(get())).rest()
        assert len(received) <= 1_000_000 + HEADER_BYTES
        assert not received.endswith(b"0\r\n\r\n")


async def test_a_client_that_reads_nothing_stops_the_console(tmp_path: Path) -> None:
    async with port(tmp_path, requests_in_flight=1, response_bytes=10**12) as served:
        served.console.answer, served.console.repeated = ENDLESS, CHUNK
        client = await served.send(get())
        seen = -1

        def is_stopped() -> bool:
            nonlocal seen
            before, seen = seen, served.console.written
            return before == seen > 0

        await eventually_async(is_stopped)
        assert seen < 50_000_000
        await client.close()
        await eventually_async(lambda: served.console.open == 0)
        served.console.answer, served.console.repeated = OK, b""
        assert (await served.answered(get()))[0] == 200


async def test_a_client_that_goes_away_during_its_check_keeps_its_place(tmp_path: Path) -> None:
    async with port(tmp_path, requests_in_flight=1) as served:
        served.console.may_enter.clear()
        client = await served.send(get())
        await eventually_async(lambda: len(served.console.checked) == 1)
        await client.close()
        for _ in range(3):
            assert (await served.answered(get()))[0] == 503
        served.console.may_enter.set()
        while (await served.answered(get()))[0] == 503:
            pass
        assert len(served.console.checked) == 2


async def test_a_client_that_goes_away_frees_its_place(tmp_path: Path) -> None:
    async with port(tmp_path, requests_in_flight=1) as served:
        served.console.may_answer.clear()
        client = await served.send(get())
        await eventually_async(lambda: len(served.console.requests) == 1)
        await client.close()
        served.console.may_answer.set()
        await eventually_async(lambda: served.console.open == 0)
        assert (await served.answered(get()))[0] == 200


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"no HTTP at all\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: many\r\n\r\n",
    ],
)
async def test_a_response_that_cannot_be_read(tmp_path: Path, answer: bytes) -> None:
    async with port(tmp_path) as served:
        served.console.answer = answer
        assert (await served.answered(get()))[0] == 502
        served.console.answer = OK
        assert (await served.answered(get()))[0] == 200


async def test_the_header_of_a_response_may_not_be_endless(tmp_path: Path) -> None:
    async with port(tmp_path) as served:
        served.console.answer, served.console.repeated = b"HTTP/1.1 200 OK\r\nX: ", b"x" * 1_000
        assert (await served.answered(get()))[0] == 502
        await eventually_async(lambda: served.console.open == 0)
        assert served.console.written < 900_000


async def test_a_response_that_breaks_off_ends_the_connection(tmp_path: Path) -> None:
    async with port(tmp_path) as served:
        served.console.answer = OK.replace(b"length: 4", b"length: 9")
        received = await (await served.send(get())).rest()
        assert received.endswith(b"\r\n\r\nhere")


async def test_head_has_no_body(tmp_path: Path) -> None:
    async with port(tmp_path) as served:
        served.console.answer = OK.removesuffix(b"here")
        client = await served.send(get("/console/", "Connection: close", method="HEAD"))
        received = await client.rest()
        assert received.startswith(b"HTTP/1.1 200 OK")
        assert received.endswith(b"\r\n\r\n")
        assert served.console.requests[0].startswith(b"HEAD / ")
