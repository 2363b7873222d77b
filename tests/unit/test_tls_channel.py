"""TLS on a real socket: what is bounded before and after the handshake, and what is refused."""

import asyncio
import logging
import socket
import ssl
import struct
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import cast

import pytest

from bucketlog.stateless_broker.network.connection import ANONYMOUS, Connection
from bucketlog.stateless_broker.network.incoming import RECEIVE_BYTES
from bucketlog.stateless_broker.network.tls_channel import TlsChannel
from tests.rigs.certificate_authority import Authority, rfc4514
from tests.rigs.fake_wire import framed
from tests.rigs.patience import PATIENCE_S, eventually_async
from tests.rigs.tls_place import MUCH, SealedClient, Streams, TlsPlace, deliver


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


Make = Callable[..., Awaitable[TlsPlace]]


@pytest.fixture
async def make(root: Authority) -> AsyncIterator[Make]:
    places: list[TlsPlace] = []

    async def one(**settings: object) -> TlsPlace:
        places.append(TlsPlace(root, **settings))
        return await places[-1].start()

    yield one
    for place in places:
        await place.stop()


def parts(connection: Connection) -> tuple[TlsChannel, asyncio.Transport]:
    """The channel, and the socket's transport."""
    channel = connection._transport
    assert isinstance(channel, TlsChannel)
    assert channel._raw is not None
    return channel, channel._raw


def pause_reading(writer: asyncio.StreamWriter) -> asyncio.Transport:
    transport = cast(asyncio.Transport, writer.transport)
    transport.pause_reading()
    return transport


def _has(place: TlsPlace, connections: int) -> bool:
    return place.figures.connections == connections


def _has_held(place: TlsPlace, count: int) -> bool:
    return len(place.held) == count


async def echo(streams: Streams, body: bytes) -> bytes:
    reader, writer = streams
    writer.write(framed(body))
    return await answer(reader)


async def answer(reader: asyncio.StreamReader) -> bytes:
    async with asyncio.timeout(PATIENCE_S):
        (length,) = struct.unpack(">i", await reader.readexactly(4))
        return await reader.readexactly(length)


async def closed(reader: asyncio.StreamReader) -> None:
    """The broker has closed the connection."""
    async with asyncio.timeout(PATIENCE_S):
        try:
            while await reader.read(10_000):
                pass
        except (ConnectionError, ssl.SSLError):
            pass


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_requests_of_any_size(make: Make, version: ssl.TLSVersion) -> None:
    place = await make()
    context = place.trust()
    context.minimum_version = context.maximum_version = version
    streams = await place.connect(context)
    for size in (10, 16_384, 70_000, 3_000_000):
        body = b"much"[::-1] + bytes(size)
        assert await echo(streams, body) == body
    assert {one.principal for one in place.seen} == {ANONYMOUS}
    assert {one.listener for one in place.seen} == {"SSL"}


async def test_unsent_bytes_count_until_the_kernel_has_them(make: Make) -> None:
    """A client that does not read holds the memory of its response, and gives it back at once."""
    place = await make()
    reader, writer = await place.connect(place.trust())
    transport = pause_reading(writer)
    writer.write(framed(b"much, please"))
    await eventually_async(lambda: bool(place.seen))
    (connection,) = place.seen
    await eventually_async(lambda: 0 < connection.unsent_bytes < MUCH)
    assert place.answers.held_bytes == MUCH
    assert connection.held_bytes == MUCH
    transport.resume_reading()
    assert len(await answer(reader)) == MUCH
    await eventually_async(lambda: place.answers.held_bytes == 0)
    assert connection.unsent_bytes == 0
    assert await echo((reader, writer), b"and another") == b"and another"


