"""The connections to the HTTP port, with their limits.

uvicorn limits neither connections nor the time of a request. Invariants: there are at most
`HttpLimits.connections` connections; a timer closes each of them; a client that sends or reads byte
by byte does not extend the time of a request.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """`request_ms` is the time from a request's first byte, or from the start of the connection, to
    the end of the response. `idle_ms` is the time from there to the next request's first byte.
    Paths that begin with `slow_root` have `slow_ms` from the header to the end of the response."""

    connections: int
    request_ms: int
    idle_ms: int
    header_bytes: int
    slow_root: str | None = None
    slow_ms: int = 0


class HttpConnections:
    """`closed` is called with the name of the setting that caused a connection to be closed."""

    def __init__(self, limits: HttpLimits, closed: Callable[[str], None]) -> None:
        self.limits = limits
        self._closed = closed
        self._open: dict[BoundedHttp, None] = {}
        """The least recently active first."""

    @property
    def protocol(self) -> type[asyncio.Protocol]:
        """The factory that uvicorn calls for each new connection."""

        def connection(**parts: Any) -> BoundedHttp:
            return BoundedHttp(self, **parts)

        return cast(type[asyncio.Protocol], connection)

    def opened(self, new: "BoundedHttp") -> None:
        """Note a new connection. At the limit, `new` replaces the connection that has waited
        longest for a request. `new` is closed if requests of all others are being answered."""
        self._open[new] = None
        if len(self._open) > self.limits.connections:
            waiting = (each for each in self._open if not each.is_answering)
            self.close(next(waiting), "http_connections_max")

    def active(self, connection: "BoundedHttp") -> None:
        if connection in self._open:
            del self._open[connection]
            self._open[connection] = None

    def close(self, connection: "BoundedHttp", setting: str) -> None:
        self._open.pop(connection, None)
        self._closed(setting)
        connection.transport.abort()

    def gone(self, connection: "BoundedHttp") -> None:
        self._open.pop(connection, None)


class BoundedHttp(H11Protocol):
    def __init__(self, owner: HttpConnections, **parts: Any) -> None:
        super().__init__(**parts)
        self._owner = owner
        self._is_receiving = False
        """Whether the time limit of a request is running."""
        self._timer: asyncio.TimerHandle | None = None
        self._slow: RequestResponseCycle | None = None
        """The request that has been given `slow_ms`. It gets that time once."""

    @property
    def is_answering(self) -> bool:
        """Whether a request header has arrived and its response is not complete."""
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is not None and not cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's own
        super().connection_made(transport)
        self._begin_request()
        self._owner.opened(self)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._owner.gone(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if not self._is_receiving:
            self._begin_request()
        super().data_received(data)
        self._allow_slow()

    def on_response_complete(self) -> None:
        self._is_receiving = False
        self._close_after(self._owner.limits.idle_ms, "http_idle_ms_max")
        super().on_response_complete()
        if self.is_answering:  # the next request has arrived already
            self._begin_request()
            self._allow_slow()

    def _allow_slow(self) -> None:
        limits, cycle = self._owner.limits, self.cycle
        if limits.slow_root is None or not self.is_answering or cycle is self._slow:
            return
        if cycle.scope["path"].startswith(limits.slow_root):
            self._slow = cycle
            self._close_after(limits.slow_ms, "http_console_response_ms_max")

    def _begin_request(self) -> None:
        self._is_receiving = True
        self._close_after(self._owner.limits.request_ms, "http_request_ms_max")

    def _close_after(self, time_ms: int, setting: str) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._owner.active(self)
        self._timer = self.loop.call_later(time_ms / 1000, self._owner.close, self, setting)
