"""A proxy in front of an S3 server whose answers to PUTs are wrong, late, or for another delivery.

Invariant: a PUT is delivered with the bytes that were sent, or not at all. A sender that gets 503
does not know what became of its PUT.
"""

import asyncio
from collections.abc import Callable
from enum import StrEnum

from localstack.slow_puts import SlowPuts, constant
from tests.rigs.patience import let_pass_async

UNAVAILABLE = b"<Error><Code>SlowDown</Code><Message>injected</Message></Error>"
ANSWER = (
    b"HTTP/1.1 503 Slow Down\r\nContent-Type: application/xml\r\n"
    b"Content-Length: %d\r\n\r\n%b" % (len(UNAVAILABLE), UNAVAILABLE)
)


class PutFate(StrEnum):
    """LOST: answered 503, never delivered. DELIVERED: delivered, then answered 503. LATE: answered
    503, delivered `late_s` afterwards. TWICE: delivered twice, one after the other; the second
    delivery's answer is passed on."""

    PASSED = "passed"
    LOST = "lost"
    DELIVERED = "delivered"
    LATE = "late"
    TWICE = "twice"


class PutFaults(SlowPuts):
    """`fate` decides about each PUT by its path; the default passes all."""

    def __init__(self, endpoint_url: str) -> None:
        super().__init__(endpoint_url, constant(0))
        self.fate: Callable[[str], PutFate] = lambda path: PutFate.PASSED
        self.late_s = 3.0
        self.fates = dict.fromkeys(PutFate, 0)
        """How many PUTs had each fate."""
        self._late: set[asyncio.Task[None]] = set()

    async def intercepted(self, path: str, request: bytes, writer: asyncio.StreamWriter) -> bool:
        fate = self.fate(path)
        self.fates[fate] += 1
        match fate:
            case PutFate.PASSED:
                return False
            case PutFate.TWICE:
                await self._deliver(request)
                return False
            case PutFate.DELIVERED:
                await self._deliver(request)
            case PutFate.LATE:
                late = asyncio.create_task(self._deliver_late(request))
                self._late.add(late)
                late.add_done_callback(self._late.discard)
            case PutFate.LOST:
                pass
        writer.write(ANSWER)
        await writer.drain()
        return True

    async def _deliver_late(self, request: bytes) -> None:
        await let_pass_async(self.late_s)
        await self._deliver(request)

    async def _deliver(self, request: bytes) -> None:
        """On a connection of its own, until the server has answered."""
        reader, writer = await asyncio.open_connection(*self.server)
        try:
            writer.write(request)
            await writer.drain()
            await reader.readuntil(b"\r\n\r\n")
        finally:
            writer.close()
