"""A listener on a real socket with a fake clock: which connections it accepts and closes."""

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Callable

import pytest

from bucketlog.stateless_broker.network.answer_memory import AnswerLease
from bucketlog.stateless_broker.network.connection import Connection
from bucketlog.stateless_broker.network.connection_owner import Entrance
from bucketlog.stateless_broker.network.exchange import Frame, ResponseSlot
from bucketlog.stateless_broker.network.incoming import FIRST_BYTES
from bucketlog.stateless_broker.network.listener import Listener, bound_socket
from bucketlog.stateless_broker.network.memory_budget import MemoryBudget
from bucketlog.stateless_broker.network.open_connections import OpenConnections
from bucketlog.stateless_broker.network.request_figures import RequestFigures
from bucketlog.stateless_broker.settings.broker import BrokerSettings
from bucketlog.stateless_broker.supervision import Supervisor
from tests.rigs.fake_wire import framed
from tests.rigs.patience import PATIENCE_S, eventually_async

IDLE_MS = 600_000
MUCH = 16 << 20


class Place:
    """A listener whose handler echoes all requests, except those that start with `wait`."""

    def __init__(self, settings: BrokerSettings) -> None:
        self.now_s = 0.0
        self.figures = RequestFigures(slow_request_ms=0)
        self.waiting: list[tuple[Frame, ResponseSlot]] = []
        self.budget = MemoryBudget(
            settings.produce_buffer_bytes,
            address_percent_max=settings.produce_buffer_address_percent_max,
        )
        self.answers = MemoryBudget(4 * MUCH, address_percent_max=50)
        self.connections = OpenConnections(
            settings=settings,
            handler=self._handle,
            budget=self.budget,
            answers=self.answers,
            figures=self.figures,
            now_s=lambda: self.now_s,
        )
        self.socket = bound_socket("127.0.0.1", 0, keepalive_ms=settings.connections_keepalive_ms)
        self.listener = Listener(
            Entrance("PLAINTEXT"),
            self.socket,
            self.connections,
            backlog=settings.listen_backlog_size,
        )
        self._clients: list[Client] = []
        self.supervisor = Supervisor()
        self.made = 0

    def _handle(self, connection: Connection, frame: Frame, answer: ResponseSlot) -> None:
        if frame.data.startswith(b"much"):
            self.supervisor.spawn(
                self._answer_much(connection, frame, answer),
                "a large answer",
                on_failure=lambda error: answer.close(str(error)),
            )
            return
        if frame.data.startswith(b"wait"):
            self.waiting.append((frame, answer))
            return
        data = bytes(frame.data)
        frame.release()
        answer.send([data])

    async def _answer_much(
        self, connection: Connection, frame: Frame, answer: ResponseSlot
    ) -> None:
        """Answers with `MUCH` bytes, more than the kernel takes without a reader."""
        frame.release()
        lease = AnswerLease(self.answers, connection.host)
        await lease.acquire(MUCH)
        self.made += 1
        answer.lease = lease
        answer.send([bytes(MUCH)])

    async def connect(self, address: str = "127.0.0.1") -> "Client":
        port = self.socket.getsockname()[1]
        streams = await asyncio.open_connection("127.0.0.1", port, local_addr=(address, 0))
        self._clients.append(Client(*streams))
        return self._clients[-1]

    async def stop(self) -> None:
        await self.supervisor.cancel_all()
        for client in self._clients:
            client.writer.close()
        self.listener.stop_accepting()
        self.connections.take_no_more()
        await self.connections.stop()


class Client:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    def send(self, body: bytes) -> None:
        self.writer.write(framed(body))

    async def answer(self) -> bytes | None:
        """None if the connection is closed."""
        async with asyncio.timeout(PATIENCE_S):
            try:
                (length,) = struct.unpack(">i", await self.reader.readexactly(4))
                return await self.reader.readexactly(length)
            except (asyncio.IncompleteReadError, ConnectionResetError):
                return None

    async def take_some(self) -> None:
        """Read some bytes of a response."""
        async with asyncio.timeout(PATIENCE_S):
            assert await self.reader.read(10_000)

    async def is_served(self) -> bool:
        try:
            self.send(b"how are you")
        except ConnectionResetError:
            return False
        return await self.answer() is not None