async def test_unsent_bytes_count_before_they_are_encrypted(make: Make) -> None:
    """Also while the socket's transport has no byte left, and has not yet said so."""
    place = await make()
    place.holds = True
    reader, writer = await place.connect(place.trust())
    writer.write(framed(b"a request"))
    await eventually_async(lambda: len(place.held) == 1)
    (connection,) = place.seen
    channel, raw = parts(connection)
    channel.pause_writing()
    place.held[0].send([bytes(100_000)])
    await eventually_async(lambda: not connection._answers)
    assert raw.get_write_buffer_size() == 0
    assert connection.unsent_bytes == 100_004
    channel.resume_writing()
    assert len(await answer(reader)) == 100_000
    await eventually_async(lambda: connection.unsent_bytes == 0)


async def test_a_response_is_encrypted_as_the_kernel_takes_it(make: Make) -> None:
    place = await make()
    _, writer = await place.connect(place.trust())
    pause_reading(writer)
    writer.write(framed(b"much, please"))
    await eventually_async(lambda: bool(place.seen) and place.seen[0].unsent_bytes > 0)
    _, raw = parts(place.seen[0])
    assert raw.get_write_buffer_size() <= 300_000


async def test_a_client_s_certificate_names_it(make: Make, root: Authority) -> None:
    place = await make(
        ssl_client_auth="required", ssl_principal_mapping_rules="RULE:^CN=(.*?),.*$/$1/U"
    )
    known = root.issue("known", rfc4514("CN=ann,OU=readers"))
    assert await echo(await place.connect(place.trust(known)), b"hello !!") == b"hello !!"
    assert place.seen[-1].principal == "User:ANN"
    nameless = root.issue("nameless", rfc4514("OU=readers"))
    reader, _ = await place.connect(place.trust(nameless))
    await closed(reader)
    assert place.figures.closed["ssl_principal_mapping_rules"] == 1


@pytest.mark.parametrize("client_auth", ["none", "requested", "required"])
async def test_who_must_show_a_certificate(
    make: Make, root: Authority, tmp_path: Path, client_auth: str
) -> None:
    place = await make(ssl_client_auth=client_auth)
    known, foreign = root.issue("known", rfc4514("CN=ann")), Authority(tmp_path).issue("foreign")
    served = {}
    for name, issued in {"known": known, "foreign": foreign, "none": None}.items():
        try:
            served[name] = await echo(await place.connect(place.trust(issued)), b"hello !!")
        except (ssl.SSLError, ConnectionError, asyncio.IncompleteReadError) as error:
            served[name] = type(error).__name__.encode()
    ok = b"hello !!"
    assert (served["known"] == ok, served["foreign"] == ok, served["none"] == ok) == {
        "none": (True, True, True),
        "requested": (True, False, True),
        "required": (True, False, False),
    }[client_auth]
    principal = "User:ANONYMOUS" if client_auth == "none" else "User:CN=ann"
    assert place.seen[0].principal == principal


async def test_a_refused_client_is_told_why(make: Make) -> None:
    """By TLS's alert, before the connection ends."""
    place = await make(ssl_client_auth="required")
    reader, writer = await place.connect(place.trust())
    with pytest.raises(ssl.SSLError, match="CERTIFICATE_REQUIRED"):
        await echo((reader, writer), b"hello !!")


