"""The memory of responses: granted before they are built, freed when the kernel has them."""

import asyncio
import socket
import sys

import pytest

from bucketlog.stateless_broker.network.answer_memory import AnswerLease
from bucketlog.stateless_broker.network.memory_budget import MemoryBudget
from tests.rigs.fake_wire import Owner, Requests, Wire, connect, framed, turn
from tests.rigs.patience import PATIENCE_S, eventually_async


async def test_an_answer_waits_until_others_are_taken() -> None:
    budget = MemoryBudget(100)
    first, second, small = (AnswerLease(budget, address) for address in "abc")
    assert not await first.acquire(80)
    waiting = asyncio.create_task(second.acquire(50))
    behind = asyncio.create_task(small.acquire(5))
    await turn()
    assert not waiting.done()
    assert not behind.done(), "it came later"
    first.release()
    first.release()
    assert await waiting
    assert await behind
    assert budget.held_bytes == 55


async def test_an_address_has_its_share_of_answers_and_others_are_answered() -> None:
    budget = MemoryBudget(100, address_percent_max=50)
    leases = [AnswerLease(budget, "greedy") for _ in range(5)]
    tasks = [asyncio.create_task(lease.acquire(25)) for lease in leases]
    await turn()
    assert [task.done() for task in tasks] == [True, True, False, False, False]
    assert not await AnswerLease(budget, "bystander").acquire(50)
    for task in tasks:
        task.cancel()
    await turn()


async def test_who_is_given_up_leaves_its_place() -> None:
    budget = MemoryBudget(100)
    first, gone, next_one = (AnswerLease(budget, address) for address in "abc")
    await first.acquire(60)
    waiting = [asyncio.create_task(gone.acquire(50)), asyncio.create_task(next_one.acquire(40))]
    await turn()
    waiting[0].cancel()
    async with asyncio.timeout(PATIENCE_S):
        assert await waiting[1]
    first.release()
    next_one.release()
    assert budget.held_bytes == 0


async def test_what_an_answer_has_in_fact_is_counted() -> None:
    budget = MemoryBudget(100)
    lease, other = AnswerLease(budget, "a"), AnswerLease(budget, "b")
    await lease.acquire(80)
    waiting = asyncio.create_task(other.acquire(50))
    await turn()
    lease.settle(30)
    await waiting
    lease.settle(70)
    assert budget.held_bytes == 120, "it is there already"
    lease.release()
    other.release()
    assert budget.held_bytes == 0


# Until the kernel has it --------------------------------------------------------------------------


class Leased:
    """A connection with two requests, each response with a lease of 100 bytes."""

    def __init__(self) -> None:
        self.budget = MemoryBudget(1_000)
        self.requests = Requests()
        self.owner = Owner()
        self.wire: Wire = connect(self.requests, owner=self.owner)
        self.wire.carry(framed(b"request-1") + framed(b"request-2"))

    async def answer(self, number: int) -> None:
        frame, answer = self.requests.taken[number]
        answer.lease = AnswerLease(self.budget, "a")
        await answer.lease.acquire(100)
        frame.release()
        answer.send([bytes(100)])
        await turn()


async def test_memory_is_given_back_when_the_kernel_has_the_answer() -> None:
    leased = Leased()
    await leased.answer(0)
    assert leased.budget.held_bytes == 0
    assert leased.wire.write_limit == 1_000
    leased.wire.unsent_bytes = 60
    await leased.answer(1)
    assert leased.wire.write_limit == 0, "it hears when all is taken"
    assert leased.budget.held_bytes == 100
    assert leased.wire.connection.taken_bytes == 2 * 104 - 60
    leased.wire.unsent_bytes = 0
    leased.wire.connection.resume_writing()
    assert leased.budget.held_bytes == 0
    assert leased.wire.write_limit == 1_000


async def test_an_answer_behind_another_holds_its_memory() -> None:
    leased = Leased()
    await leased.answer(1)
    assert leased.budget.held_bytes == 100
    await leased.answer(0)
    assert leased.budget.held_bytes == 0


@pytest.mark.parametrize(("first", "unsent_bytes"), [(0, 60), (1, 0)])
async def test_a_client_that_leaves_gives_all_memory_back(first: int, unsent_bytes: int) -> None:
    """A written response is not taken, or waits behind an unfinished response."""
    leased = Leased()
    leased.wire.unsent_bytes = unsent_bytes
    await leased.answer(first)
    assert leased.budget.held_bytes == 100
    leased.wire.connection.connection_lost(None)
    assert leased.budget.held_bytes == 0
    await leased.answer(1 - first)
    assert leased.budget.held_bytes == 0


async def test_the_owner_sees_what_a_connection_holds_and_is_due() -> None:
    """Also for a response that waits, perhaps for long, for an earlier one."""
    leased = Leased()
    connection, owner = leased.wire.connection, leased.owner
    assert (connection.held_bytes, connection.due_bytes, owner.watched) == (0, 0, 0)
    await leased.answer(1)
    assert (connection.held_bytes, connection.due_bytes, owner.watched) == (100, 100, 1)
    leased.wire.unsent_bytes = 60
    await leased.answer(0)
    assert (connection.held_bytes, connection.due_bytes) == (200, 2 * 104)
    leased.wire.unsent_bytes = 0
    connection.resume_writing()
    assert (connection.held_bytes, connection.due_bytes) == (0, 2 * 104)


async def test_a_connection_that_ends_amid_its_answers_gives_all_memory_back() -> None:
    leased = Leased()
    await leased.answer(1)
    leased.wire.connection.end("enough")
    await leased.answer(0)
    assert leased.budget.held_bytes == 0


# The kernel ---------------------------------------------------------------------


@pytest.mark.skipif(sys.platform != "linux", reason="other kernels do not tell what they hold")
async def test_bytes_that_a_slow_client_takes_count_before_the_kernel_takes_more() -> None:
    """The kernel holds megabytes for it, and takes no more before a third of them is gone."""
    loop, requests = asyncio.get_running_loop(), Requests()
    connection = connect(requests).connection
    server = await loop.create_server(lambda: connection, "127.0.0.1", 0)
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 * 1024)
        client.setblocking(False)
        await loop.sock_connect(client, server.sockets[0].getsockname())
        await loop.sock_sendall(client, framed(b"request-1"))
        await eventually_async(lambda: bool(requests.taken))
        requests.answer(0, [bytes(16 << 20)])
        before = (connection.unsent_bytes, connection.taken_bytes)

        def has_taken_some() -> bool:
            nonlocal before
            unsent, taken = before
            client.recv(64 * 1024)
            before = (connection.unsent_bytes, connection.taken_bytes)
            return before[0] == unsent > 0 and before[1] > taken

        def looks() -> bool:
            try:
                return has_taken_some()
            except BlockingIOError:
                return False

        await eventually_async(looks)
    server.close()
    await eventually_async(lambda: connection.is_gone)
