"""Other people's clients over TLS: records, versions, certificates, and handshakes that fail."""

import asyncio
import os
import socket
import ssl
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, suppress
from itertools import count
from multiprocessing import get_context
from pathlib import Path

import aiokafka
import kafka
import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from kafka.errors import KafkaTimeoutError

from tests.rigs.certificate_authority import Authority, rfc4514
from tests.rigs.client_tls import ClientTls
from tests.rigs.patience import Deadline, eventually
from tests.scenarios.clients import KINDS, Kcat
from tests.scenarios.round_trip import PARTITIONS, create_topic, differences, make_rows
from tests.servers import franz_go
from tests.servers.broker_process import BrokerProcess, Start
from tests.servers.components import Components
from tests.servers.franz_go import GoClientError
from tests.servers.kafka_tools import KafkaTools, participating_tools

pytestmark = pytest.mark.long

TWO = "PLAIN:PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0"
RECORDS = 500
REFUSAL_S = 3
CLIENT_NAMES = [*KINDS, "java"]
VERSIONS = ("TLSv1.2", "TLSv1.3")
CONNECTIONS = "bucketlog_connections"
UNIX_SOCKETS = Path("/proc/net/unix")
_numbers = count()


@pytest.fixture(autouse=True)
def installed(request: pytest.FixtureRequest, components: Components) -> None:
    call = getattr(request.node, "callspec", None)
    if call is not None and "franz-go" in call.params.values():
        franz_go.require(components)


