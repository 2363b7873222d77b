"""Other people's clients log in over TLS: with each mechanism, and while they produce."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import aiokafka
import kafka
import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient
from kafka.errors import KafkaError

from tests.integration.test_tls_clients import KINDS
from tests.rigs.certificate_authority import Authority
from tests.rigs.client_tls import ClientLogin, ClientTls
from tests.rigs.patience import PATIENCE_S, Deadline
from tests.rigs.users import add_user, write_key_file
from tests.scenarios.round_trip import PARTITIONS, create_topic, differences, make_rows
from tests.servers.broker_process import BrokerProcess, Start

RECORDS = 200
REFUSAL_S = 3
SESSION_MS = 2000
LOGINS = 8
PACE_S = 0.01
PASSWORD = "secret"
CLIENTS = ("confluent-kafka", "aiokafka", "kafka-python")
MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512", "PLAIN")
TOKENS = 'bucketlog_request_seconds_count{api="SaslAuthenticate"}'


@pytest.fixture
def root(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def serve(start: Start, root: Authority, **settings: str) -> BrokerProcess:
    issued = root.issue("broker")
    broker = start(
        listeners="ADMIN:PLAINTEXT://127.0.0.1:0,IN:SASL_SSL://127.0.0.1:0",
        ssl_certificate_file=str(issued.certificate),
        ssl_key_file=str(issued.key),
        credentials_key_file=str(write_key_file(root.folder / "keys")),
        sasl_mechanisms=",".join(MECHANISMS),
        **settings,
    ).wait_until_ready()
    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
        add_user(address(broker, "ADMIN"), "ann", mechanism, PASSWORD)
    return broker


def address(broker: BrokerProcess, listener: str = "IN") -> str:
    return str(broker.ready["listeners"][listener])


def asking(root: Authority, mechanism: str, password: str = PASSWORD) -> ClientTls:
    return ClientTls(root.file, login=ClientLogin("ann", password, mechanism))


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("name", CLIENTS)
def test_produce_and_consume(start: Start, root: Authority, name: str, mechanism: str) -> None:
    broker = serve(start, root)
    create_topic(address(broker, "ADMIN"), "t", PARTITIONS)
    client, rows = KINDS[name](asking(root, mechanism)), make_rows(RECORDS, seed=1)
    client.produce(address(broker), "t", rows, codec="none", idempotent=True)
    assert not differences(rows, client.consume(address(broker), "t", PARTITIONS, RECORDS))
    assert "Traceback" not in broker.log.read_text()


def _librdkafka(where: str, tls: ClientTls) -> str:
    errors: list[str] = []
    client = AdminClient(
        {
            "bootstrap.servers": where,
            "log_level": 0,
            "error_cb": lambda error: errors.append(str(error)),
        }
        | tls.librdkafka()  # type: ignore[arg-type]  # plain texts
    )
    with pytest.raises(KafkaException):
        client.list_topics(timeout=REFUSAL_S)
    deadline = Deadline("the client reports no error")
    while not any("SASL" in each for each in errors):
        client.poll(0)
        deadline.pause()
    return " ".join(errors)


def _aiokafka(where: str, tls: ClientTls) -> str:
    async def run() -> str:
        client = aiokafka.AIOKafkaProducer(bootstrap_servers=where, **tls.python())
        try:
            await client.start()
        except aiokafka.errors.KafkaError as error:
            return str(error)
        finally:
            await client.stop()
        return ""

    return asyncio.run(run())


def _kafka_python(where: str, tls: ClientTls) -> str:
    try:
        client = kafka.KafkaAdminClient(
            bootstrap_servers=where, bootstrap_timeout_ms=REFUSAL_S * 1000, **tls.python()
        )
    except KafkaError as error:
        return str(error)
    client.close()
    return ""


def _in_a_process(asks: Callable[[str, ClientTls], str]) -> Callable[[str, ClientTls], str]:
    """A client that is refused leaves its sockets open."""

    def run(where: str, tls: ClientTls) -> str:
        with ProcessPoolExecutor(1, get_context("spawn")) as process:
            return process.submit(asks, where, tls).result()

    return run


REFUSED: dict[str, Callable[[str, ClientTls], str]] = {
    "confluent-kafka": _librdkafka,
    "aiokafka": _in_a_process(_aiokafka),
    "kafka-python": _in_a_process(_kafka_python),
}
"""What each client says of a login that fails."""


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("name", CLIENTS)
def test_a_wrong_password(start: Start, root: Authority, name: str, mechanism: str) -> None:
    broker = serve(start, root)
    told = REFUSED[name](address(broker), asking(root, mechanism, "wrong"))
    assert told
    if name == "confluent-kafka":  # the others say only that they could not connect
        wanted = "Invalid username or password" if mechanism == "PLAIN" else "invalid credentials"
        assert wanted in told
    log = broker.log.read_text()
    assert f"login by {mechanism} failed" in log
    assert "Traceback" not in log
    assert "wrong" not in log.replace("password is wrong", "")


def _logins(broker: BrokerProcess) -> float:
    """How many tokens the broker has answered."""
    return broker.metrics().get(TOKENS, 0.0)


def _produce_librdkafka(where: str, tls: ClientTls, is_enough: Callable[[], bool]) -> int:
    failures: list[str] = []

    def delivered(error: object, _: object) -> None:
        if error is not None:
            failures.append(str(error))

    errors: list[str] = []
    producer = Producer(
        {
            "bootstrap.servers": where,
            "enable.idempotence": True,
            "error_cb": lambda error: errors.append(str(error)),
        }
        | tls.librdkafka()
    )
    sent = 0
    while not is_enough():
        producer.produce("t", b"%d" % sent, partition=0, on_delivery=delivered)
        sent += 1
        producer.poll(PACE_S)
    assert producer.flush(PATIENCE_S) == 0
    assert (failures, errors) == ([], [])
    return sent


def _produce_aiokafka(where: str, tls: ClientTls, is_enough: Callable[[], bool]) -> int:
    async def run() -> int:
        sent = 0
        async with aiokafka.AIOKafkaProducer(
            bootstrap_servers=where, enable_idempotence=True, **tls.python()
        ) as producer:
            while not await asyncio.to_thread(is_enough):
                await producer.send_and_wait("t", b"%d" % sent, partition=0)
                sent += 1
        return sent

    return asyncio.run(run())


def _produce_kafka_python(where: str, tls: ClientTls, is_enough: Callable[[], bool]) -> int:
    producer = kafka.KafkaProducer(
        bootstrap_servers=where, enable_idempotence=True, acks="all", **tls.python()
    )
    sent = 0
    try:
        while not is_enough():
            producer.send("t", b"%d" % sent, partition=0).get(PATIENCE_S)
            sent += 1
    finally:
        producer.close(PATIENCE_S)
    return sent


PACED: dict[str, Callable[[str, ClientTls, Callable[[], bool]], int]] = {
    "confluent-kafka": _produce_librdkafka,
    "aiokafka": _produce_aiokafka,
    "kafka-python": _produce_kafka_python,
}
"""Each produces the numbers 0, 1, … by one client until it is enough, and returns how many."""


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-512", "PLAIN"])
@pytest.mark.parametrize("name", CLIENTS)
def test_sessions_end_under_load(start: Start, root: Authority, name: str, mechanism: str) -> None:
    """A client produces through several sessions. It authenticates again; aiokafka, which does not,
    connects again. No record is lost, repeated or out of order."""
    broker = serve(start, root, connections_reauth_ms_max=str(SESSION_MS))
    create_topic(address(broker, "ADMIN"), "t", 1)
    tls = asking(root, mechanism)
    tokens = LOGINS * (1 if mechanism == "PLAIN" else 2)
    deadline = Deadline("the client does not log in again")

    def is_enough() -> bool:
        deadline.check()
        return _logins(broker) >= tokens

    sent = PACED[name](address(broker), tls, is_enough)
    consumed = KINDS[name](tls).consume(address(broker), "t", 1, sent)
    assert [value for _, value in consumed[0]] == [b"%d" % number for number in range(sent)]
    log = broker.log.read_text()
    assert "login by" not in log
    assert "Traceback" not in log
    assert ("its session has ended" in log) == (name == "aiokafka")
