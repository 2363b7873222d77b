"""Other people's clients log in over TLS: with each mechanism, and while they produce."""

from itertools import product
from pathlib import Path

import pytest

from tests.rigs.certificate_authority import Authority
from tests.rigs.client_tls import ClientLogin, ClientTls
from tests.rigs.patience import Deadline
from tests.rigs.users import add_user, write_key_file
from tests.scenarios.clients import KINDS
from tests.scenarios.paced_producers import PACED
from tests.scenarios.refused_logins import REFUSED
from tests.scenarios.round_trip import PARTITIONS, create_topic, differences, make_rows
from tests.servers import franz_go
from tests.servers.broker_process import BrokerProcess, Start
from tests.servers.components import Components

pytestmark = pytest.mark.long

RECORDS = 200
SESSION_MS = 4000
LOGINS = 8
LAPSES = 2
"""On a busy machine, a client may miss the end of a session now and then, and connects again."""
PASSWORD = "secret"
CLIENTS = ("confluent-kafka", "aiokafka", "kafka-python", "franz-go")
MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512", "PLAIN")
TOKENS = 'bucketlog_request_seconds_count{api="SaslAuthenticate"}'


@pytest.fixture(autouse=True)
def installed(request: pytest.FixtureRequest, components: Components) -> None:
    if "franz-go" in request.node.callspec.params.values():
        franz_go.require(components)


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


@pytest.mark.parametrize(("name", "mechanism"), [*product(CLIENTS, MECHANISMS), ("kcat", "PLAIN")])
def test_produce_and_consume(start: Start, root: Authority, name: str, mechanism: str) -> None:
    broker = serve(start, root)
    create_topic(address(broker, "ADMIN"), "t", PARTITIONS)
    client, rows = KINDS[name](asking(root, mechanism)), make_rows(RECORDS, seed=1)
    client.produce(address(broker), "t", rows, codec="none", idempotent=True)
    assert not differences(rows, client.consume(address(broker), "t", PARTITIONS, RECORDS))
    assert "Traceback" not in broker.log.read_text()


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

    sent = PACED[name](address(broker), tls, "t", is_enough)
    consumed = KINDS[name](tls).consume(address(broker), "t", 1, sent)
    assert [value for _, value in consumed[0]] == [b"%d" % number for number in range(sent)]
    log = broker.log.read_text()
    assert "login by" not in log
    assert "Traceback" not in log
    assert (log.count("its session has ended") > LAPSES) == (name == "aiokafka")
