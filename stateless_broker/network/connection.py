"""One client's connection: frames in, answers out, in request order.

Invariants: a frame's length is checked before anything is allocated; a large frame is received
into its own memory, by the kernel, and never copied again; answers leave in the order of their
requests, whatever finishes first; a client that does not read its answers is not read from.
"""

import asyncio
import logging
import struct
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, cast

from bucketlog.log_format.model import Buffer
from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.log_format.wire.frames import MalformedRequestError
from bucketlog.stateless_broker.network.exchange import Frame, ResponseSlot
from bucketlog.stateless_broker.network.memory_budget import MemoryBudget
from bucketlog.stateless_broker.network.request_figures import RequestFigures

logger = logging.getLogger(__name__)

_LENGTH = struct.Struct(">i")
_LENGTH_AND_API_KEY = struct.Struct(">ih")
_API_KEY = struct.Struct(">h")
RECEIVE_BYTES = 64 * 1024
REQUEST_BYTES_MIN = 8


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """`request_bytes_max` bounds Produce requests, `other_request_bytes_max` all others, which
    become many small values. A request of its own memory has `request_receive_ms_max` to arrive:
    who announces much and sends nothing holds memory that others wait for. `requests_in_flight`
    bounds all requests, `other_requests_in_flight` those that are no Produce: of these a client
    needs few, while all it produces between two flushes is in flight at once."""

    request_bytes_max: int
    other_request_bytes_max: int
    request_receive_ms_max: int
    requests_in_flight: int
    other_requests_in_flight: int
    response_buffer_bytes: int


class RequestHandler(Protocol):
    def __call__(self, connection: "Connection", frame: Frame, answer: ResponseSlot) -> None:
        """Take a request. Raises `MalformedRequestError`."""


class ConnectionOwner(Protocol):
    """Who keeps the connections, as each of them sees it."""

    def opened(self, connection: "Connection") -> str | None:
        """Why the connection is refused; None: it is kept until `closed`."""

    def active(self, connection: "Connection") -> None:
        """A whole request came, or an answer went."""

    def ended(self, connection: "Connection", reason: str) -> None:
        """The broker closes it."""

    def closed(self, connection: "Connection") -> None: ...


