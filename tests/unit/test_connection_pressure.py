"""A connection under pressure: full buffers, slow clients, a budget that is used up."""

import pytest

from bucketlog.stateless_broker.network.exchange import Frame
from bucketlog.stateless_broker.network.incoming import FIRST_BYTES, GROWTH, RECEIVE_BYTES
from bucketlog.stateless_broker.network.memory_budget import MemoryBudget
from tests.rigs.fake_wire import LONGEST, Owner, Requests, connect, framed, produced, turn


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


async def test_all_that_is_produced_between_two_flushes_may_be_in_flight_at_once() -> None:
    requests = Requests()
    wire = connect(requests, requests_in_flight=300, other_requests_in_flight=2)
    for _ in range(250):
        wire.carry(framed(produced("p", 13)))
    assert len(requests.taken) == 250
    for number in range(3):
        wire.carry(framed(b"request-%d" % number))
    assert requests.bodies[250:] == [b"request-0", b"request-1"]
    assert not wire.is_reading()
    for done in range(251):
        requests.answer(done)
    await turn()
    wire.carry(b"")
    assert requests.bodies[252:] == [b"request-2"]
    assert not wire.is_reading()
    requests.answer(251)
    await turn()
    assert wire.is_reading()


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
    other.carry(framed(produced("o", 80)))
    wire.carry(framed(produced("m", 50)))
    assert mine.taken == []
    assert not wire.is_reading()
    others.answer(0)
    await turn()
    assert mine.bodies == [produced("m", 50)]
    assert wire.is_reading()
    assert budget.held_bytes == 50


async def test_waking_up_is_no_part_of_the_others_work() -> None:
    """Room appears amid another connection's answer: nothing of this one may run there."""
    budget = MemoryBudget(100)
    mine, others = Requests(), Requests()
    wire, other = connect(mine, budget=budget), connect(others, budget=budget)
    other.carry(framed(produced("o", 80)))
    wire.carry(framed(produced("m", 50)))
    others.answer(0)
    assert mine.taken == []


async def test_a_waiter_that_wants_no_more_lets_others_in() -> None:
    budget = MemoryBudget(100)
    holder, slow, third = Requests(), Requests(), Requests()
    wires = [connect(requests, budget=budget) for requests in (holder, slow, third)]
    wires[0].carry(framed(produced("h", 80)))
    wires[1].carry(framed(produced("s", 50)))
    wires[2].carry(framed(produced("t", 50)))
    wires[1].connection.pause_writing()  # its client reads nothing: it takes no request now
    holder.answer(0)
    await turn()
    assert slow.taken == []
    assert third.bodies == [produced("t", 50)]
    third.answer(0)
    wires[1].connection.resume_writing()
    await turn()
    assert slow.bodies == [produced("s", 50)]


async def test_memory_is_asked_for_as_bytes_arrive() -> None:
    budget = MemoryBudget(LONGEST)
    requests = Requests()
    wire = connect(requests, budget=budget)
    body = produced("p", 900_000)
    wire.carry(framed(body)[:10])
    assert budget.held_bytes == FIRST_BYTES
    sent = 10
    while sent < len(body) + 4:
        wire.carry(framed(body)[sent : sent + 5_000])
        sent += 5_000
        assert budget.held_bytes <= max(FIRST_BYTES, sent * GROWTH)
    assert requests.bodies == [body]
    assert budget.held_bytes == 900_000
    requests.answer(0)
    assert budget.held_bytes == 0


async def test_a_frame_that_has_begun_waits_for_room_and_is_not_read_meanwhile() -> None:
    budget = MemoryBudget(500_000)
    first, second = Requests(), Requests()
    wires = [connect(first, budget=budget), connect(second, budget=budget)]
    wires[0].carry(framed(produced("a", 400_000)))
    body = produced("b", 400_000)
    wires[1].carry(framed(body))
    assert budget.held_bytes <= 500_000
    assert not wires[1].is_reading()
    first.answer(0)
    await turn()
    wires[1].carry(b"")
    assert second.bodies == [body]


async def test_a_connection_that_ends_amid_a_frame_lets_others_in() -> None:
    budget = MemoryBudget(500_000)
    first, second = Requests(), Requests()
    wires = [connect(first, budget=budget), connect(second, budget=budget)]
    wires[0].carry(framed(produced("a", 400_000))[:300_000])
    body = produced("b", 400_000)
    wires[1].carry(framed(body))
    assert not wires[1].is_reading()
    wires[0].connection.connection_lost(None)
    await turn()
    wires[1].carry(b"")
    assert second.bodies == [body]
    assert budget.held_bytes == 400_000