async def test_plain_text_at_a_tls_port(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    place = await make()
    for garbage in (framed(b"a request"), b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x00\x05aaaaa"):
        reader, writer = await place.connect(None)
        writer.write(garbage)
        await closed(reader)
    assert place.figures.connections == 0
    assert not place.seen
    assert "TLS handshake failed" in caplog.text
    assert "Traceback" not in caplog.text
    assert not [record for record in caplog.records if record.levelno > logging.INFO]


async def test_a_handshake_that_stops_half_way(make: Make) -> None:
    place = await make(ssl_handshake_ms_max=50)
    hello = ssl.MemoryBIO()
    with pytest.raises(ssl.SSLWantReadError):
        place.trust().wrap_bio(ssl.MemoryBIO(), hello, server_hostname="localhost").do_handshake()
    for sent in (b"", hello.read(100)):
        reader, writer = await place.connect(None)
        writer.write(sent)
        await closed(reader)
    assert place.figures.closed["ssl_handshake_ms_max"] == 2
    assert await echo(await place.connect(place.trust()), b"hello !!") == b"hello !!"
    assert place.figures.closed["ssl_handshake_ms_max"] == 2


async def test_connections_count_before_their_handshake(make: Make) -> None:
    place = await make(connections_per_address_max=3)
    for number in range(3):
        await place.connect(None)
        await eventually_async(partial(_has, place, number + 1))
    reader, _ = await place.connect(None)
    await closed(reader)
    assert place.figures.closed == {"connections_per_address_max": 1}


async def test_a_handshake_gives_way_to_a_new_connection(make: Make) -> None:
    place = await make(connections_max=2)
    silent = [(await place.connect(None))[0] for _ in range(2)]
    await eventually_async(lambda: place.figures.connections == 2)
    assert await echo(await place.connect(place.trust()), b"hello !!") == b"hello !!"
    await closed(silent[0])


async def test_a_client_that_goes_amid_the_handshake_costs_no_line(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    place = await make()
    _, writer = await place.connect(None)
    await eventually_async(lambda: place.figures.connections == 1)
    writer.close()
    await eventually_async(lambda: place.figures.connections == 0)
    assert not caplog.records


async def test_bytes_are_not_decrypted_ahead_of_what_is_wanted(make: Make) -> None:
    """While requests wait, their bytes stay encrypted, and the socket is not read."""
    place = await make(requests_in_flight=1)
    place.holds = True
    reader, writer = await place.connect(place.trust())
    for _ in range(200):
        writer.write(framed(bytes(10_000)))
    await eventually_async(lambda: bool(place.seen))
    connection = place.seen[0]
    channel, _ = parts(connection)
    await eventually_async(lambda: not channel._is_reading)
    assert connection.incoming.left_bytes <= RECEIVE_BYTES
    assert channel._incoming.pending <= RECEIVE_BYTES
    for number in range(200):
        await eventually_async(partial(_has_held, place, number + 1))
        place.held[number].send([b"done"])
        assert await answer(reader) == b"done"


async def test_what_follows_the_last_wanted_request_stays_encrypted(make: Make) -> None:
    """The end of a large request and three more come in one portion."""
    place = await make(requests_in_flight=1)
    place.holds = True
    client = SealedClient(place)
    await client.shake_hands()
    await eventually_async(lambda: place.figures.connections == 1)
    (connection,) = place.connections._connections
    channel, _ = parts(connection)
    await eventually_async(lambda: channel._is_open)
    large, small = framed(bytes(50_000)), framed(bytes(10_000))
    deliver(channel, client.seal(large[:20_000]))
    deliver(channel, client.seal(large[20_000:] + 3 * small))
    assert len(place.held) == 1
    assert connection.incoming.left_bytes == 0
    assert channel._incoming.pending + channel._tls.pending() >= 3 * len(small) - 16_384
    for number in range(4):
        await eventually_async(partial(_has_held, place, number + 1))
        place.held[number].send([b"done"])


async def test_the_last_answer_is_sent_before_the_farewell(make: Make) -> None:
    """The client reads nothing before the end begins, so a part of the answer is not yet sent."""
    place = await make()
    may_read = threading.Event()

    def ask() -> int:
        """The number of bytes received until the end of the connection."""
        bare = socket.create_connection(("127.0.0.1", place.port), PATIENCE_S)
        received = 0
        with place.trust().wrap_socket(bare, server_hostname="localhost") as client:
            client.sendall(framed(b"much, please"))
            assert may_read.wait(PATIENCE_S)
            while data := client.recv(1 << 20):
                received += len(data)
        return received

    asking = asyncio.create_task(asyncio.to_thread(ask))
    await eventually_async(lambda: bool(place.seen) and place.seen[0].unsent_bytes > 0)
    place.seen[0].finish()
    may_read.set()
    assert await asking == MUCH + 4
