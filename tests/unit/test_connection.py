"""A connection on a transport that is not there: framing, order, bounds, back-pressure, memory."""

import asyncio
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from bucketlog.model import Buffer
from bucketlog.wire.frames import MalformedRequestError
from stateless_broker.connection import RECEIVE_BYTES, Answer, Connection, Frame, RequestHandler
from stateless_broker.memory_budget import MemoryBudget

LONGEST = 1_000_000


class Wire(asyncio.Transport):
    """Carries what it is given into the connection's own buffers, as an event loop does, and only
    while reading is not paused."""

    def __init__(self) -> None:
        super().__init__()
        self.written = bytearray()
        self._reads = True
        self.closed = False
        self.pending = bytearray()
        self.connection: Connection

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self.write_limit = high

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
    taken: list[tuple[Frame, Answer]] = field(default_factory=list)

    def __call__(self, connection: Connection, frame: Frame, answer: Answer) -> None:
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


def connect(
    requests: RequestHandler,
    *,
    budget: MemoryBudget | None = None,
    requests_in_flight: int = 1000,
    accept: bool = True,
) -> Wire:
    wire = Wire()
    wire.connection = Connection(
        handler=requests,
        budget=budget or MemoryBudget(LONGEST * 10),
        request_bytes_max=LONGEST,
        requests_in_flight=requests_in_flight,
        response_buffer_bytes=1000,
        on_open=lambda _: accept,
        on_close=lambda _: None,
    )
    wire.connection.connection_made(wire)
    return wire


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


async def turn() -> None:
    """Let what was scheduled run."""
    for _ in range(5):
        await asyncio.sleep(0)


BODIES = [b"12345678", b"request-number-two", b"x" * 300, b"request-4"]


@pytest.mark.parametrize("first", range(1, sum(len(body) + 4 for body in BODIES)))
def test_frames_cut_anywhere(first: int) -> None:
    requests = Requests()
    wire = connect(requests)
    data = b"".join(framed(body) for body in BODIES)
    wire.carry(data[:first])
    wire.carry(data[first:])
    assert requests.bodies == BODIES


@pytest.mark.parametrize("piece", [1, 2, 3, 7, 4096, RECEIVE_BYTES - 1, RECEIVE_BYTES])
def test_frames_around_the_receive_buffers_size_in_pieces(piece: int) -> None:
    requests = Requests()
    wire = connect(requests)
    sizes = [8, RECEIVE_BYTES - 5, RECEIVE_BYTES - 4, RECEIVE_BYTES - 3, RECEIVE_BYTES, 9, 100_000]
    if piece < 100:
        sizes = [8, RECEIVE_BYTES - 3, 9]
    bodies = [bytes([number]) * size for number, size in enumerate(sizes)]
    wire.carry(b"".join(framed(body) for body in bodies), piece)
    assert requests.bodies == bodies


async def test_many_small_frames_in_one_read() -> None:
    requests = Requests(at_once=True)
    wire = connect(requests)
    bodies = [b"small-%06d" % number for number in range(4000)]
    data = b"".join(framed(body) for body in bodies)
    assert len(data) < RECEIVE_BYTES
    wire.carry(data)
    assert requests.bodies == bodies
    assert wire.answers() == [b"answer to " + body for body in bodies]


async def test_answers_leave_in_the_order_of_their_requests() -> None:
    requests = Requests()
    wire = connect(requests)
    bodies = [b"request-%d" % number for number in range(6)]
    wire.carry(b"".join(framed(body) for body in bodies))
    for number in (3, 1, 5):
        requests.answer(number)
        assert wire.answers() == []
    requests.answer(0)
    assert wire.answers() == [b"answer to " + body for body in bodies[:2]]
    requests.answer(2, [])  # one that has none (acks=0)
    requests.answer(4)
    assert wire.answers() == [
        b"answer to " + body for number, body in enumerate(bodies) if number != 2
    ]


@pytest.mark.parametrize("length", [-(2**31), -1, 0, 7, LONGEST + 1, 2**31 - 1])
async def test_a_length_out_of_bounds_ends_the_connection_and_allocates_nothing(
    length: int,
) -> None:
    budget = MemoryBudget(LONGEST)
    requests = Requests()
    wire = connect(requests, budget=budget)
    wire.carry(struct.pack(">i", length) + b"some bytes")
    assert wire.closed
    assert requests.taken == []
    assert budget.held_bytes == 0


async def test_a_request_the_handler_refuses_ends_the_connection() -> None:
    def refuse(connection: Connection, frame: Frame, answer: Answer) -> None:
        frame.release()
        raise MalformedRequestError("no")

    budget = MemoryBudget(LONGEST)
    wire = connect(refuse, budget=budget)
    wire.carry(framed(b"12345678") * 3)
    assert wire.closed
    assert budget.held_bytes == 0


async def test_too_many_requests_in_flight_pause_the_socket() -> None:
    requests = Requests()
    wire = connect(requests, requests_in_flight=2)
    bodies = [b"request-%d" % number for number in range(5)]
    for body in bodies:
        wire.carry(framed(body))
    assert requests.bodies == bodies[:2]
    assert not wire.is_reading()
    for done in range(5):
        requests.answer(done)
        await turn()
        wire.carry(b"")
    assert requests.bodies == bodies
    assert wire.is_reading()
    assert len(wire.answers()) == 5


async def test_frames_that_are_here_already_are_taken_when_there_is_room_again() -> None:
    requests = Requests()
    wire = connect(requests, requests_in_flight=1)
    wire.carry(framed(b"request-1") + framed(b"request-2"))
    assert requests.bodies == [b"request-1"]
    requests.answer(0)
    await turn()
    assert requests.bodies == [b"request-1", b"request-2"]


