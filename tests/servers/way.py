"""A way to a server that a test breaks as networks and servers break.

Invariant: bytes pass unchanged and in order, or not at all. What was held in a black hole arrives
when that is over, however late, unless its connection is gone: nothing that was sent is safe from
being carried out afterwards.
"""

import asyncio
import threading
from collections.abc import Coroutine
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.rigs.patience import PATIENCE_S, let_pass_async

ANY_PORT = ("127.0.0.1", 0)
_READ_BYTES = 1 << 16


class State(StrEnum):
    """OPEN: everything passes. BLACK_HOLE: connections are accepted, but nothing passes. DEAF:
    requests pass, but answers do not. MUTE: answers pass, but requests do not. CLOSED: connections
    are refused, and open ones are closed."""

    OPEN = "open"
    DEAF = "deaf"
    MUTE = "mute"
    BLACK_HOLE = "black hole"
    CLOSED = "closed"


class Way:
    """From a socket of its own to `server`, each a path or a TCP address, in a thread of its own
    while the `with` block lasts. Every answer comes `delay_s` late. `recorded` is what was sent to
    the server, by connection, while `recording`; what it holds may begin in the middle."""

    def __init__(self, server: Path | tuple[str, int], listen: Path | tuple[str, int]) -> None:
        self.delay_s = 0.0
        self.connections = 0
        """How many were made so far."""
        self.recording = False
        self.recorded: list[bytearray] = []
        self.address = listen
        """Where it listens; of port 0 the port that was given."""
        self._server = server
        self._listening: asyncio.Server | None = None
        self._passing = asyncio.Event()
        self._answering = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._alive: set[asyncio.Event] = set()
        """Of each connection that is not half open."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="way", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self.be(State.OPEN)
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.be(State.CLOSED)
        self.break_connections()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def be(self, state: State) -> None:
        """From now on; returns when it is so."""
        self._run(self._be(state))

    @property
    def port(self) -> int:
        """Of a TCP address."""
        assert not isinstance(self.address, Path)
        return self.address[1]

    def lead_to(self, server: Path | tuple[str, int]) -> None:
        """Another server from now on; the connections to the one before are broken."""
        self._server = server
        self.break_connections()

    def half_open(self) -> None:
        """Nothing passes on the existing connections, which stay open. New connections work."""
        self._run(self._orphan())

    async def _orphan(self) -> None:
        for connection in self._alive:
            connection.clear()
        self._alive.clear()

    def break_connections(self) -> None:
        self._run(self._end_connections())

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE_S)

    async def _be(self, state: State) -> None:
        for event, passing in (
            (self._passing, state in (State.OPEN, State.DEAF)),
            (self._answering, state in (State.OPEN, State.MUTE)),
        ):
            if passing:
                event.set()
            else:
                event.clear()
        if state is State.CLOSED:
            if self._listening is not None:
                await self._stop_accepting(self._listening)
                self._listening = None
            await self._end_connections()
        elif self._listening is None:
            await self._listen()

    async def _listen(self) -> None:
        if isinstance(self.address, Path):
            self.address.unlink(missing_ok=True)
            self._listening = await asyncio.start_unix_server(self._connected, self.address)
            return
        host, port = self.address
        self._listening = await asyncio.start_server(self._connected, host, port)
        self.address = host, self._listening.sockets[0].getsockname()[1]

    async def _stop_accepting(self, listening: asyncio.Server) -> None:
        """A connection that is just being accepted gets a transport first: in a server that is
        closed, asyncio would neither serve the connection nor close its socket."""
        for listener in listening.sockets:
            self._loop.remove_reader(listener)
        await asyncio.sleep(0)
        listening.close()

    async def _end_connections(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)  # their sockets are closed then

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._listening is None:  # it was under way when the way was closed
            writer.transport.abort()
            return
        self.connections += 1
        task = self._loop.create_task(self._relay(reader, writer))
        self._tasks.add(task)

        def over(task: "asyncio.Task[None]") -> None:
            self._tasks.discard(task)
            writer.transport.abort()
            _whatever_came_of_it(task)

        task.add_done_callback(over)

    async def _open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if isinstance(self._server, Path):
            return await asyncio.open_unix_connection(self._server)
        return await asyncio.open_connection(*self._server)

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._passing.wait()
        if reader.at_eof():  # it has not waited for so long
            return
        opening = asyncio.create_task(self._open())
        try:
            from_server, to_server = await asyncio.shield(opening)
        except asyncio.CancelledError:
            (await opening)[1].transport.abort()
            raise
        alive = asyncio.Event()
        alive.set()
        self._alive.add(alive)
        both = [
            asyncio.create_task(self._pass_on(reader, to_server, alive, requests=bytearray())),
            asyncio.create_task(self._pass_on(from_server, writer, alive)),
        ]
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._alive.discard(alive)
            to_server.transport.abort()
            for one in both:
                one.add_done_callback(_whatever_came_of_it)
                one.cancel()

    async def _pass_on(
        self,
        source: asyncio.StreamReader,
        target: asyncio.StreamWriter,
        alive: asyncio.Event,
        *,
        requests: bytearray | None = None,
    ) -> None:
        while data := await source.read(_READ_BYTES):
            if requests is None and self.delay_s:
                await let_pass_async(self.delay_s)
            await (self._answering if requests is None else self._passing).wait()
            await alive.wait()
            if requests is not None and self.recording:
                self._record(requests, data)
            target.write(data)
            await target.drain()

    def _record(self, requests: bytearray, data: bytes) -> None:
        if not requests:
            self.recorded.append(requests)
        requests += data


def _whatever_came_of_it(task: "asyncio.Task[None]") -> None:
    """One of the two ends is gone, or the test breaks it."""
    if not task.cancelled():
        task.exception()