async def test_what_waits_for_its_turn_is_counted_and_bounded() -> None:
    budget = MemoryBudget(1_000_000, address_percent_max=15)
    wires = []
    for _ in range(3):
        requests = Requests()
        wires.append(connect(requests, budget=budget))
        wires[-1].carry(framed(b"request-1"))
        requests.taken[0][1].hold_back_later_requests()
        wires[-1].carry(framed(b"request-2") * 4_000)
    assert [wire.closed for wire in wires] == [False, False, True]
    assert budget.held_bytes > 2 * 50_000
    for wire in wires:
        wire.connection.connection_lost(None)
    assert budget.held_bytes == 3 * 9, "the requests that were not answered"


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
    wires[0].carry(framed(produced("h", 80)))
    wires[1].carry(framed(produced("g", 90)))
    wires[2].carry(framed(produced("t", 20)))
    wires[1].connection.connection_lost(None)
    await turn()
    assert third.bodies == [produced("t", 20)]


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


async def test_a_frame_is_released_once() -> None:
    budget = MemoryBudget(100)
    budget.acquire(8, "a", lambda: None)
    budget.acquire(50, "b", lambda: None)
    frame = Frame(bytearray(8), budget)
    frame.release()
    frame.release()
    assert budget.held_bytes == 50


async def test_a_connection_too_many_is_closed() -> None:
    assert connect(Requests(), owner=Owner(accepts=False)).closed


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


async def test_small_requests_that_write_nothing_do_not_wait_for_the_budget() -> None:
    budget = MemoryBudget(100)
    holder, other = Requests(), Requests()
    wires = [connect(requests, budget=budget) for requests in (holder, other)]
    wires[0].carry(framed(produced("h", 100)))
    wires[1].carry(framed(b"metadata, say"))
    assert other.bodies == [b"metadata, say"]
    other.answer(0)
    assert budget.held_bytes == 100


async def test_a_small_request_that_waited_for_the_budget_leaves_its_place_in_the_queue() -> None:
    budget = MemoryBudget(100)
    holder, other, third = Requests(), Requests(), Requests()
    wires = [connect(requests, budget=budget) for requests in (holder, other, third)]
    wires[0].carry(framed(produced("h", 100)))
    address = wires[1].connection.host
    assert budget.take(100, address=address)
    wires[1].carry(framed(b"metadata, say"))
    assert other.bodies == [], "its address has taken its share, and the budget is used up"
    wires[2].carry(framed(produced("t", 50)))
    budget.release(100, address=address, is_taken=True)
    wires[1].connection.resume_writing()
    assert other.bodies == [b"metadata, say"]
    assert wires[1].is_reading()
    other.answer(0)
    holder.answer(0)
    await turn()
    assert third.bodies == [produced("t", 50)]


async def test_requests_that_write_nothing_have_a_bound_of_their_own() -> None:
    requests = Requests()
    wire = connect(requests, other_request_bytes_max=1000)
    wire.carry(framed(produced("p", 2000)))
    assert len(requests.taken) == 1
    wire.carry(framed(b"x" * 2000)[:20])
    assert wire.closed


async def test_the_owner_hears_when_a_request_has_begun() -> None:
    owner = Owner()
    requests = Requests(at_once=True)
    wire = connect(requests, owner=owner)
    for piece in (framed(b"request-1"), b"", framed(b"request-2") + b"\0"):
        wire.carry(piece)
    assert owner.begun == 1
    wire.carry(framed(b"request-3")[1:])
    assert owner.begun == 0
    wire.carry(framed(produced("p", 300_000))[:100])
    assert owner.begun == 1
    wire.connection.connection_lost(None)
    assert owner.begun == 0


async def test_a_request_holds_back_those_behind_it() -> None:
    requests = Requests()
    wire = connect(requests, requests_in_flight=100_000)
    wire.carry(framed(b"request-1"))
    requests.taken[0][1].hold_back_later_requests()
    wire.carry(framed(b"request-2") * (RECEIVE_BYTES // 13 + 10))
    assert len(requests.taken) == 1
    assert not wire.is_reading(), "no more than the receive buffer holds"
    requests.answer(0)
    await turn()
    wire.carry(b"")
    assert len(requests.taken) == RECEIVE_BYTES // 13 + 11
