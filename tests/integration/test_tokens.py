"""A broker process with OAUTHBEARER: tokens that are refused, sessions, keys that change or are
away, and other people's clients."""

import time
from pathlib import Path
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

import bucketlog
from bucketlog import LogError, Security, TokenFile
from bucketlog.log_format.wire.api_keys import ApiKey
from tests.integration.test_login_clients import TOKENS
from tests.integration.test_logins import is_served, until_closed
from tests.rigs.certificate_authority import Authority, replace_file
from tests.rigs.client_tls import AioKafkaTokens, ClientTls, KafkaPythonTokens, TokenLogin
from tests.rigs.logins import authenticate
from tests.rigs.patience import Deadline, eventually
from tests.rigs.tokens import AUDIENCE, ISSUER, Provider, claims, encoded, public_pem, signed
from tests.rigs.wire_client import WireClient
from tests.scenarios.clients import KINDS
from tests.scenarios.paced_producers import PACED, produce_until
from tests.scenarios.refused_logins import REFUSED
from tests.scenarios.round_trip import PARTITIONS, create_topic, differences, make_rows
from tests.servers.broker_process import BrokerProcess, Start

pytestmark = pytest.mark.long

CLIENTS = ("confluent-kafka", "aiokafka", "kafka-python")
RECORDS = 200
OAUTHBEARER = "OAUTHBEARER"
SESSION_S = 6
LOGINS = 5
INVALID = '{"status":"invalid_token"}'


@pytest.fixture(scope="module")
def provider() -> Provider:
    return Provider()


