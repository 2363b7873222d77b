"""A substitute for Redis that counts connections and holds answers back."""

import asyncio

PONG = b"+PONG\r\n"


class StandInRedis:
    """Answers each request with PONG, unless answers are held. `accepted` counts connections.
    `asked` is released by each request, and `left` by each connection that a client has closed."""

    def __init__(self, *, holds: bool = False) -> None:
        self.port = 0
        self.accepted = 0
        self.asked = asyncio.Semaphore(0)
        self.left = asyncio.Semaphore(0)
        self._holds = holds
        self._waiting: list[asyncio.StreamWriter] = []
        self._open: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        self._open.add(writer)
        while await reader.read(1000):
            if self._holds:
                self._waiting.append(writer)
            else:
                writer.write(PONG)
            self.asked.release()
        self._open.discard(writer)
        writer.close()
        self.left.release()

    def hold(self) -> None:
        """Hold answers back until `answer`."""
        self._holds = True

    def answer(self) -> None:
        """Send the answers that are held, and hold no more."""
        self._holds = False
        for writer in self._waiting:
            if writer in self._open:
                writer.write(PONG)
        self._waiting.clear()

    def close_connections(self) -> None:
        for writer in self._open:
            writer.write_eof()

    def stop(self) -> None:
        assert self._server is not None
        self._server.close()