async def test_a_client_that_does_not_read_is_not_read_from() -> None:
    requests = Requests(at_once=True)
    wire = connect(requests)
    assert wire.write_limit == 1000
    wire.connection.pause_writing()
    assert not wire.is_reading()
    wire.connection.resume_writing()
    assert wire.is_reading()
    wire.connection.pause_writing()
    wire.carry(framed(b"12345678"))
    assert requests.taken == []
    wire.connection.resume_writing()
    wire.carry(b"")
    assert len(requests.taken) == 1


async def test_the_memory_budget_stops_reading_until_there_is_room() -> None:
    budget = MemoryBudget(100)
    mine, others = Requests(), Requests()
    wire, other = connect(mine, budget=budget), connect(others, budget=budget)
    other.carry(framed(b"o" * 80))
    wire.carry(framed(b"m" * 50))
    assert mine.taken == []
    assert not wire.is_reading()
    others.answer(0)
    await turn()
    assert mine.bodies == [b"m" * 50]
    assert wire.is_reading()
    assert budget.held_bytes == 50


async def test_waking_up_is_no_part_of_the_others_work() -> None:
    """Room appears amid another connection's answer: nothing of this one may run there."""
    budget = MemoryBudget(100)
    mine, others = Requests(), Requests()
    wire, other = connect(mine, budget=budget), connect(others, budget=budget)
    other.carry(framed(b"o" * 80))
    wire.carry(framed(b"m" * 50))
    others.answer(0)
    assert mine.taken == []


async def test_a_waiter_that_wants_no_more_lets_others_in() -> None:
    budget = MemoryBudget(100)
    holder, slow, third = Requests(), Requests(), Requests()
    wires = [connect(requests, budget=budget) for requests in (holder, slow, third)]
    wires[0].carry(framed(b"h" * 80))
    wires[1].carry(framed(b"s" * 50))
    wires[2].carry(framed(b"t" * 50))
    wires[1].connection.pause_writing()  # its client reads nothing: it takes no request now
    holder.answer(0)
    await turn()
    assert slow.taken == []
    assert third.bodies == [b"t" * 50]
    third.answer(0)
    wires[1].connection.resume_writing()
    await turn()
    assert slow.bodies == [b"s" * 50]


async def test_a_frame_of_its_own_memory_is_bounded_by_the_budget_before_it_is_here() -> None:
    budget = MemoryBudget(500_000)
    first, second = Requests(), Requests()
    wires = [connect(first, budget=budget), connect(second, budget=budget)]
    wires[0].carry(struct.pack(">i", 400_000) + b"the beginning")
    assert budget.held_bytes == 400_000
    wires[1].carry(struct.pack(">i", 400_000) + b"the beginning")
    assert budget.held_bytes == 400_000
    assert not wires[1].is_reading()
    wires[0].connection.connection_lost(None)
    await turn()
    assert budget.held_bytes == 400_000
    wires[1].carry(b"." * (400_000 - len("the beginning")))
    assert len(second.bodies[0]) == 400_000


@pytest.mark.parametrize("begun", [0, 3, 4, 5, 100, RECEIVE_BYTES, 200_000])
async def test_a_lost_connection_gives_back_what_it_held(begun: int) -> None:
    budget = MemoryBudget(LONGEST)
    wire = connect(Requests(), budget=budget)
    wire.carry(framed(b"." * 300_000)[:begun])
    wire.connection.connection_lost(ConnectionResetError())
    assert budget.held_bytes == 0


async def test_a_lost_connection_leaves_its_place_in_the_queue() -> None:
    budget = MemoryBudget(100)
    holder, gone, third = Requests(), Requests(), Requests()
    wires = [connect(requests, budget=budget) for requests in (holder, gone, third)]
    wires[0].carry(framed(b"h" * 80))
    wires[1].carry(framed(b"g" * 90))
    wires[2].carry(framed(b"t" * 20))
    wires[1].connection.connection_lost(None)
    await turn()
    assert third.bodies == [b"t" * 20]


async def test_an_answer_after_the_end_goes_nowhere() -> None:
    budget = MemoryBudget(LONGEST)
    requests = Requests()
    wire = connect(requests, budget=budget)
    wire.carry(framed(b"12345678") * 2)
    requests.taken[0][1].close("no answer to that")
    assert wire.closed
    requests.answer(1)
    requests.answer(0)
    assert wire.answers() == []
    wire.connection.connection_lost(None)
    requests.taken[1][1].send([b"late"])
    assert wire.answers() == []
    assert budget.held_bytes == 0


def test_a_frame_is_released_once() -> None:
    budget = MemoryBudget(100)
    budget.acquire(8, "a", lambda: None)
    budget.acquire(50, "b", lambda: None)
    frame = Frame(bytearray(8), budget)
    frame.release()
    frame.release()
    assert budget.held_bytes == 50


async def test_a_connection_too_many_is_closed() -> None:
    assert connect(Requests(), accept=False).closed


async def test_stopping_takes_what_was_begun_and_no_more() -> None:
    requests = Requests()
    wire = connect(requests)
    large = framed(b"." * 100_000)
    wire.carry(framed(b"12345678") + large[:50_000])
    wire.connection.take_no_more()
    assert wire.is_reading()
    wire.carry(large[50_000:] + framed(b"one too many"))
    assert [len(body) for body in requests.bodies] == [8, 100_000]
    assert not wire.is_reading()
    requests.answer(0)
    requests.answer(1)
    await turn()
    assert len(requests.taken) == 2
    assert len(wire.answers()) == 2
