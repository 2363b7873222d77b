"""Sends exports.

Invariants: the number of exports in memory is bounded, also if clients read exports slowly. A
client that does not read an export in time loses its connection.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.types import Send

from bucketlog.console.message_export import MessageFile
from bucketlog.console.page_threads import PagesBusyError

CHUNK_BYTES = 64 * 1024


class ExportSlots:
    """The slots that bound the number of exports in memory. One event loop may use an instance."""

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._free = asyncio.Semaphore(slots)

    @asynccontextmanager
    async def one(self, *, wait_s: float) -> AsyncIterator[None]:
        """Hold a slot. Raises `PagesBusyError` if no slot is free after `wait_s`."""
        try:
            await asyncio.wait_for(self._free.acquire(), wait_s)
        except TimeoutError:
            raise PagesBusyError(
                f"{self._slots} other exports are being computed or sent",
                remedy="try again, or raise BUCKETLOG_CONSOLE_EXPORTS_IN_FLIGHT_MAX",
            ) from None
        try:
            yield
        finally:
            self._free.release()


async def send_export(export: MessageFile, send: Send, *, send_s: float) -> None:
    """Send the file in chunks. After `send_s` the response stays incomplete, so that the server
    closes the connection and the client sees that the file is cut."""
    headers = {
        "content-type": export.content_type,
        "content-length": str(len(export.body)),
        "content-disposition": f'attachment; filename="{export.name}"',
        **export.headers,
    }
    pairs = [(name.encode(), text.encode()) for name, text in headers.items()]
    try:
        async with asyncio.timeout(send_s):
            await send({"type": "http.response.start", "status": 200, "headers": pairs})
            for at in range(0, len(export.body), CHUNK_BYTES):
                chunk = bytes(export.body[at : at + CHUNK_BYTES])
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
    except TimeoutError:
        return
