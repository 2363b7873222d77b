"""A broker process with SASL listeners: logins, and the limits before and after them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from kio.schema.errors import ErrorCode

import bucketlog
from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.log_format.wire.served_versions import SERVED_VERSIONS
from tests.models.sample_requests import sample_request
from tests.rigs.logins import SHA_256, authenticate, handshake, log_in
from tests.rigs.patience import PATIENCE_S, Deadline, eventually
from tests.rigs.users import PASSWORD, add_user, write_key_file
from tests.rigs.wire_client import WireClient, encode_request
from tests.servers.broker_process import BrokerProcess, Start

pytestmark = pytest.mark.long

MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")
LOGIN_APIS = (ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE)
REQUEST_BYTES_MAX = 65_536
REFUSED = (
    "Authentication failed during authentication due to invalid credentials with SASL mechanism "
    f"{SHA_256}"
)


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    return write_key_file(tmp_path / "keys")


def serve(start: Start, key_file: Path, **more: str) -> BrokerProcess:
    return start(
        listeners="IN:SASL_PLAINTEXT://127.0.0.1:0,ADMIN:PLAINTEXT://127.0.0.1:0",
        credentials_key_file=str(key_file),
        **more,
    ).wait_until_ready()


def admin(broker: BrokerProcess) -> str:
    return str(broker.ready["listeners"]["ADMIN"])


def login(user: str, mechanism: str, password: str = PASSWORD) -> dict[str, str]:
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": user,
        "sasl.password": password,
    }


def failure(broker: BrokerProcess, config: dict[str, str]) -> str:
    """What librdkafka says of a login that fails; empty if it succeeds."""
    errors: list[str] = []
    client = AdminClient(
        {"bootstrap.servers": broker.bootstrap, "error_cb": lambda error: errors.append(str(error))}
        | config  # type: ignore[arg-type]  # plain texts
    )
    try:
        client.list_topics(timeout=min(PATIENCE_S, 3))
    except KafkaException:
        client.poll(0)
        return " ".join(errors) or "no answer"
    return ""


@contextmanager
def closing(broker: BrokerProcess, reason: str) -> Iterator[WireClient]:
    """A connection that the broker closes for the reason; the test may find it closed before."""
    before = broker.log.read_text().count(reason)
    with WireClient(broker.bootstrap) as client:
        yield client
        while client.read_frame() is not None:
            pass
    eventually(lambda: broker.log.read_text().count(reason) > before, reason)


def test_old_librdkafka_sees_the_first_version_of_the_handshake(
    start: Start, key_file: Path
) -> None:
    """Otherwise it does not log in, although it uses the next version."""
    with WireClient(serve(start, key_file).bootstrap) as client:
        rows = client.call(ApiKey.API_VERSIONS, 0).api_keys
    (row,) = (row for row in rows if row.api_key == ApiKey.SASL_HANDSHAKE)
    assert (row.min_version, row.max_version) == (0, 1)


def until_closed(call: Callable[[], object]) -> None:
    """Repeat a request until the broker has closed the connection."""
    deadline = Deadline("the connection stays open")
    while True:
        try:
            call()
        except ConnectionError:
            return
        deadline.pause()


def is_served(client: WireClient) -> bool:
    return bool(client.call(ApiKey.METADATA, 1, topics=None).brokers)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_scram(start: Start, key_file: Path, mechanism: str) -> None:
    broker = serve(start, key_file)
    add_user(admin(broker), "ann,=", mechanism)
    with bucketlog.connect(broker.bootstrap, config=login("ann,=", mechanism)) as log:
        log.topics.create("t")
        with log.producer() as producer:
            producer.send(bucketlog.Topic("t"), b"value")
    for wrong in (login("ann,=", mechanism, "wrong"), login("bob", mechanism)):
        assert f"invalid credentials with SASL mechanism {mechanism}" in failure(broker, wrong)
    other = next(name for name in MECHANISMS if name != mechanism)
    assert "invalid credentials" in failure(broker, login("ann,=", other))
    assert failure(broker, {"security.protocol": "PLAINTEXT"})
    text = broker.log.read_text()
    assert "Traceback" not in text
    assert PASSWORD not in text


def test_before_the_login_three_apis_are_served(start: Start, key_file: Path) -> None:
    broker = serve(start, key_file, closing_lines_per_minute="1000")
    add_user(admin(broker), "ann", SHA_256)
    for key, versions in SERVED_VERSIONS.items():
        if key in LOGIN_APIS:
            continue
        with closing(broker, f"a request of API key {int(key)} before the login") as client:
            client.send_frame(sample_request(key, max(versions.each()), "t"))
    with closing(broker, "a request of API key 36 before the login") as client:
        client.send(ApiKey.SASL_AUTHENTICATE, 2, auth_bytes=b"")
    for key in (ApiKey.API_VERSIONS, ApiKey.METADATA, ApiKey.SASL_HANDSHAKE):
        with closing(broker, f"a request of API key {int(key)} before the login") as client:
            assert handshake(client) is ErrorCode.none
            client.send_frame(sample_request(key, 1, "t"))
    with WireClient(broker.bootstrap) as client:
        client.call(ApiKey.API_VERSIONS, 1)
        assert log_in(client, "ann").error_code == ErrorCode.none
        assert is_served(client)


def test_a_request_behind_a_login_is_served_only_if_it_succeeds(
    start: Start, key_file: Path
) -> None:
    """Requests that arrive together are handled in turn."""
    broker = serve(start, key_file)
    with closing(broker, "it wants the mechanism 'NONE', which is not enabled") as client:
        client.send(ApiKey.SASL_HANDSHAKE, 1, mechanism="NONE")
        client.send(ApiKey.METADATA, 1, topics=None)
        answer = client.receive(ApiKey.SASL_HANDSHAKE, 1)
        assert answer.error_code == ErrorCode.unsupported_sasl_mechanism
        assert answer.mechanisms == ("SCRAM-SHA-512", "SCRAM-SHA-256")
        assert client.read_frame() is None
    with closing(broker, "login by SCRAM-SHA-256 failed") as client:
        client.send(ApiKey.SASL_HANDSHAKE, 1, mechanism=SHA_256)
        client.send(ApiKey.SASL_AUTHENTICATE, 2, auth_bytes=b"wrong")
        client.send(ApiKey.METADATA, 1, topics=None)
        client.receive(ApiKey.SASL_HANDSHAKE, 1)
        refused = client.receive(ApiKey.SASL_AUTHENTICATE, 2)
        assert refused.error_code == ErrorCode.sasl_authentication_failed
        assert client.read_frame() is None


def test_the_size_of_requests_before_the_login(start: Start, key_file: Path) -> None:
    broker = serve(start, key_file)
    add_user(admin(broker), "ann", SHA_256)

    def request(size: int) -> bytes:
        empty = len(encode_request(ApiKey.SASL_AUTHENTICATE, 1, 1, {"auth_bytes": b""}))
        values = {"auth_bytes": bytes(size - empty)}
        return encode_request(ApiKey.SASL_AUTHENTICATE, 1, 1, values)

    with WireClient(broker.bootstrap) as client:
        handshake(client)
        assert len(request(REQUEST_BYTES_MAX)) == REQUEST_BYTES_MAX
        client.send_frame(request(REQUEST_BYTES_MAX))
        assert client.read_frame()
    with closing(broker, "(BUCKETLOG_SASL_REQUEST_BYTES_MAX)") as client:
        handshake(client)
        client.send_bytes((REQUEST_BYTES_MAX + 1).to_bytes(4, "big") + request(1000)[:2])
    produce_bytes = 1_000_000
    with closing(broker, "(BUCKETLOG_SASL_REQUEST_BYTES_MAX)") as client:
        client.send_bytes(produce_bytes.to_bytes(4, "big") + b"\0\0")
    with WireClient(broker.bootstrap) as client:
        assert log_in(client, "ann").error_code == ErrorCode.none
        names = [f"{number}".rjust(200, "x") for number in range(1000)]
        answer = client.call(ApiKey.METADATA, 1, topics=[{"name": name} for name in names])
        assert len(answer.topics) == len(names)


def test_the_time_of_a_login(start: Start, key_file: Path) -> None:
    broker = serve(start, key_file, login_ms_max="5000")
    add_user(admin(broker), "ann", SHA_256)
    late = "it has not logged in for 5000 ms (BUCKETLOG_LOGIN_MS_MAX)"
    with WireClient(broker.bootstrap) as known, WireClient(admin(broker)) as plain:
        assert log_in(known, "ann").error_code == ErrorCode.none
        with closing(broker, late), closing(broker, late) as begun, closing(broker, late) as busy:
            handshake(begun)
            until_closed(lambda: busy.call(ApiKey.API_VERSIONS, 1))
        assert is_served(known)
        assert is_served(plain)
    closed = broker.metrics()['bucketlog_connections_closed_total{reason="login_ms_max"}']
    assert closed == 3


def test_one_text_for_an_unknown_user_and_a_wrong_password(start: Start, key_file: Path) -> None:
    broker = serve(start, key_file, login_ms_max="100000000")  # the failure alone closes them
    add_user(admin(broker), "ann", SHA_256)
    answers = []
    for user, password in (("ann", "wrong"), ("nobody", PASSWORD), ("nobody", "wrong")):
        with WireClient(broker.bootstrap) as client:
            refused = log_in(client, user, password)
            answers.append((refused.error_code, refused.error_message, refused.auth_bytes))
            assert client.read_frame() is None
    assert set(answers) == {(ErrorCode.sasl_authentication_failed, REFUSED, b"")}


def test_a_listener_without_logins(start: Start, key_file: Path) -> None:
    broker = serve(start, key_file)
    with WireClient(admin(broker)) as client:
        assert handshake(client) is ErrorCode.illegal_sasl_state
        answer = authenticate(client, b"token")
        assert answer.error_code == ErrorCode.illegal_sasl_state
        assert answer.error_message == "This listener has no logins: use one with SASL"
        assert is_served(client)


def test_a_deleted_user_and_a_changed_password(start: Start, key_file: Path) -> None:
    broker = serve(start, key_file)
    add_user(admin(broker), "ann", SHA_256)
    with WireClient(broker.bootstrap) as open_before:
        assert log_in(open_before, "ann").error_code == ErrorCode.none
        add_user(admin(broker), "ann", SHA_256, "new")
        for password, wanted in ((PASSWORD, False), ("new", True)):
            with WireClient(broker.bootstrap) as client:
                code = log_in(client, "ann", password).error_code
                assert (code == ErrorCode.none) == wanted
        assert is_served(open_before)


def test_users_outlive_the_broker_and_its_keys_rotate(
    start: Start, key_file: Path, tmp_path: Path
) -> None:
    first = serve(start, key_file)
    add_user(admin(first), "ann", SHA_256)
    first.terminate()
    write_key_file(key_file, "cd" * 32, "ab" * 32)
    second = serve(start, key_file)
    add_user(admin(second), "bob", SHA_256)
    for user in ("ann", "bob"):
        with WireClient(second.bootstrap) as client:
            assert log_in(client, user).error_code == ErrorCode.none
    second.terminate()
    write_key_file(key_file, "cd" * 32)
    third = serve(start, key_file)
    with WireClient(third.bootstrap) as client:
        assert log_in(client, "bob").error_code == ErrorCode.none
    with WireClient(third.bootstrap) as client:
        assert log_in(client, "ann").error_code == ErrorCode.sasl_authentication_failed
    assert "the credential of user 'ann' is sealed with an unknown key" in third.log.read_text()
    objects = [file for file in tmp_path.rglob("*") if file.is_file() and "log/" in str(file)]
    assert any(b"SCRAM-SHA-256" in file.read_bytes() for file in objects)


def test_a_session_ends_and_a_client_authenticates_again(start: Start, key_file: Path) -> None:
    session_ms = 2000
    broker = serve(start, key_file, connections_reauth_ms_max=str(session_ms))
    for user in ("ann", "bob"):
        add_user(admin(broker), user, SHA_256)
    with (
        WireClient(broker.bootstrap) as again,
        WireClient(broker.bootstrap) as other,
        WireClient(broker.bootstrap) as silent,
    ):
        for client in (again, other, silent):
            answer = log_in(client, "ann")
            assert answer.error_code == ErrorCode.none
            assert answer.session_lifetime.total_seconds() * 1000 == session_ms
        until_closed(lambda: is_served(silent))
        assert log_in(again, "ann").error_code == ErrorCode.none  # its session has ended, too
        refused = log_in(other, "bob")
        assert refused.error_code == ErrorCode.sasl_authentication_failed
        words = "Cannot change principals during re-authentication from User:ann to User:bob"
        assert refused.error_message == words
        assert other.read_frame() is None
    assert "its session has ended (BUCKETLOG_CONNECTIONS_REAUTH_MS_MAX)" in broker.log.read_text()