Make = Callable[..., Place]


@pytest.fixture
async def make() -> AsyncIterator[Make]:
    places: list[Place] = []

    def one(**settings: int) -> Place:
        given = {"bucket_url": "memory://", "redis_url": "unix://none", **settings}
        places.append(Place(BrokerSettings.model_validate(given)))
        return places[-1]

    yield one
    for place in places:
        await place.stop()


async def started(place: Place) -> Place:
    place.connections.start()
    await place.listener.start()
    return place


async def test_one_address_has_its_connections_and_another_is_accepted(make: Make) -> None:
    place = await started(make(connections_per_address_max=3))
    mine = [await place.connect() for _ in range(3)]
    assert all([await client.is_served() for client in mine])
    assert not await (await place.connect()).is_served()
    assert await (await place.connect("127.0.0.2")).is_served()
    assert all([await client.is_served() for client in mine])
    assert place.figures.connections == 4


async def test_a_newcomer_takes_the_place_of_one_that_waits_for_nothing(make: Make) -> None:
    place = await started(make(connections_max=4))
    busy, first, second = [await place.connect() for _ in range(3)]
    bystander = await place.connect("127.0.0.2")
    busy.send(b"wait for me")
    for client in (first, second, bystander):
        assert await client.is_served()
    newcomer = await place.connect("127.0.0.3")
    assert await newcomer.is_served()
    assert await first.answer() is None, "of the address with most connections, the least active"
    for client in (second, bystander):
        assert await client.is_served()
    place.waiting[0][0].release()
    place.waiting[0][1].send([b"at last"])
    assert await busy.answer() == b"at last"


async def test_a_newcomer_is_refused_where_all_others_wait_for_an_answer(make: Make) -> None:
    place = await started(make(connections_max=2))
    busy = [await place.connect() for _ in range(2)]
    for client in busy:
        client.send(b"wait for me")
    await eventually_async(lambda: len(place.waiting) == 2)
    assert not await (await place.connect()).is_served()
    for frame, answer in place.waiting:
        frame.release()
        answer.send([b"at last"])
    assert [await client.answer() for client in busy] == [b"at last"] * 2


async def test_connections_without_requests_are_closed(make: Make) -> None:
    place = await started(make())
    idle, busy, active = [await place.connect() for _ in range(3)]
    busy.send(b"wait for me")
    for client in (idle, active):
        assert await client.is_served()
    place.now_s = IDLE_MS / 2000
    assert await active.is_served()
    place.now_s = IDLE_MS / 1000 + 1
    await eventually_async(lambda: len(place.waiting) == 1)
    place.connections.look()
    assert await idle.answer() is None
    assert await active.is_served()
    place.waiting[0][0].release()
    place.waiting[0][1].send([b"at last"])
    assert await busy.answer() == b"at last"
    await eventually_async(lambda: place.figures.connections == 2)


async def test_accepted_connections_are_probed_by_the_kernel(make: Make) -> None:
    place = make(connections_keepalive_ms=40_000)
    place.socket.listen()
    with socket.create_connection(place.socket.getsockname()):
        accepted, _ = place.socket.accept()
        with accepted:
            assert accepted.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
            if hasattr(socket, "TCP_KEEPIDLE"):
                assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 40
    place.socket.close()


ANNOUNCED = struct.pack(">ihh", 100 << 20, 0, 9)
"""The first bytes of a Produce request of 100 MiB."""


async def test_who_announces_much_and_sends_nothing_holds_nothing_and_is_closed(make: Make) -> None:
    place = await started(make())
    silent = [await place.connect() for _ in range(12)]
    for client in silent:
        client.writer.write(ANNOUNCED)
    bystander = await place.connect("127.0.0.2")
    for _ in range(3):
        bystander.send(b"\0\0" + b"p" * 1_000_000)
        assert await bystander.answer() is not None
    assert place.budget.held_bytes <= len(silent) * FIRST_BYTES
    place.now_s = 10.0
    place.connections.look()
    assert [await client.answer() for client in silent] == [None] * 12
    assert await bystander.is_served()
    await eventually_async(lambda: place.budget.held_bytes == 0)


