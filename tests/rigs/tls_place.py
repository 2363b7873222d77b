"""An SSL listener in this process, with connections of the broker and a handler of the test's."""

import asyncio
import ssl

from bucketlog.stateless_broker.health import Health
from bucketlog.stateless_broker.network.answer_memory import AnswerLease
from bucketlog.stateless_broker.network.certificates import Certificates
from bucketlog.stateless_broker.network.connection import Connection
from bucketlog.stateless_broker.network.connection_owner import Entrance
from bucketlog.stateless_broker.network.exchange import Frame, ResponseSlot
from bucketlog.stateless_broker.network.incoming import RECEIVE_BYTES
from bucketlog.stateless_broker.network.listener import Listener, bound_socket
from bucketlog.stateless_broker.network.memory_budget import MemoryBudget
from bucketlog.stateless_broker.network.open_connections import OpenConnections
from bucketlog.stateless_broker.network.request_figures import RequestFigures
from bucketlog.stateless_broker.network.tls_channel import HandshakeLimit, TlsChannel
from bucketlog.stateless_broker.settings.broker import BrokerSettings
from tests.rigs.certificate_authority import Authority, KeyPair

MUCH = 24 << 20
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class TlsPlace:
    """An SSL listener whose handler echoes requests, and answers `much` with `MUCH` bytes."""

    def __init__(self, root: Authority, **settings: object) -> None:
        self.root, issued = root, root.issue("server")
        given: dict[str, object] = {
            "bucket_url": "memory://",
            "listeners": "SSL://127.0.0.1:0",
            "ssl_certificate_file": issued.certificate,
            "ssl_key_file": issued.key,
            "ssl_ca_file": root.file,
        }
        self.settings = BrokerSettings.model_validate(given | settings)
        self.figures = RequestFigures(slow_request_ms=0)
        self.answers = MemoryBudget(2 * MUCH, address_percent_max=100)
        self.seen: list[Connection] = []
        self.holds = False
        """Whether requests wait in `held`."""
        self.held: list[ResponseSlot] = []
        self.certificates = Certificates(self.settings, Health(), now_s=lambda: 0.0)
        self.connections = OpenConnections(
            settings=self.settings,
            handler=self._handle,
            budget=MemoryBudget(2 * MUCH, address_percent_max=100),
            answers=self.answers,
            figures=self.figures,
        )
        received = memoryview(bytearray(RECEIVE_BYTES))
        limit = HandshakeLimit(self.settings.ssl_handshake_ms_max)
        self.socket = bound_socket("127.0.0.1", 0, keepalive_ms=60_000)
        self.listener = Listener(
            Entrance("SSL"),
            self.socket,
            self.connections,
            backlog=100,
            secure=lambda one: TlsChannel(one, self.certificates, limit, received),
        )
        self._writers: list[asyncio.StreamWriter] = []

    def _handle(self, connection: Connection, frame: Frame, answer: ResponseSlot) -> None:
        self.seen.append(connection)
        data = bytes(frame.data)
        frame.release()
        if self.holds:
            self.held.append(answer)
            return
        if data.startswith(b"much"):
            lease = AnswerLease(self.answers, connection.host)
            assert self.answers.take(MUCH, address=connection.host)
            lease.held_bytes = MUCH
            answer.lease = lease
            data = bytes(MUCH)
        answer.send([data])

    async def start(self) -> "TlsPlace":
        await self.certificates.start()
        self.connections.start()
        await self.listener.start()
        return self

    @property
    def port(self) -> int:
        return int(self.socket.getsockname()[1])

    def trust(self, issued: KeyPair | None = None) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=str(self.root.file))
        if issued is not None:
            context.load_cert_chain(issued.certificate, issued.key)
        return context

    async def connect(self, context: ssl.SSLContext | None) -> Streams:
        streams = await asyncio.open_connection("127.0.0.1", self.port, ssl=context)
        self._writers.append(streams[1])
        return streams

    async def stop(self) -> None:
        for writer in self._writers:
            writer.transport.abort()
        self.listener.stop_accepting()
        self.connections.take_no_more()
        await self.connections.stop()


class SealedClient:
    """A client whose encrypted bytes a test hands to a channel by itself, in the portions that it
    chooses. The handshake and the broker's bytes go through the socket."""

    def __init__(self, place: TlsPlace) -> None:
        self._place = place
        self._from_broker, self._to_broker = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = place.trust().wrap_bio(
            self._from_broker, self._to_broker, server_hostname="localhost"
        )

    async def shake_hands(self) -> None:
        reader, writer = await self._place.connect(None)
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                writer.write(self._to_broker.read())
                self._from_broker.write(await reader.read(RECEIVE_BYTES))
            else:
                writer.write(self._to_broker.read())
                return

    def seal(self, data: bytes) -> bytes:
        self._tls.write(data)
        return self._to_broker.read()


def deliver(channel: TlsChannel, encrypted: bytes) -> None:
    """As if the kernel had received all of it at once."""
    channel.get_buffer(-1)[: len(encrypted)] = encrypted
    channel.buffer_updated(len(encrypted))
