"""One client's connection: frames in, answers out, in request order.

Invariants: a frame's length is checked before anything is allocated; a large frame is received
into its own memory, by the kernel, and never copied again; answers leave in the order of their
requests, whatever finishes first; a client that does not read its answers is not read from.
"""

import asyncio
import logging
import struct
from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol, cast

from bucketlog.model import Buffer
from bucketlog.wire.frames import MalformedRequestError
from stateless_broker.memory_budget import MemoryBudget

logger = logging.getLogger(__name__)

_LENGTH = struct.Struct(">i")
RECEIVE_BYTES = 64 * 1024
REQUEST_BYTES_MIN = 8


class Frame:
    """A request as received, without its length. Whoever is done with `data` calls `release`."""

    __slots__ = ("_budget", "data", "size_bytes")

    def __init__(self, data: bytearray, budget: MemoryBudget) -> None:
        self.data = data
        self.size_bytes = len(data)
        self._budget = budget

    def release(self) -> None:
        """Give the bytes back to the budget; safe to call twice."""
        self._budget.release(self.size_bytes)
        self.size_bytes = 0


class Answer:
    """A place in the order of a connection's answers."""

    __slots__ = ("_connection", "parts")

    def __init__(self, connection: "Connection") -> None:
        self._connection = connection
        self.parts: Sequence[Buffer] | None = None

    def send(self, parts: Sequence[Buffer]) -> None:
        """The whole response, without its length; empty where there is none to send (acks=0)."""
        self.parts = parts
        self._connection.flush_answers()

    def close(self, reason: str) -> None:
        """No answer: the connection ends, as Kafka's does on a request it cannot take."""
        self._connection.end(reason)


class RequestHandler(Protocol):
    def __call__(self, connection: "Connection", frame: Frame, answer: Answer) -> None:
        """Take a request. Raises `MalformedRequestError`."""


class Connection(asyncio.BufferedProtocol):
    def __init__(
        self,
        *,
        handler: RequestHandler,
        budget: MemoryBudget,
        request_bytes_max: int,
        requests_in_flight: int,
        response_buffer_bytes: int,
        on_open: Callable[["Connection"], bool],
        on_close: Callable[["Connection"], None],
    ) -> None:
        self._handler = handler
        self._budget = budget
        self._request_bytes_max = request_bytes_max
        self._requests_in_flight = requests_in_flight
        self._response_buffer_bytes = response_buffer_bytes
        self._on_open = on_open
        self._on_close = on_close
        self._transport: asyncio.Transport | None = None
        self._received = memoryview(bytearray(RECEIVE_BYTES))
        self._start = 0
        self._end = 0
        self._frame: Frame | None = None
        self._filled = 0
        self._answers: deque[Answer] = deque()
        self._blocked = False
        self._reading = True
        self._client_reads = True
        self._closing = False
        self._ended = False
        self.peer = ""

    # asyncio's side --------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=self._response_buffer_bytes)
        self.peer = str(transport.get_extra_info("peername"))
        if not self._on_open(self):
            self.end("too many connections")

    def connection_lost(self, exc: Exception | None) -> None:
        self._budget.forget(self)
        if self._frame is not None:
            self._frame.release()
            self._frame = None
        self._transport = None
        self._ended = True
        self._answers.clear()
        self._on_close(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        if self._frame is not None:
            return memoryview(self._frame.data)[self._filled :]
        if self._start:
            left = self._end - self._start
            self._received[:left] = self._received[self._start : self._end]
            self._start, self._end = 0, left
        return self._received[self._end :]

    def buffer_updated(self, nbytes: int) -> None:
        if self._frame is None:
            self._end += nbytes
        else:
            self._filled += nbytes
        self._take_frames()

    def eof_received(self) -> bool:
        return False

    def pause_writing(self) -> None:
        self._client_reads = False
        self._read_or_not()

    def resume_writing(self) -> None:
        self._client_reads = True
        self._take_frames()

    # Frames ----------------------------------------------------------------------------------

    def _take_frames(self) -> None:
        try:
            while not self._ended and self._next_frame():
                pass
        except MalformedRequestError as error:
            self.end(str(error))
        self._read_or_not()

    def _read_or_not(self) -> None:
        """Pause the socket while no more requests are wanted: back-pressure reaches the client."""
        if self._transport is None or self._ended:
            return
        wanted = self._frame is not None or (self._wants_more() and not self._blocked)
        if wanted and not self._reading:
            self._transport.resume_reading()
        elif not wanted and self._reading:
            self._transport.pause_reading()
        self._reading = wanted

    def _wants_more(self) -> bool:
        return (
            self._client_reads
            and not self._closing
            and len(self._answers) < self._requests_in_flight
        )

    def _next_frame(self) -> bool:
        """Take one request if it is here as a whole. False: wait for bytes, room or answers."""
        if self._frame is not None:
            if self._filled < len(self._frame.data):
                return False
            frame, self._frame = self._frame, None
            self._handle(frame)
            return True
        available = self._end - self._start
        if available < _LENGTH.size or not self._wants_more():
            self._wait_no_more()
            return False
        (length,) = _LENGTH.unpack_from(self._received, self._start)
        if not REQUEST_BYTES_MIN <= length <= self._request_bytes_max:
            raise MalformedRequestError(
                f"a request of {length} bytes; {REQUEST_BYTES_MIN} to {self._request_bytes_max} "
                "are accepted"
            )
        if available < length + _LENGTH.size <= RECEIVE_BYTES:
            return False
        self._blocked = not self._budget.acquire(length, self, self._take_soon)
        if self._blocked:
            return False
        self._start += _LENGTH.size
        here = min(length, self._end - self._start)
        frame = Frame(bytearray(length), self._budget)
        frame.data[:here] = self._received[self._start : self._start + here]
        self._start += here
        if self._start == self._end:
            self._start = self._end = 0
        if here < length:
            self._frame, self._filled = frame, here
            return False
        self._handle(frame)
        return True

    def _wait_no_more(self) -> None:
        """Others stand behind this connection in the budget's queue: leave it, ask again later."""
        if self._blocked:
            self._blocked = False
            self._budget.forget(self)

    def _take_soon(self) -> None:
        """Not at once: the caller is amid another connection's work, or the commit path's."""
        asyncio.get_running_loop().call_soon(self._take_frames)

    def _handle(self, frame: Frame) -> None:
        answer = Answer(self)
        self._answers.append(answer)
        self._handler(self, frame, answer)

    # Answers ---------------------------------------------------------------------------------

    def flush_answers(self) -> None:
        """Send all answers that are ready and not behind one that is not."""
        if self._transport is None:
            return
        out: list[Buffer] = []
        while self._answers and (parts := self._answers[0].parts) is not None:
            self._answers.popleft()
            if parts:
                out.append(_LENGTH.pack(sum(len(part) for part in parts)))
                out.extend(parts)
        if out and not self._ended:
            self._transport.writelines(out)
        if not self._reading:
            self._take_soon()

    def end(self, reason: str) -> None:
        if self._transport is not None and not self._ended:
            self._ended = True
            self._wait_no_more()
            logger.info("connection of %s is closed: %s", self.peer, reason)
            self._transport.abort()

    def take_no_more(self) -> None:
        """Read no further request; those that were begun are taken and answered."""
        self._closing = True
        self._take_frames()

    def finish(self) -> None:
        """Close once what is written is sent."""
        self._closing = True
        if self._transport is not None:
            self._transport.close()
