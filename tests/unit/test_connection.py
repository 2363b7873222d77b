"""A connection on a transport that is not there: framing, order, bounds, memory."""

import asyncio
import gc
import struct
import weakref

import pytest

from bucketlog.log_format.wire.frames import MalformedRequestError
from bucketlog.stateless_broker.network.connection import Connection
from bucketlog.stateless_broker.network.exchange import Frame, ResponseSlot
from bucketlog.stateless_broker.network.incoming import RECEIVE_BYTES
from bucketlog.stateless_broker.network.memory_budget import MemoryBudget
from tests.rigs.fake_wire import LONGEST, Requests, connect, framed, turn
from tests.rigs.patience import eventually_async

BODIES = [b"12345678", b"request-number-two", b"x" * 300, b"request-4"]


@pytest.mark.parametrize("first", range(1, sum(len(body) + 4 for body in BODIES)))
async def test_frames_cut_anywhere(first: int) -> None:
    requests = Requests()
    wire = connect(requests)
    data = b"".join(framed(body) for body in BODIES)
    wire.carry(data[:first])
    wire.carry(data[first:])
    assert requests.bodies == BODIES


@pytest.mark.parametrize("piece", [1, 2, 3, 7, 4096, RECEIVE_BYTES - 1, RECEIVE_BYTES])
async def test_frames_around_the_receive_buffers_size_in_pieces(piece: int) -> None:
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
    await eventually_async(lambda: len(requests.bodies) == len(bodies))
    await turn()
    assert requests.bodies == bodies
    assert wire.answers() == [b"answer to " + body for body in bodies]


async def test_answers_leave_in_the_order_of_their_requests() -> None:
    requests = Requests()
    wire = connect(requests)
    bodies = [b"request-%d" % number for number in range(6)]
    wire.carry(b"".join(framed(body) for body in bodies))
    for number in (3, 1, 5):
        requests.answer(number)
        await turn()
        assert wire.answers() == []
    requests.answer(0)
    await turn()
    assert wire.answers() == [b"answer to " + body for body in bodies[:2]]
    requests.answer(2, [])  # one that has none (acks=0)
    requests.answer(4)
    await turn()
    assert wire.answers() == [
        b"answer to " + body for number, body in enumerate(bodies) if number != 2
    ]


async def test_later_requests_wait_until_they_are_let_in() -> None:
    requests = Requests()

    def take(connection: Connection, frame: Frame, answer: ResponseSlot) -> None:
        requests(connection, frame, answer)
        if len(requests.taken) == 1:
            answer.hold_back_later_requests()

    wire = connect(take)
    wire.carry(framed(b"request-0") + framed(b"request-1") + framed(b"request-2"))
    await asyncio.sleep(0)
    assert requests.bodies == [b"request-0"]
    requests.taken[0][1].let_later_requests_in()
    await asyncio.sleep(0)
    assert requests.bodies == [b"request-0", b"request-1", b"request-2"]


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
    def refuse(connection: Connection, frame: Frame, answer: ResponseSlot) -> None:
        frame.release()
        raise MalformedRequestError("no")

    budget = MemoryBudget(LONGEST)
    wire = connect(refuse, budget=budget)
    wire.carry(framed(b"12345678") * 3)
    assert wire.closed
    assert budget.held_bytes == 0


async def test_what_waits_for_a_client_ends_with_it() -> None:
    wire = connect(Requests())

    async def wait() -> None:
        await asyncio.Event().wait()

    waiting, ended = asyncio.create_task(wait()), asyncio.create_task(asyncio.sleep(0))
    for task in (waiting, ended):
        wire.connection.give_up_with_client(task)
    await ended
    assert not waiting.done()
    wire.connection.connection_lost(None)
    late = asyncio.create_task(wait())
    wire.connection.give_up_with_client(late)
    await asyncio.wait([waiting, late])
    assert (waiting.cancelled(), ended.cancelled(), late.cancelled()) == (True, False, True)


async def test_a_closed_connection_is_freed_without_a_collection() -> None:
    requests = Requests()
    wire = connect(requests)
    wire.carry(framed(BODIES[0]))
    requests.taken[0][1].hold_back_later_requests()
    wire.connection.connection_lost(None)
    left = weakref.ref(wire.connection)
    requests.taken.clear()
    gc.disable()
    try:
        del wire.connection
        await turn()
        assert left() is None
    finally:
        gc.enable()