@pytest.fixture
def root(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def serve(
    start: Start, root: Authority, *, hosts: tuple[str, ...] = ("127.0.0.1",), **settings: str
) -> BrokerProcess:
    issued = root.issue("broker", hosts=hosts)
    return start(
        listeners=TWO,
        ssl_certificate_file=str(issued.certificate),
        ssl_key_file=str(issued.key),
        **settings,
    ).wait_until_ready()


def address(broker: BrokerProcess, listener: str = "SSL") -> str:
    return str(broker.ready["listeners"][listener])


def connect(broker: BrokerProcess, listener: str = "SSL") -> socket.socket:
    host, port = address(broker, listener).split(":")
    return socket.create_connection((host, int(port)), REFUSAL_S * 10)


def is_served(name: str, where: str, tls: ClientTls, components: Components, folder: Path) -> bool:
    """Whether the client gets an answer; it gives up soon."""
    match name:
        case "confluent-kafka":
            asking = AdminClient({"bootstrap.servers": where, "log_level": 0} | tls.librdkafka())  # type: ignore[arg-type]  # plain texts
            try:
                return bool(asking.list_topics(timeout=REFUSAL_S).brokers)
            except KafkaException:
                return False
        case "aiokafka":
            return _in_a_process(_run_aiokafka, where, tls)
        case "kafka-python":
            return _in_a_process(_kafka_python_is_served, where, tls)
        case "kcat":
            try:
                Kcat(tls).list_brokers(where)
            except AssertionError:
                return False
            return True
        case "franz-go":
            try:
                franz_go.run(where, tls, "brokers", timeout_s=4 * REFUSAL_S)
            except GoClientError:
                return False
            return True
    tools = participating_tools(where, components)
    return java(tools, tls, folder, "kafka-topics", "--list") == 0


def _in_a_process(asks: Callable[[str, ClientTls], bool], where: str, tls: ClientTls) -> bool:
    """A client that is refused leaves its sockets open."""
    with ProcessPoolExecutor(1, get_context("spawn")) as process:
        return process.submit(asks, where, tls).result()


def _run_aiokafka(where: str, tls: ClientTls) -> bool:
    return asyncio.run(_aiokafka_is_served(where, tls))


async def _aiokafka_is_served(where: str, tls: ClientTls) -> bool:
    client = aiokafka.AIOKafkaProducer(bootstrap_servers=where, **tls.python())
    try:
        await client.start()
    except aiokafka.errors.KafkaError:
        return False
    finally:
        await client.stop()
    return True


def _kafka_python_is_served(where: str, tls: ClientTls) -> bool:
    try:
        client = kafka.KafkaAdminClient(
            bootstrap_servers=where, bootstrap_timeout_ms=REFUSAL_S * 1000, **tls.python()
        )
    except KafkaTimeoutError:
        return False
    client.close()
    return True


def java(tools: KafkaTools, tls: ClientTls, folder: Path, tool: str, *arguments: str) -> int:
    """The exit code."""
    file = folder / f"java-{next(_numbers)}.properties"
    file.write_text(tls.java(default_api_timeout_ms="20000", request_timeout_ms="5000"))
    return tools.run(tool, *arguments, "--command-config", str(file)).returncode


def wait_for_line(broker: BrokerProcess, text: str) -> None:
    eventually(lambda: text in broker.log.read_text(), lambda: broker.log.read_text()[-2000:])


def check_nothing_is_left(broker: BrokerProcess) -> None:
    eventually(lambda: broker.metrics()[CONNECTIONS] == 0)
    assert "Traceback" not in broker.log.read_text()


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", KINDS)
def test_produce_and_consume(start: Start, root: Authority, name: str, version: str) -> None:
    broker = serve(start, root, ssl_client_auth="required", ssl_ca_file=str(root.file))
    tls = ClientTls(root.file, root.issue("ann", rfc4514("CN=ann")), version)
    client, rows = KINDS[name](tls), make_rows(RECORDS, seed=1)
    create_topic(address(broker, "PLAIN"), "t", PARTITIONS)
    client.produce(address(broker), "t", rows, codec="gzip", idempotent=True)
    assert not differences(rows, client.consume(address(broker), "t", PARTITIONS, RECORDS))
    check_nothing_is_left(broker)


@pytest.mark.parametrize("version", VERSIONS)
def test_kafka_s_own_tools(
    start: Start, root: Authority, components: Components, tmp_path: Path, version: str
) -> None:
    broker = serve(start, root, ssl_client_auth="required", ssl_ca_file=str(root.file))
    tools = participating_tools(address(broker), components)
    tls = ClientTls(root.file, root.issue("ann", rfc4514("CN=ann")), version)
    config = tmp_path / "client.properties"
    config.write_text(tls.java())
    with_tls = ("--command-config", str(config))
    create_topic(address(broker, "PLAIN"), "t", 1)
    lines = [f"line {number}" for number in range(RECORDS)]
    tools.lines(
        "kafka-console-producer", "--topic", "t", *with_tls, stdin="\n".join(lines).encode()
    )
    read = tools.run(
        *("kafka-console-consumer", "--topic", "t", "--from-beginning", *with_tls),
        *("--max-messages", str(RECORDS)),
    )
    assert read.stdout.decode().splitlines() == lines
    check_nothing_is_left(broker)


@pytest.mark.parametrize("name", ["aiokafka", "kafka-python", "kcat", "franz-go", "java"])
def test_versions_below_the_lowest(
    start: Start, root: Authority, components: Components, tmp_path: Path, name: str
) -> None:
    broker = serve(start, root, ssl_protocol_min="TLSv1.3")
    for version, served in (("TLSv1.2", False), ("TLSv1.3", True)):
        tls = ClientTls(root.file, version=version)
        assert is_served(name, address(broker), tls, components, tmp_path) == served
    check_nothing_is_left(broker)


@pytest.mark.parametrize("name", CLIENT_NAMES)
def test_a_wrong_host_name_is_refused_by_the_client(
    start: Start, root: Authority, components: Components, tmp_path: Path, name: str
) -> None:
    broker = serve(start, root, hosts=("elsewhere.example",))
    tls = ClientTls(root.file)
    assert not is_served(name, address(broker), tls, components, tmp_path)
    with (
        connect(broker) as plain,
        tls.context().wrap_socket(plain, server_hostname="elsewhere.example") as other,
    ):
        assert other.version() == "TLSv1.3"
    check_nothing_is_left(broker)


@pytest.mark.parametrize("name", CLIENT_NAMES)
def test_a_certificate_of_a_foreign_authority_is_refused(
    start: Start, root: Authority, components: Components, tmp_path: Path, name: str
) -> None:
    broker = serve(start, root, ssl_client_auth="required", ssl_ca_file=str(root.file))
    foreign = Authority(tmp_path, "foreign").issue("stranger", rfc4514("CN=ann"))
    known = root.issue("ann", rfc4514("CN=ann"))
    for own, served in ((foreign, False), (known, True)):
        tls = ClientTls(root.file, own)
        assert is_served(name, address(broker), tls, components, tmp_path) == served
    wait_for_line(broker, "TLS handshake failed: CERTIFICATE_VERIFY_FAILED")
    check_nothing_is_left(broker)


def test_plain_text_at_a_tls_port(start: Start, root: Authority) -> None:
    broker = serve(start, root)
    client = AdminClient({"bootstrap.servers": address(broker), "log_level": 0})
    with pytest.raises(KafkaException):
        client.list_topics(timeout=REFUSAL_S)
    del client
    wait_for_line(broker, "its client does not speak TLS (security.protocol=SSL)")
    check_nothing_is_left(broker)


def test_tls_at_a_plain_text_port(start: Start, root: Authority) -> None:
    broker = serve(start, root)
    with connect(broker, "PLAIN") as plain, pytest.raises((ssl.SSLError, ConnectionError)):
        ClientTls(root.file).context().wrap_socket(plain, server_hostname="127.0.0.1")
    wait_for_line(
        broker, "its client speaks TLS, but the listener is for plain text (BUCKETLOG_LISTENERS)"
    )
    check_nothing_is_left(broker)


def client_sockets(broker: BrokerProcess) -> list[str]:
    """The broker's open sockets without its connections to Redis, whose number depends on load.
    Files do not count: a broker opens folders of the bucket when it first writes to them."""
    to_redis = {line.split()[6] for line in UNIX_SOCKETS.read_text().splitlines()[1:]}
    found: list[str] = []
    for file in Path(f"/proc/{broker.process.pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            found.append(os.readlink(file))
    return [
        name
        for name in found
        if name.startswith("socket:[") and name[len("socket:[") : -1] not in to_redis
    ]


def test_handshakes_that_stop_half_way(
    start: Start, root: Authority, components: Components, tmp_path: Path
) -> None:
    """Silent clients, and clients that send a byte now and then, end together; others are served
    meanwhile."""
    broker = serve(start, root, ssl_handshake_ms_max="2000")
    tls = ClientTls(root.file)
    assert is_served("confluent-kafka", address(broker), tls, components, tmp_path)
    eventually(lambda: broker.metrics()[CONNECTIONS] == 0)
    sockets, hello = client_sockets(broker), ssl.MemoryBIO()
    with pytest.raises(ssl.SSLWantReadError):
        tls.context().wrap_bio(ssl.MemoryBIO(), hello, server_hostname="127.0.0.1").do_handshake()
    begun = hello.read()
    with ExitStack() as closing:
        half = [closing.enter_context(connect(broker)) for _ in range(40)]
        assert is_served("confluent-kafka", address(broker), tls, components, tmp_path)
        closed = 'bucketlog_connections_closed_total{reason="ssl_handshake_ms_max"}'
        deadline, sent = Deadline(lambda: broker.log.read_text()[-2000:]), 0
        while broker.metrics().get(closed, 0) < len(half):
            for each in half[::2]:
                try:
                    each.send(begun[sent : sent + 1])
                except ConnectionError:
                    continue
            sent = min(sent + 1, len(begun) // 2)
            deadline.pause(0.05)
    wait_for_line(broker, "its TLS handshake took longer than 2000 ms")
    check_nothing_is_left(broker)
    eventually(
        lambda: len(client_sockets(broker)) <= len(sockets),
        lambda: (sockets, client_sockets(broker)),
    )
