"""Sends a run's requests over several connections, and judges every answer.

Requests that a broker has to answer are sent together, several at once on a connection. Each of the
others is sent alone, followed by a request that shows whether the connection survived.
"""

import asyncio
import struct
from collections import Counter, deque
from dataclasses import dataclass, field

from bucketlog.log_format.wire.api_keys import ApiKey
from tests.fuzz.judge import FuzzFailureError, Judge, Sent, sent_in
from tests.fuzz.requests import Frame, Generator
from tests.fuzz.sequences import SCRIPTS, frame_of
from tests.rigs.patience import PATIENCE_S

CONNECTIONS = 16
CHUNK = 12
SEQUENCE_EVERY = 4
"""One of this many chunks is a script."""
RECENT_FRAMES = 3000
WAIT_S = 0.05
"""Requests that may wait for others are given up after this time."""
PROBE_ID = 0x5EED5EED
PROBE = struct.pack(">ihhih", 10, ApiKey.API_VERSIONS, 0, PROBE_ID, -1)
SENT_PROBE = Sent(ApiKey.API_VERSIONS, 0, PROBE_ID)
CLOSED = (ConnectionError, asyncio.IncompleteReadError)


@dataclass
class Tally:
    """`outcomes` counts requests by kind and by "answered", "closed" or "given up"."""

    requests: int = 0
    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)
    apis: Counter[ApiKey] = field(default_factory=Counter)
    recent: deque[Frame] = field(default_factory=lambda: deque(maxlen=RECENT_FRAMES))

    def sent(self, frame: Frame, outcome: str) -> None:
        self.requests += 1
        self.outcomes[frame.kind, outcome] += 1
        self.apis[frame.key] += 1

    def by_outcome(self) -> Counter[str]:
        found: Counter[str] = Counter()
        for (_, outcome), number in self.outcomes.items():
            found[outcome] += number
        return found


class FuzzConnection:
    """A connection that is opened when needed, also after the broker or this driver closed it."""

    def __init__(self, address: tuple[str, int], judge: Judge, tally: Tally) -> None:
        self._address = address
        self._judge = judge
        self._tally = tally
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def _open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._reader is None or self._writer is None:
            self._reader, self._writer = await asyncio.open_connection(*self._address)
        return self._reader, self._writer

    def close(self) -> None:
        if self._writer is not None:
            self._writer.transport.abort()
        self._reader = self._writer = None

    async def _read(self) -> bytes:
        assert self._reader is not None
        (length,) = struct.unpack(">i", await self._reader.readexactly(4))
        return await self._reader.readexactly(length)

    async def exchange(self, frames: list[Frame]) -> None:
        """Send well-formed requests together; the broker must answer each."""
        if not frames:
            return
        _, writer = await self._open()
        self._tally.recent.extend(frames)
        writer.write(b"".join(frame.data for frame in frames))
        for frame in frames:
            await self._await_answer(frame)

    async def _await_answer(self, frame: Frame) -> bytes:
        try:
            async with asyncio.timeout(PATIENCE_S):
                answer = await self._read()
        except CLOSED as error:
            raise FuzzFailureError(f"closed instead of an answer: {error!r}", frame) from error
        except TimeoutError as error:
            raise FuzzFailureError(f"no answer within {PATIENCE_S:.0f} s", frame) from error
        expected = [Sent(frame.key, frame.version, frame.correlation_id)]
        self._judge.match(expected, answer, frame)
        self._tally.sent(frame, "answered")
        return answer

    async def step(self, frame: Frame) -> bytes | None:
        """Send one request of a sequence. None: there was no answer, or the request was not
        well-formed."""
        if not frame.well_formed or frame.silent:
            await self.dare(frame)
            return None
        _, writer = await self._open()
        self._tally.recent.append(frame)
        writer.write(frame.data)
        if not frame.waits:
            return await self._await_answer(frame)
        try:
            return await asyncio.wait_for(self._await_answer(frame), WAIT_S)
        except TimeoutError:
            self._tally.sent(frame, "given up")
            self.close()
            return None

    async def dare(self, frame: Frame) -> None:
        """Send a request that the broker need not answer."""
        _, writer = await self._open()
        self._tally.recent.append(frame)
        stream = frame.data + PROBE
        expected, complete = sent_in(stream)
        may_wait = frame.waits or any(sent.may_wait for sent in expected)
        # An error of a Produce with acks=0 may close the connection at any later time.
        may_close_later = frame.silent and any(sent.key is ApiKey.PRODUCE for sent in expected)
        try:
            writer.write(stream if complete else frame.data)
            if not complete:
                writer.write_eof()
            async with asyncio.timeout(WAIT_S if may_wait else PATIENCE_S):
                outcome = await self._fate(expected, frame)
        except (*CLOSED, OSError):
            outcome = "closed"
        except TimeoutError as error:
            if not may_wait:
                raise FuzzFailureError("neither answered nor closed", frame) from error
            outcome = "given up"
        if outcome != "answered" or not complete or may_close_later:
            self.close()
        self._tally.sent(frame, outcome)

    async def _fate(self, expected: list[Sent], frame: Frame) -> str:
        """Raises `IncompleteReadError` once the broker has closed the connection."""
        while True:
            found = self._judge.match(expected, await self._read(), frame)
            if found == SENT_PROBE and not expected:
                return "answered"


class Driver:
    """Sends requests of `generator`, from number `first` on, until `count` are sent."""

    def __init__(
        self, address: tuple[str, int], generator: Generator, count: int, *, first: int = 0
    ) -> None:
        self.judge = Judge()
        self.tally = Tally()
        self._address = address
        self._generator = generator
        self._count = count
        self._next = first

    @property
    def is_done(self) -> bool:
        return self.tally.requests >= self._count

    def _numbers(self, count: int) -> range:
        self._next += count
        return range(self._next - count, self._next)

    async def run(self) -> None:
        """Run until all requests are sent. Raises `FuzzFailureError`."""
        tasks = [asyncio.ensure_future(self._keep_sending()) for _ in range(CONNECTIONS)]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    async def send_alone(self, frame: Frame) -> None:
        connection = FuzzConnection(self._address, self.judge, self.tally)
        try:
            if frame.well_formed and not (frame.silent or frame.waits):
                await connection.exchange([frame])
            else:
                await connection.dare(frame)
        finally:
            connection.close()

    async def _keep_sending(self) -> None:
        connection = FuzzConnection(self._address, self.judge, self.tally)
        chunks = 0
        try:
            while not self.is_done:
                chunks += 1
                if chunks % SEQUENCE_EVERY == 0:
                    await self._play(connection)
                else:
                    await self._chunk(connection)
        finally:
            connection.close()

    async def _chunk(self, connection: FuzzConnection) -> None:
        frames = [self._generator.frame(number) for number in self._numbers(CHUNK)]
        safe = [
            frame for frame in frames if frame.well_formed and not (frame.silent or frame.waits)
        ]
        await connection.exchange(safe)
        for frame in frames:
            if not frame.well_formed or frame.silent or frame.waits:
                await connection.dare(frame)

    async def _play(self, connection: FuzzConnection) -> None:
        """Run a script; all its requests have its number."""
        (number,) = self._numbers(1)
        random = self._generator.random(number)
        world = self._generator.world
        script = random.choice(SCRIPTS)(random, world)
        answer = None
        try:
            step = next(script)
            while True:
                frame = frame_of(number, random, world, step)
                data = await connection.step(frame)
                answer = data and self.judge.decoded(frame.key, frame.version, data, frame)
                step = script.send(answer)
        except StopIteration:
            return
