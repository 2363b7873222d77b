"""Requests for the console, forwarded from the HTTP port to the console's own process.

Invariants: only bytes pass through the broker, a piece at a time, and only as fast as the client
reads. At most `requests_in_flight` requests are answered at a time; further ones get 503 at once.
The login is checked before the console sees a request, and the console never sees a password. A
client that goes away during the check keeps its place, so it cannot begin more checks. Only
GET and HEAD without a body are forwarded. If the console does not answer, the client gets 502, 503
or 504; if it breaks off within a response, the connection of the client ends.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Protocol, TypeAlias

import h11
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from bucketlog.stateless_broker.process.console_login import HttpRefusal

METHODS = ("GET", "HEAD")
RETRY_AFTER_S = 2
PIECE_BYTES = 65_536
NOT_FOUND = HttpRefusal(404, "There is no such page.")
READ_ONLY = HttpRefusal(
    405, "The console of a broker changes nothing: only GET and HEAD are allowed."
)
NO_HOST = HttpRefusal(400, "The request has no header Host.")
NO_BODY = HttpRefusal(413, "A request for the console has no body.")
BUSY = HttpRefusal(503, "Too many requests for the console are being answered. Try again soon.")
STARTING = HttpRefusal(503, "The console is starting. Try again soon.")
UNREADABLE = HttpRefusal(
    502, "The response of the console cannot be read, or its header is too long."
)
TOO_LATE = HttpRefusal(504, "The console did not answer in time.")
HOP_BY_HOP = frozenset(
    {
        *(b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization"),
        *(b"proxy-connection", b"te", b"trailer", b"transfer-encoding", b"upgrade"),
    }
)
"""Headers of one connection. Source: RFC 9110, section 7.6.1, and RFC 2616, section 13.5.1."""
NOT_FORWARDED = HOP_BY_HOP | {b"authorization", b"content-length", b"expect"}
NOT_RETURNED = HOP_BY_HOP | {b"date", b"server"}
"""The broker's own HTTP server adds a date."""
REFUSAL_HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
}
_Headers: TypeAlias = list[tuple[bytes, bytes]]


class ConsoleBackend(Protocol):
    @property
    def is_ready(self) -> bool: ...

    @property
    def socket_path(self) -> str: ...


Check: TypeAlias = Callable[[str | None, str, str], Awaitable[HttpRefusal | None]]
"""Why a client may not see the console, by the value of its header `authorization`, its host and
its address; None: it may."""


@dataclass(frozen=True, slots=True)
class ForwardingLimits:
    """`response_ms` is the time from the login to the end of the response.
    `header_bytes` bounds the header of the request, and that of the response."""

    requests_in_flight: int
    header_bytes: int
    response_ms: int
    response_bytes: int


class _BrokenOffError(Exception):
    """The response ends here, incomplete."""


