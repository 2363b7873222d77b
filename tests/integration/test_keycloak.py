"""Logins by tokens of a real provider: Keycloak, with clients that get their tokens themselves.

One Keycloak serves the module, because its start takes a minute or more.
"""

from collections.abc import Callable, Iterator

import pytest

import bucketlog
from bucketlog import ClientCredentials, Security
from bucketlog.log_format.errors import ConfigurationError
from tests.integration.test_login_clients import TOKENS
from tests.integration.test_tokens import dial, present
from tests.rigs.certificate_authority import Authority
from tests.rigs.client_tls import ClientTls, OidcLogin
from tests.rigs.patience import Deadline
from tests.rigs.tokens import encoded
from tests.scenarios.clients import KINDS
from tests.scenarios.paced_producers import produce_until
from tests.scenarios.refused_logins import REFUSED
from tests.scenarios.round_trip import PARTITIONS, create_topic, differences, make_rows
from tests.servers.broker_process import BrokerProcess, Start
from tests.servers.components import Components
from tests.servers.kafka_tools import KafkaTools, participating_tools
from tests.servers.keycloak import AUDIENCE, CLIENT, SECRET, SHORT, STRANGER, Keycloak

pytestmark = pytest.mark.long

RECORDS = 200
SHORT_LOGINS = 4
UNKNOWN_KEY = encoded({"alg": "RS256", "kid": "unknown"}, {})
REFUSED_TOKEN = '{"status":"invalid_token"}'


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def keycloak(
    root: Authority, components: Components, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Keycloak]:
    try:
        found = Keycloak(tmp_path_factory.mktemp("provider"), root.issue("keycloak"))
    except ConfigurationError as error:
        components.missing("Keycloak", error.remedy)
        raise
    try:
        found.start()
        components.took_part("Keycloak", found.version)
        yield found
    finally:
        found.remove()


def serve(start: Start, root: Authority, keycloak: Keycloak) -> BrokerProcess:
    issued = root.issue("broker")
    return start(
        listeners="ADMIN:PLAINTEXT://127.0.0.1:0,IN:SASL_SSL://127.0.0.1:0",
        ssl_certificate_file=str(issued.certificate),
        ssl_key_file=str(issued.key),
        sasl_mechanisms="OAUTHBEARER",
        oauthbearer_jwks_url=keycloak.keys_url,
        oauthbearer_jwks_ca_file=str(root.file),
        oauthbearer_jwks_unknown_key_ms_min="1",
        oauthbearer_issuer=keycloak.issuer,
        oauthbearer_audiences=AUDIENCE,
        oauthbearer_sub_claim_name="azp",
    ).wait_until_ready()


def address(broker: BrokerProcess, listener: str = "IN") -> str:
    return str(broker.ready["listeners"][listener])


def asking(root: Authority, keycloak: Keycloak, client: str = CLIENT) -> ClientTls:
    return ClientTls(root.file, login=OidcLogin(keycloak.token_url, client, SECRET))


def test_librdkafka_gets_its_tokens(start: Start, root: Authority, keycloak: Keycloak) -> None:
    broker = serve(start, root, keycloak)
    create_topic(address(broker, "ADMIN"), "t", PARTITIONS)
    client = KINDS["confluent-kafka"](asking(root, keycloak))
    rows = make_rows(RECORDS, seed=1)
    client.produce(address(broker), "t", rows, codec="none", idempotent=True)
    assert not differences(rows, client.consume(address(broker), "t", PARTITIONS, RECORDS))
    text = REFUSED["confluent-kafka"](address(broker), asking(root, keycloak, STRANGER))
    assert "invalid_token" in text
    assert "its audience ['another service', 'account']" in broker.log.read_text()


def test_java_gets_its_tokens(
    start: Start, root: Authority, keycloak: Keycloak, components: Components
) -> None:
    broker = serve(start, root, keycloak)
    participating_tools(address(broker, "ADMIN"), components)
    create_topic(address(broker, "ADMIN"), "t", 1)

    def tools(client: str) -> tuple[KafkaTools, tuple[str, str]]:
        login = OidcLogin(keycloak.token_url, client, SECRET)
        config = root.folder / f"{client}.properties"
        config.write_text(ClientTls(root.file, login=login).java())
        return KafkaTools(address(broker), *login.java_allows), ("--command-config", str(config))

    good, own = tools(CLIENT)
    lines = [f"line {number}" for number in range(100)]
    good.lines("kafka-console-producer", "--topic", "t", *own, stdin="\n".join(lines).encode())
    read = good.run(
        *("kafka-console-consumer", "--topic", "t", "--from-beginning", *own),
        *("--max-messages", str(len(lines))),
    )
    assert read.stdout.decode().splitlines() == lines
    stranger, own = tools(STRANGER)
    done = stranger.run("kafka-topics", "--list", *own)
    assert done.returncode
    assert REFUSED_TOKEN in (done.stdout + done.stderr).decode()


def test_the_sdk_gets_its_tokens(start: Start, root: Authority, keycloak: Keycloak) -> None:
    broker = serve(start, root, keycloak)

    def security(client: str, secret: str = SECRET) -> Security:
        source = ClientCredentials(
            token_url=keycloak.token_url, client_id=client, client_secret=secret
        )
        return Security(ca_file=root.file, token=source)

    with bucketlog.connect(address(broker), security=security(CLIENT)) as log:
        log.topics.create("t")
        with log.producer() as producer:
            producer.send(bucketlog.Topic("t"), b"value")
    for wrong, words in (
        (security(CLIENT, "wrong"), "refuses the client 'ann': status 401"),
        (security(STRANGER), "refuses the login by token"),
    ):
        with pytest.raises(bucketlog.LogError, match=words):
            bucketlog.connect(address(broker), security=wrong)


def _enough_logins(broker: BrokerProcess) -> Callable[[], bool]:
    deadline = Deadline("the client does not log in again")

    def is_enough() -> bool:
        deadline.check()
        return broker.metrics().get(TOKENS, 0.0) >= SHORT_LOGINS

    return is_enough


def test_tokens_expire_under_load(start: Start, root: Authority, keycloak: Keycloak) -> None:
    """librdkafka gets new tokens, and logs in again on open connections. No record is lost."""
    broker = serve(start, root, keycloak)
    create_topic(address(broker, "ADMIN"), "t", 1)
    login = asking(root, keycloak, SHORT)
    sent = produce_until(address(broker), login, _enough_logins(broker), [])
    consumed = KINDS["confluent-kafka"](login).consume(address(broker), "t", 1, sent)
    assert [value for _, value in consumed[0]] == [b"%d" % number for number in range(sent)]
    assert "Traceback" not in broker.log.read_text()


def test_keys_rotate_and_the_provider_is_away(
    start: Start, root: Authority, keycloak: Keycloak
) -> None:
    broker = serve(start, root, keycloak)

    def is_accepted(token: str) -> bool:
        with dial(broker, root) as client:
            return bool(present(client, token).auth_bytes == b"")

    first = keycloak.token()
    assert is_accepted(first)
    keycloak.rotate_keys()
    second = keycloak.token()
    assert keycloak.key_id(first) != keycloak.key_id(second)
    assert is_accepted(second)  # without a restart
    assert is_accepted(first)  # Keycloak still lists its former key
    with keycloak.stopped():
        assert not is_accepted(UNKNOWN_KEY)
        assert is_accepted(second)
    metrics = broker.metrics()
    assert metrics["bucketlog_token_keys_failed_loads_total"] >= 1
    log = broker.log.read_text()
    assert "the former keys for tokens stay in use" in log
    assert "Traceback" not in log
