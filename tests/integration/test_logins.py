"""A broker process with SASL listeners, and real clients."""

from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._scram import (
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

import bucketlog
from tests.rigs.patience import PATIENCE_S
from tests.servers.broker_process import BrokerProcess, Start

PASSWORD = "a password, not SASLprep'd: ü=,"
MECHANISMS = {
    "SCRAM-SHA-256": ScramMechanism.SCRAM_SHA_256,
    "SCRAM-SHA-512": ScramMechanism.SCRAM_SHA_512,
}


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    path = tmp_path / "keys"
    path.touch(0o600)
    path.write_text("ab" * 32)
    return path


def serve(
    start: Start, key_file: Path, protocol: str = "SASL_PLAINTEXT", **more: str
) -> BrokerProcess:
    return start(
        listeners=f"IN:{protocol}://127.0.0.1:0,ADMIN:PLAINTEXT://127.0.0.1:0",
        credentials_key_file=str(key_file),
        **more,
    ).wait_until_ready()


def admin(broker: BrokerProcess) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.ready["listeners"]["ADMIN"]})


def add_user(broker: BrokerProcess, user: str, mechanism: str, password: str = PASSWORD) -> None:
    info = ScramCredentialInfo(MECHANISMS[mechanism], 4096)
    change = UserScramCredentialUpsertion(user, info, password=password.encode())
    client = admin(broker)
    for future in client.alter_user_scram_credentials([change]).values():
        future.result(PATIENCE_S)


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


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_scram(start: Start, key_file: Path, mechanism: str) -> None:
    broker = serve(start, key_file)
    add_user(broker, "ann,=", mechanism)
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