async def test_slow_senders_of_several_addresses_give_way_to_a_bystander(make: Make) -> None:
    """The requests keep the minimum rate, and hold all the memory."""
    place = await started(make(produce_buffer_bytes=4 << 20))
    slow = [await place.connect(f"127.0.0.{number}") for number in range(10, 22)]
    for client in slow:
        client.writer.write(ANNOUNCED + b"." * 300_000)
    await eventually_async(lambda: place.budget.held_bytes > 3 << 20)
    bystander = await place.connect("127.0.0.2")
    bystander.send(b"\0\0" + b"p" * 1_000_000)
    answered = asyncio.create_task(bystander.answer())
    await eventually_async(lambda: answered.done() or place.budget.needed_bytes > 0)
    for _ in range(9):  # shorter than a window: no request is too slow by itself
        place.now_s += 1.0
        place.connections.look()
        for _ in range(200):
            await asyncio.sleep(0)
    assert answered.done(), "no slow sender gave way"
    assert await answered is not None


async def test_many_connections_that_send_three_bytes_are_closed(make: Make) -> None:
    place = await started(make())
    begun = [await place.connect() for _ in range(50)]
    for client in begun:
        client.writer.write(b"\0\0\0")
    await eventually_async(lambda: place.figures.connections == 50)
    bystander = await place.connect()
    place.now_s = 5.0
    assert await bystander.is_served()
    await asyncio.sleep(0)
    place.now_s = 11.0
    place.connections.look()
    assert [await client.answer() for client in begun] == [None] * 50
    assert await bystander.is_served()


async def test_clients_that_read_no_answers_hold_their_share_and_are_closed(make: Make) -> None:
    place = await started(make())
    greedy = [await place.connect() for _ in range(6)]
    for client in greedy:
        client.send(b"much, please")
    await eventually_async(lambda: place.made == 2)
    bystander = await place.connect("127.0.0.2")
    for _ in range(3):
        bystander.send(b"much, please")
        answer = await bystander.answer()
        assert answer is not None
        assert len(answer) == MUCH
    assert place.made == 5, "two of the greedy ones, three of the bystander"
    assert place.answers.held_bytes == 2 * MUCH
    place.connections.look()
    place.now_s = 31.0
    place.connections.look()
    await eventually_async(lambda: place.made == 7, "the next two of the greedy ones")
    place.connections.look()
    place.now_s = 62.0
    place.connections.look()
    await eventually_async(lambda: place.made == 9)
    for client in greedy[-2:]:
        answer = await client.answer()
        assert answer is not None
        assert len(answer) == MUCH
    await eventually_async(lambda: place.answers.held_bytes == 0)


async def test_steady_slow_readers_of_two_addresses_give_way_to_a_bystander(make: Make) -> None:
    """The slow readers hold all the memory, and take some bytes every second."""
    place = await started(make())
    slow = [await place.connect(f"127.0.0.{10 + number % 2}") for number in range(4)]
    for client in slow:
        client.send(b"much, please")
    await eventually_async(lambda: place.made == 4)
    for _ in range(40):
        place.now_s += 1.0
        for client in slow:
            await client.take_some()
        place.connections.look()
    assert place.answers.held_bytes == 4 * MUCH, "nobody waited"
    bystander = await place.connect("127.0.0.2")
    bystander.send(b"much, please")
    answered = asyncio.create_task(bystander.answer())
    await eventually_async(lambda: place.answers.needed_bytes > 0)
    for _ in range(2):
        place.now_s += 1.0
        for client in slow:
            await client.take_some()
        place.connections.look()
    for _ in range(200):
        await asyncio.sleep(0)
    assert place.answers.needed_bytes == 0, "no slow reader gave way"
    assert await answered is not None
    assert place.answers.held_bytes == 3 * MUCH, "only one of them gave way"
