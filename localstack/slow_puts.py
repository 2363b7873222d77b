"""A proxy in front of an S3 server that holds each PUT back for as long as it is told.

Invariant: bytes pass unchanged (a signed request stays one). A PUT is held when the whole of it has
come, before the server sees any of it: it is in flight for its sender, and does not exist for
others. Other requests pass at once. Requests of one connection come one after the other, as those
of every S3 client do. `whole_put` makes the delay that of the whole PUT, from its first byte to its
answer, as a sender sees it: it is held for what the server's usual time leaves of it.
"""

import asyncio
import contextlib
import math
import random
import statistics
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

Delay = Callable[[str], float]
"""From a PUT's path to the seconds for which it is held."""

_READ_BYTES = 1 << 20
_HEAD_BYTES_MAX = 1 << 16
_SERVER_TIMES = 32
NORMAL_P99 = 2.326
"""The 99th percentile of the normal distribution, in standard deviations."""


def log_normal(p50_ms: float, p99_ms: float, *, seed: int) -> Delay:
    source = random.Random(seed)
    mu = math.log(p50_ms)
    sigma = (math.log(p99_ms) - mu) / NORMAL_P99
    return lambda path: source.lognormvariate(mu, sigma) / 1000


def constant(seconds: float) -> Delay:
    return lambda path: seconds


@dataclass(slots=True)
class _Moment:
    """When a connection's PUT was passed on; None: it has been answered."""

    at: float | None = None


class SlowPuts:
    """The proxy, in a thread of its own while the `with` block lasts. `delay` may be replaced."""

    def __init__(self, endpoint_url: str, delay: Delay, *, whole_put: bool = False) -> None:
        parts = urlsplit(endpoint_url)
        assert parts.hostname is not None
        assert parts.port is not None
        self.delay = delay
        self.puts = 0
        self.held = 0
        """PUTs that are held now."""
        self.endpoint_url = ""
        self._whole_put = whole_put
        self._server_times_s: deque[float] = deque([0.0], maxlen=_SERVER_TIMES)
        self._changed = threading.Condition()
        self.server = (parts.hostname, parts.port)
        self._loop = asyncio.new_event_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._run, name="slow-puts", daemon=True)
        self._listening = threading.Event()
        self._stopping = asyncio.Event()

    def wait_for_held(self, timeout_s: float) -> bool:
        """Until a PUT is held; False where none is for so long."""
        with self._changed:
            return self._changed.wait_for(lambda: self.held > 0, timeout_s)

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
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0, limit=_READ_BYTES)
        host, port = server.sockets[0].getsockname()
        self.endpoint_url = f"http://{host}:{port}"
        self._listening.set()
        async with server:
            await self._stopping.wait()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._relay(reader, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # one of the two is gone, or the proxy stops
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server_reader, server_writer = await asyncio.open_connection(
            *self.server, limit=_READ_BYTES
        )
        passed_on = _Moment()
        answers = asyncio.create_task(self._answer(server_reader, writer, passed_on))
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                begun = time.perf_counter()
                assert len(head) < _HEAD_BYTES_MAX
                body = await reader.readexactly(_content_length(head))
                method, path, _ = head.split(b" ", 2)
                if method == b"PUT":
                    await self._hold(path.decode(), begun)
                    if await self.intercepted(path.decode(), head + body, writer):
                        continue
                    passed_on.at = time.perf_counter()
                server_writer.write(head)
                server_writer.write(body)
                await server_writer.drain()
        finally:
            answers.cancel()
            server_writer.close()

    async def intercepted(self, path: str, request: bytes, writer: asyncio.StreamWriter) -> bool:
        """True if a subclass has answered this PUT; then it is not passed on."""
        return False

    async def _answer(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, passed_on: "_Moment"
    ) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(_READ_BYTES):
                if passed_on.at is not None:
                    self._server_times_s.append(time.perf_counter() - passed_on.at)
                    passed_on.at = None
                writer.write(data)
                await writer.drain()
            writer.close()

    async def _hold(self, path: str, begun: float) -> None:
        self.puts += 1
        self._count_held(1)
        delay_s = self.delay(path)
        if self._whole_put:
            delay_s -= time.perf_counter() - begun + statistics.median(self._server_times_s)
        try:
            await asyncio.sleep(max(0.0, delay_s))
        finally:
            self._count_held(-1)

    def _count_held(self, change: int) -> None:
        with self._changed:
            self.held += change
            self._changed.notify_all()


def _content_length(head: bytes) -> int:
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
        assert name.lower() != b"transfer-encoding", "S3 clients here say how long a body is"
    return 0