class Connection(asyncio.BufferedProtocol):
    def __init__(
        self,
        *,
        handler: RequestHandler,
        budget: MemoryBudget,
        limits: ConnectionLimits,
        figures: RequestFigures,
        owner: ConnectionOwner,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._handler = handler
        self._budget = budget
        self._limits = limits
        self._figures = figures
        self._now_s = now_s
        self._owner = owner
        self._transport: asyncio.Transport | None = None
        self._received = memoryview(bytearray(RECEIVE_BYTES))
        self._start = 0
        self._end = 0
        self._frame: Frame | None = None
        self._filled = 0
        self._deadline: asyncio.TimerHandle | None = None
        self._answers: deque[ResponseSlot] = deque()
        self._others = 0
        self._held: ResponseSlot | None = None
        self._blocked = False
        self._reading = True
        self._client_reads = True
        self._closing = False
        self._ended = False
        self._waiting: set[asyncio.Task[None]] = set()
        self.peer = ""
        self.host = ""
        """The client's address without its port."""

    # asyncio's side --------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=self._limits.response_buffer_bytes)
        address = transport.get_extra_info("peername")
        self.peer = str(address)
        self.host = str(address[0]) if isinstance(address, tuple) else self.peer
        refusal = self._owner.opened(self)
        if refusal is not None:
            self.end(refusal)

    def connection_lost(self, exc: Exception | None) -> None:
        self._budget.forget(self)
        self._stop_clock()
        if self._frame is not None:
            self._frame.release()
            self._frame = None
        self._transport = None
        self._ended = True
        self._answers.clear()
        for task in self._waiting:
            task.cancel()
        self._owner.closed(self)

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
        room = self._held is None or self._end - self._start < RECEIVE_BYTES
        wanted = self._frame is not None or (self._wants_more() and not self._blocked and room)
        if wanted and not self._reading:
            self._transport.resume_reading()
        elif not wanted and self._reading:
            self._transport.pause_reading()
        self._reading = wanted

    def _wants_more(self) -> bool:
        return (
            self._client_reads
            and not self._closing
            and len(self._answers) < self._limits.requests_in_flight
            and self._others < self._limits.other_requests_in_flight
        )

    def _next_frame(self) -> bool:
        """Take one request if it is here as a whole. False: wait for bytes, room or answers."""
        if self._frame is not None:
            if self._filled < len(self._frame.data):
                return False
            frame, self._frame = self._frame, None
            self._stop_clock()
            self._handle(frame)
            return True
        available = self._end - self._start
        if available < _LENGTH.size or not self._wants_more() or self._held is not None:
            self._wait_no_more()
            return False
        length, api_key = self._next_length(available)
        whole = length + _LENGTH.size
        if available < (whole if whole <= RECEIVE_BYTES else _LENGTH_AND_API_KEY.size):
            return False
        if not self._granted(length, api_key):
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
            self._start_clock()
            return False
        self._handle(frame)
        return True

    def _next_length(self, available: int) -> tuple[int, int]:
        """The length, and the API key if it is here (-1); raises where they are out of bounds."""
        (length,) = _LENGTH.unpack_from(self._received, self._start)
        limits = self._limits
        api_key, longest = -1, limits.request_bytes_max
        if available >= _LENGTH_AND_API_KEY.size:
            _, api_key = _LENGTH_AND_API_KEY.unpack_from(self._received, self._start)
            if api_key != ApiKey.PRODUCE:
                longest = limits.other_request_bytes_max
        if not REQUEST_BYTES_MIN <= length <= longest:
            raise MalformedRequestError(
                f"a request of {length} bytes for api {api_key}; {REQUEST_BYTES_MIN} to {longest} "
                "are accepted"
            )
        return length, api_key

    def _granted(self, length: int, api_key: int) -> bool:
        """Small requests that are here and write nothing do not wait behind those that do."""
        if api_key != ApiKey.PRODUCE and length + _LENGTH.size <= RECEIVE_BYTES:
            self._budget.take(length)
            return True
        self._blocked = not self._budget.acquire(length, self, self._take_soon)
        return not self._blocked

    def _start_clock(self) -> None:
        limit_ms = self._limits.request_receive_ms_max
        reason = f"a request was not here as a whole after {limit_ms} ms"
        self._deadline = asyncio.get_running_loop().call_later(limit_ms / 1000, self.end, reason)

    def _stop_clock(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _wait_no_more(self) -> None:
        """Others stand behind this connection in the budget's queue: leave it, ask again later."""
        if self._blocked:
            self._blocked = False
            self._budget.forget(self)

    def _take_soon(self) -> None:
        """Not at once: the caller is amid another connection's work, or the commit path's."""
        asyncio.get_running_loop().call_soon(self._take_frames)

    def _handle(self, frame: Frame) -> None:
        (api_key,) = _API_KEY.unpack_from(frame.data)
        answer = ResponseSlot(
            self, api_key=api_key, request_bytes=frame.size_bytes, taken_s=self._now_s()
        )
        self._answers.append(answer)
        self._others += answer.is_not_produce
        self._owner.active(self)
        self._handler(self, frame, answer)

    # Answers ---------------------------------------------------------------------------------

    def hold(self, answer: ResponseSlot) -> None:
        self._held = answer

    def flush_answers(self) -> None:
        """Send all answers that are ready and not behind one that is not."""
        if self._transport is None:
            return
        out: list[Buffer] = []
        now_s = self._now_s()
        while self._answers and (parts := self._answers[0].parts) is not None:
            answer = self._answers.popleft()
            self._others -= answer.is_not_produce
            length = sum(len(part) for part in parts)
            if parts:
                out.append(_LENGTH.pack(length))
                out.extend(parts)
            self._count(answer, now_s - answer.taken_s, length)
        if out and not self._ended:
            self._transport.writelines(out)
            self._owner.active(self)
        released = self._held is not None and self._held.parts is not None
        if released:
            self._held = None
        if released or not self._reading:
            self._take_soon()

    def _count(self, answer: ResponseSlot, seconds: float, response_bytes: int) -> None:
        self._figures.answered(
            answer.api_key,
            seconds,
            request_bytes=answer.request_bytes,
            response_bytes=response_bytes,
        )
        if answer.errors:
            self._figures.failed(answer.api_key, answer.errors)
        if self._figures.is_slow(seconds - answer.may_wait_s):
            logger.warning(
                "%s took %.3f s",
                ApiKey(answer.api_key).message_name,
                seconds,
                extra={
                    "client": self.peer,
                    "client_id": answer.client_id,
                    "correlation_id": answer.correlation_id,
                    "request_bytes": answer.request_bytes,
                    "response_bytes": response_bytes,
                },
            )

    def end(self, reason: str) -> None:
        if self._transport is not None and not self._ended:
            self._ended = True
            self._wait_no_more()
            self._owner.ended(self, reason)
            self._transport.abort()

    def give_up_with_client(self, task: "asyncio.Task[None]") -> None:
        """The task works for this client alone, and may wait for long: it ends with it."""
        self._waiting.add(task)
        task.add_done_callback(self._waiting.discard)
        if self._transport is None:
            task.cancel()

    @property
    def is_waiting_for_requests(self) -> bool:
        """Every request that came as a whole is answered."""
        return not self._answers

    def take_no_more(self) -> None:
        """Read no further request; those that were begun are taken and answered."""
        self._closing = True
        self._take_frames()

    def finish(self) -> None:
        """Close once what is written is sent."""
        self._closing = True
        if self._transport is not None:
            self._transport.close()