@pytest.fixture
def root(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def key_file(root: Authority) -> Path:
    return root.folder / "jwks.json"


def serve(start: Start, root: Authority, provider: Provider, **settings: str) -> BrokerProcess:
    issued = root.issue("broker")
    replace_file(key_file(root), provider.document)
    return start(
        listeners="ADMIN:PLAINTEXT://127.0.0.1:0,IN:SASL_SSL://127.0.0.1:0",
        ssl_certificate_file=str(issued.certificate),
        ssl_key_file=str(issued.key),
        sasl_mechanisms=OAUTHBEARER,
        **{
            "oauthbearer_jwks_file": str(key_file(root)),
            "oauthbearer_jwks_unknown_key_ms_min": "1",
            "oauthbearer_issuer": ISSUER,
            "oauthbearer_audiences": f"x,{AUDIENCE}",
        }
        | settings,
    ).wait_until_ready()


def address(broker: BrokerProcess, listener: str = "IN") -> str:
    return str(broker.ready["listeners"][listener])


def dial(broker: BrokerProcess, root: Authority) -> WireClient:
    return WireClient(address(broker), tls=ClientTls(root.file).context())


def present(client: WireClient, token: str, authorization: str = "") -> Any:
    answer = client.call(ApiKey.SASL_HANDSHAKE, 1, mechanism=OAUTHBEARER)
    assert answer.error_code == ErrorCode.none
    who = f"a={authorization}" if authorization else ""
    return authenticate(client, f"n,{who},\x01auth=Bearer {token}\x01\x01".encode())


def tls(root: Authority, provider: Provider, name: str, **changes: Any) -> ClientTls:
    kind = KafkaPythonTokens if name == "kafka-python" else AioKafkaTokens
    return ClientTls(root.file, login=TokenLogin(lambda: provider.token(**changes), kind))


def bad_tokens(provider: Provider) -> dict[str, str]:
    """By what the broker's log says."""
    now_s = time.time()
    shared = encoded({"alg": "HS256", "kid": provider.kid}, claims(now_s))
    public = public_pem(provider.key)
    other = Provider(generation=7)
    return {
        "its issuer 'https://other.example'": provider.token(iss="https://other.example"),
        "its audience 'account'": provider.token(aud="account"),
        "it expired": provider.token(lasts_s=-40, iat=1),
        "it is valid only in": provider.token(nbf=now_s + 100),
        "no key 'key-7'": other.token(),
        "its signature is not accepted": signed(other.key, claims(now_s), kid=provider.kid),
        "its algorithm 'none'": encoded({"alg": "none"}, claims(now_s)),
        "its algorithm 'HS256'": shared + _hmac(public, shared),
        "(BUCKETLOG_OAUTHBEARER_TOKEN_BYTES_MAX)": provider.token(more="x" * 20_000),
        "it is not a JWT": "opaque",
    }


def _hmac(secret: bytes, unsigned: str) -> str:
    import base64
    import hmac

    found = hmac.digest(secret, unsigned.rstrip(".").encode(), "sha256")
    return base64.urlsafe_b64encode(found).rstrip(b"=").decode()


def test_tokens_that_are_refused(start: Start, root: Authority, provider: Provider) -> None:
    broker = serve(start, root, provider, closing_lines_per_minute="1000")
    for reason, token in bad_tokens(provider).items():
        with dial(broker, root) as client:
            first = present(client, token)
            assert (first.error_code, first.auth_bytes.decode()) == (ErrorCode.none, INVALID)
            last = authenticate(client, b"\x01")
            assert last.error_code == ErrorCode.sasl_authentication_failed
            assert (last.error_message, last.auth_bytes) == (INVALID, b"")
            assert client.read_frame() is None
        with dial(broker, root) as client:  # nothing else is served after a refusal, either
            present(client, token)
            client.send(ApiKey.METADATA, 1, topics=None)
            assert client.read_frame() is None
        eventually(lambda: broker.log.read_text().count(reason) >= 2, reason)  # noqa: B023  # now
    with dial(broker, root) as client:
        refused = present(client, provider.token(), "eve")
        assert refused.error_code == ErrorCode.sasl_authentication_failed
        assert "an authorization id (eve)" in refused.error_message
    with dial(broker, root) as client:
        refused = present(client, "a b")
        assert refused.error_message == (
            "Authentication failed during authentication due to invalid credentials with SASL "
            "mechanism OAUTHBEARER"
        )
    with dial(broker, root) as client:
        assert present(client, provider.token(), "ann").error_code == ErrorCode.none
        assert is_served(client)
    text = broker.log.read_text()
    assert "Traceback" not in text
    assert "eyJ" not in text  # no part of a token


def test_a_session_ends_with_its_token(start: Start, root: Authority, provider: Provider) -> None:
    broker = serve(start, root, provider, connections_reauth_ms_max="100000")
    with dial(broker, root) as again, dial(broker, root) as other, dial(broker, root) as silent:
        for client in (again, other, silent):
            token = provider.token(lasts_s=SESSION_S)
            answer = present(client, token)
            assert 0 < answer.session_lifetime.total_seconds() <= SESSION_S
        until_closed(lambda: is_served(silent))
        answer = present(again, provider.token(lasts_s=1000))
        assert answer.session_lifetime.total_seconds() == 100
        assert is_served(again)
        refused = present(other, provider.token(sub="eve"))
        assert refused.error_code == ErrorCode.sasl_authentication_failed
        assert "Cannot change principals" in refused.error_message
    assert "its session has ended (its token has expired)" in broker.log.read_text()


def test_keys_that_change(start: Start, root: Authority, provider: Provider) -> None:
    now = Provider()
    broker = serve(start, root, now)
    old = now.token()
    now.rotate()
    with dial(broker, root) as client:
        assert present(client, now.token()).auth_bytes.decode() == INVALID
    replace_file(key_file(root), now.document)
    with dial(broker, root) as client:
        assert present(client, now.token()).auth_bytes == b""
    with dial(broker, root) as client:
        assert present(client, old).auth_bytes.decode() == INVALID
    replace_file(key_file(root), b"{}")
    with dial(broker, root) as client:
        assert present(client, old).auth_bytes.decode() == INVALID
    with dial(broker, root) as client:
        assert present(client, now.token()).auth_bytes == b""  # the former keys stay
    metrics = broker.metrics()
    assert metrics["bucketlog_token_keys_failed_loads_total"] >= 1
    assert metrics["bucketlog_token_keys_age_seconds"] >= 0
    assert "the former keys for tokens stay in use" in broker.log.read_text()


def test_a_broker_without_keys(start: Start, root: Authority, provider: Provider) -> None:
    """The broker starts, says what is missing, and finds the keys without a restart."""
    later = root.folder / "later.json"
    broker = serve(start, root, provider, oauthbearer_jwks_file=str(later))
    with dial(broker, root) as client:
        assert present(client, provider.token()).auth_bytes.decode() == INVALID
    assert "nobody can log in by token" in broker.log.read_text()
    replace_file(later, provider.document)
    with dial(broker, root) as client:
        assert present(client, provider.token()).auth_bytes == b""


@pytest.mark.parametrize("name", CLIENTS)
def test_produce_and_consume(start: Start, root: Authority, provider: Provider, name: str) -> None:
    broker = serve(start, root, provider)
    create_topic(address(broker, "ADMIN"), "t", PARTITIONS)
    client, rows = KINDS[name](tls(root, provider, name)), make_rows(RECORDS, seed=1)
    client.produce(address(broker), "t", rows, codec="none", idempotent=True)
    assert not differences(rows, client.consume(address(broker), "t", PARTITIONS, RECORDS))
    assert "Traceback" not in broker.log.read_text()


def test_librdkafka_hears_why(start: Start, root: Authority, provider: Provider) -> None:
    broker = serve(start, root, provider)
    asking = tls(root, provider, "confluent-kafka", aud="account")
    assert "invalid_token" in REFUSED["confluent-kafka"](address(broker), asking)
    assert "its audience 'account'" in broker.log.read_text()


@pytest.mark.parametrize("name", CLIENTS)
def test_sessions_end_under_load(
    start: Start, root: Authority, provider: Provider, name: str
) -> None:
    """A client produces through several tokens. No record is lost, repeated or out of order."""
    broker = serve(start, root, provider)
    create_topic(address(broker, "ADMIN"), "t", 1)
    kind = KafkaPythonTokens if name == "kafka-python" else AioKafkaTokens
    source = TokenLogin(lambda: provider.token(lasts_s=SESSION_S), kind)
    asking = ClientTls(root.file, login=source)
    deadline = Deadline("the client does not log in again")

    def is_enough() -> bool:
        deadline.check()
        return broker.metrics().get(TOKENS, 0.0) >= LOGINS

    sent = (
        produce_until(address(broker), asking, is_enough, [])
        if name == "confluent-kafka"
        else PACED[name](address(broker), asking, "t", is_enough)
    )
    consumed = KINDS[name](asking).consume(address(broker), "t", 1, sent)
    assert [value for _, value in consumed[0]] == [b"%d" % number for number in range(sent)]
    log = broker.log.read_text()
    assert "login by" not in log
    assert "Traceback" not in log


def test_the_sdk_and_the_command_line(
    start: Start, root: Authority, provider: Provider, tmp_path: Path
) -> None:
    broker = serve(start, root, provider)
    file = tmp_path / "token"
    for source in (provider.token, TokenFile(file)):
        file.write_text(provider.token())
        security = Security(ca_file=root.file, token=source)
        with bucketlog.connect(address(broker), security=security) as log:
            log.topics.ensure("t")
            with log.producer() as producer:
                producer.send(bucketlog.Topic("t"), b"value")
    file.write_text(provider.token(aud="account"))
    with pytest.raises(LogError, match="refuses the login by token") as caught:
        bucketlog.connect(
            address(broker), security=Security(ca_file=root.file, token=TokenFile(file))
        )
    assert caught.value.code == "SASL_AUTHENTICATION_FAILED"
    assert "issuer, audience" in caught.value.remedy
