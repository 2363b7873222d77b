"""Connections that slow clients cannot hold: HTTP with limits for the time to receive and to send.

Invariant: a connection ends if a request takes longer than `receive_s` to arrive, or if the client
reads nothing of a response that waits for longer than `send_s`. uvicorn has no such limits. It
closes a connection only after the client has read what is already written.
"""

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

ARRIVING = (h11.IDLE, h11.SEND_BODY)
"""States of a client whose request has not arrived as a whole."""


class LimitedConnection(H11Protocol):
    """Subclasses set the limits, in seconds: uvicorn makes the connections."""

    receive_s: float
    send_s: float
    _receiving: asyncio.TimerHandle | None = None
    _sending: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        super().connection_made(transport)
        self._watch_receiving()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._forget_receiving()
        self._forget_sending()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state in ARRIVING:
            self._watch_receiving()
        else:
            self._forget_receiving()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._sending = self.loop.call_later(self.send_s, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._forget_sending()

    def _watch_receiving(self) -> None:
        if self._receiving is None and not self.transport.is_closing():
            self._receiving = self.loop.call_later(self.receive_s, self.transport.abort)

    def _forget_receiving(self) -> None:
        if self._receiving is not None:
            self._receiving.cancel()
            self._receiving = None

    def _forget_sending(self) -> None:
        if self._sending is not None:
            self._sending.cancel()
            self._sending = None


def limited_connection(*, receive_ms_max: int, send_ms_max: int) -> type[LimitedConnection]:
    """The connections of one server."""
    limits = {"receive_s": receive_ms_max / 1000, "send_s": send_ms_max / 1000}
    return type("LimitedConnection", (LimitedConnection,), limits)