class ConsoleForwarder:
    """An ASGI application. `root` is its path on the HTTP port, without a slash at the end."""

    def __init__(
        self, backend: ConsoleBackend, check: Check, limits: ForwardingLimits, *, root: str
    ) -> None:
        self._backend = backend
        self._check = check
        self._limits = limits
        self._root = root.encode()
        self._in_flight = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._in_flight >= self._limits.requests_in_flight:
            await _refuse(BUSY, scope, receive, send)
            return
        self._in_flight += 1
        try:
            # A client that goes away does not end this: a check takes its time in a thread anyway.
            refusal = await self._refusal(scope)
            if refusal is None:
                await self._answer_while_connected(scope, receive, send)
            else:
                await _refuse(refusal, scope, receive, send)
        finally:
            self._in_flight -= 1

    async def _answer_while_connected(self, scope: Scope, receive: Receive, send: Send) -> None:
        work = asyncio.create_task(self._answer(scope, receive, send))
        gone = asyncio.create_task(_client_is_gone(receive))
        try:
            await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (work, gone):
                task.cancel()
            await asyncio.wait({work, gone})
        if not work.cancelled():
            work.result()

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = _Answer(send)
        try:
            async with asyncio.timeout(self._limits.response_ms / 1000):
                refusal = await self._forward(scope, answer)
        except TimeoutError:
            refusal = TOO_LATE
        except _BrokenOffError:
            return
        if refusal is not None and not answer.has_begun:
            await _refuse(refusal, scope, receive, send)

    async def _refusal(self, scope: Scope) -> HttpRefusal | None:
        """Return why the request is not forwarded; None: it is."""
        headers: _Headers = scope["headers"]
        refusal = self._form_problem(scope, headers)
        if refusal is not None:
            return refusal
        host, port = scope["client"] or ("", 0)
        logins = [value for name, value in headers if name == b"authorization"]
        login = logins[0].decode("latin-1") if logins else None
        return await self._check(login, host, str((host, port)))

    def _form_problem(self, scope: Scope, headers: _Headers) -> HttpRefusal | None:
        if scope["method"] not in METHODS:
            return READ_ONLY
        if not _target(scope, self._root):
            return NOT_FOUND
        if sum(len(name) + len(value) + 4 for name, value in headers) > self._limits.header_bytes:
            return HttpRefusal(431, "The header of the request is too long.")
        if not any(name == b"host" for name, _ in headers):
            return NO_HOST
        if any(
            name == b"transfer-encoding" or (name == b"content-length" and value.strip(b"0"))
            for name, value in headers
        ):
            return NO_BODY
        return None

    async def _forward(self, scope: Scope, answer: "_Answer") -> HttpRefusal | None:
        """Forward the request and the response. Returns what to answer instead. Raises
        `_BrokenOffError`."""
        if not self._backend.is_ready:
            return STARTING
        try:
            reader, writer = await asyncio.open_unix_connection(self._backend.socket_path)
        except OSError:
            return STARTING
        console = h11.Connection(h11.CLIENT, max_incomplete_event_size=self._limits.header_bytes)
        try:
            request = h11.Request(
                method=scope["method"],
                target=_target(scope, self._root),
                headers=[*_end_to_end(scope["headers"], NOT_FORWARDED), (b"connection", b"close")],
            )
            writer.write((console.send(request) or b"") + (console.send(h11.EndOfMessage()) or b""))
            await writer.drain()
            await self._pass_on(console, reader, answer)
        except (OSError, h11.ProtocolError):
            if answer.has_begun:
                raise _BrokenOffError from None
            return UNREADABLE
        finally:
            writer.transport.abort()
        return None

    async def _pass_on(
        self, console: h11.Connection, reader: asyncio.StreamReader, answer: "_Answer"
    ) -> None:
        """Pass the response on. Raises `_BrokenOffError`, and the errors of h11 and of sockets."""
        left = self._limits.response_bytes
        while True:
            event = console.next_event()
            if event is h11.NEED_DATA:
                console.receive_data(await reader.read(PIECE_BYTES))
            elif isinstance(event, h11.Response):
                await answer.begin(event.status_code, _end_to_end(event.headers, NOT_RETURNED))
            elif isinstance(event, h11.Data):
                left -= len(event.data)
                if left < 0:
                    raise _BrokenOffError
                await answer.piece(bytes(event.data))
            elif isinstance(event, h11.EndOfMessage):
                await answer.end()
                return


class _Answer:
    """The response to a client."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.has_begun = False

    async def begin(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> None:
        self.has_begun = True
        await self._send(
            {"type": "http.response.start", "status": status, "headers": list(headers)}
        )

    async def piece(self, data: bytes) -> None:
        await self._send({"type": "http.response.body", "body": data, "more_body": True})

    async def end(self) -> None:
        await self._send({"type": "http.response.body", "body": b""})


def _target(scope: Scope, root: bytes) -> bytes:
    """The path and the query below `root`; empty if the path is not below it as it was sent."""
    path: bytes = scope["raw_path"]
    query: bytes = scope["query_string"]
    if not path.startswith(root + b"/"):
        return b""
    return path.removeprefix(root) + (b"?" + query if query else b"")


def _end_to_end(
    headers: Iterable[tuple[bytes, bytes]], without: frozenset[bytes]
) -> Iterator[tuple[bytes, bytes]]:
    """The headers that are not of one connection only; `connection` names further ones."""
    given = [(name.lower(), value) for name, value in headers]
    named = {
        each.strip().lower()
        for name, value in given
        if name == b"connection"
        for each in value.split(b",")
    }
    return ((name, value) for name, value in given if name not in without and name not in named)


async def _client_is_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _refuse(refusal: HttpRefusal, scope: Scope, receive: Receive, send: Send) -> None:
    headers = dict(REFUSAL_HEADERS)
    if refusal.asks_password:
        headers["www-authenticate"] = 'Basic realm="bucketlog", charset="UTF-8"'
    if refusal.status == HTTPStatus.SERVICE_UNAVAILABLE:
        headers["retry-after"] = str(RETRY_AFTER_S)
    if refusal.status == HTTPStatus.METHOD_NOT_ALLOWED:
        headers["allow"] = ", ".join(METHODS)
    response = PlainTextResponse(f"{refusal.text}\n", refusal.status, headers)
    await response(scope, receive, send)
