"""A transport that is not there, and a handler that keeps what it gets: for connections' tests."""

import asyncio
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from bucketlog.log_format.model import Buffer
from bucketlog.stateless_broker.network.connection import Connection
from bucketlog.stateless_broker.network.connection_owner import (
    ConnectionLimits,
    RequestHandler,
    Service,
)
from bucketlog.stateless_broker.network.exchange import Frame, ResponseSlot
from bucketlog.stateless_broker.network.incoming import RECEIVE_BYTES
from bucketlog.stateless_broker.network.memory_budget import MemoryBudget
from bucketlog.stateless_broker.network.request_figures import RequestFigures

LONGEST = 1_000_000
RECEIVE_BUFFER = memoryview(bytearray(RECEIVE_BYTES))


class Wire(asyncio.Transport):
    """Carries what it is given into the connection's own buffers, as an event loop does, and only
    while reading is not paused."""

    def __init__(self) -> None:
        super().__init__()
        self.written = bytearray()
        self.unsent_bytes = 0
        """What the client has not taken; a test sets it."""
        self._reads = True
        self.closed = False
        self.ended = asyncio.Event()
        self.pending = bytearray()
        self.connection: Connection

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self.write_limit = high

    def get_write_buffer_size(self) -> int:
        return self.unsent_bytes

    def writelines(self, list_of_data: Any) -> None:
        for part in list_of_data:
            self.written += part

    def pause_reading(self) -> None:
        assert self._reads, "paused twice"
        self._reads = False

    def resume_reading(self) -> None:
        assert not self._reads, "resumed twice"
        self._reads = True

    def is_reading(self) -> bool:
        return self._reads

    def abort(self) -> None:
        self.closed = True
        self.ended.set()

    def close(self) -> None:
        self.closed = True

    def carry(self, data: bytes, piece: int | None = None) -> None:
        """`data` arrives; at most `piece` bytes in one read."""
        self.pending += data
        while self.pending and self._reads and not self.closed:
            room = self.connection.get_buffer(-1)
            assert len(room), "an empty buffer"
            count = min(len(room), len(self.pending), piece or len(self.pending))
            room[:count] = self.pending[:count]
            del self.pending[:count]
            self.connection.buffer_updated(count)

    def answers(self) -> list[bytes]:
        found, at = [], 0
        while at < len(self.written):
            (length,) = struct.unpack_from(">i", self.written, at)
            found.append(bytes(self.written[at + 4 : at + 4 + length]))
            at += 4 + length
        return found


@dataclass
class Requests:
    """A handler that keeps what it gets; `at_once` answers immediately and releases."""

    at_once: bool = False
    taken: list[tuple[Frame, ResponseSlot]] = field(default_factory=list)

    def __call__(self, connection: Connection, frame: Frame, answer: ResponseSlot) -> None:
        self.taken.append((frame, answer))
        if self.at_once:
            self.answer(len(self.taken) - 1)

    def answer(self, number: int, parts: Sequence[Buffer] | None = None) -> None:
        frame, answer = self.taken[number]
        frame.release()
        answer.send([b"answer to ", bytes(frame.data)] if parts is None else parts)

    @property
    def bodies(self) -> list[bytes]:
        return [bytes(frame.data) for frame, _ in self.taken]


@dataclass
class Owner:
    """Keeps no list: it accepts all connections, or none."""

    accepts: bool = True
    begun: int = 0
    watched: int = 0
    reasons: list[str] = field(default_factory=list)

    def opened(self, connection: Connection) -> str | None:
        return None if self.accepts else "one too many"

    def placed(self, connection: Connection) -> str | None:
        return None

    def sent(self, connection: Connection) -> None:
        self.watched += 1

    def receiving(self, connection: Connection, *, has_begun: bool) -> None:
        self.begun += has_begun - (not has_begun)

    def ended(self, connection: Connection, reason: str) -> None:
        self.reasons.append(reason)

    def closed(self, connection: Connection) -> None:
        pass


def connect(
    requests: RequestHandler,
    *,
    budget: MemoryBudget | None = None,
    figures: RequestFigures | None = None,
    requests_in_flight: int = 1000,
    other_requests_in_flight: int = 100_000,
    other_request_bytes_max: int = LONGEST,
    owner: Owner | None = None,
) -> Wire:
    wire = Wire()
    wire.connection = Connection(
        service=Service(requests, figures or RequestFigures(slow_request_ms=0)),
        budget=budget or MemoryBudget(LONGEST * 10),
        limits=ConnectionLimits(
            request_bytes_max=LONGEST,
            other_request_bytes_max=other_request_bytes_max,
            requests_in_flight=requests_in_flight,
            other_requests_in_flight=other_requests_in_flight,
            response_buffer_bytes=1000,
        ),
        receive_buffer=RECEIVE_BUFFER,
        owner=owner or Owner(),
    )
    wire.connection.connection_made(wire)
    return wire


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def produced(letter: str, size: int) -> bytes:
    """A body that begins as a Produce request does: with its API key, 0."""
    return b"\0\0" + letter.encode() * (size - 2)


async def turn() -> None:
    """Let what was scheduled run."""
    for _ in range(5):
        await asyncio.sleep(0)
