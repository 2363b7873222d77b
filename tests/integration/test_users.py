"""Users by Apache Kafka's kafka-configs, and by the requests that it sends (KIP-554)."""

from pathlib import Path
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.api_keys import ApiKey
from tests.rigs.certificate_authority import Authority
from tests.rigs.client_tls import ClientLogin, ClientTls
from tests.rigs.users import write_key_file
from tests.rigs.wire_client import WireClient
from tests.scenarios.round_trip import create_topic
from tests.servers.broker_process import BrokerProcess, Start
from tests.servers.components import Components
from tests.servers.kafka_tools import KafkaTools, participating_tools

pytestmark = pytest.mark.long

USERS = ("--entity-type", "users")
ANN = (*USERS, "--entity-name", "ann")
SHA_256, SHA_512 = 1, 2
ITERATIONS = 4096


@pytest.fixture
def root(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def broker(start: Start, root: Authority) -> BrokerProcess:
    issued = root.issue("broker")
    return start(
        listeners="ADMIN:PLAINTEXT://127.0.0.1:0,IN:SASL_SSL://127.0.0.1:0",
        ssl_certificate_file=str(issued.certificate),
        ssl_key_file=str(issued.key),
        credentials_key_file=str(write_key_file(root.folder / "keys")),
        sasl_mechanisms="SCRAM-SHA-256,SCRAM-SHA-512,PLAIN",
        scram_credentials_max="3",
        user_bytes_max="20",
    ).wait_until_ready()


def address(broker: BrokerProcess, listener: str) -> str:
    return str(broker.ready["listeners"][listener])


def is_known(broker: BrokerProcess, root: Authority, tools: KafkaTools, login: ClientLogin) -> bool:
    config = root.folder / "client.properties"
    config.write_text(
        ClientTls(root.file, login=login).java(
            default_api_timeout_ms="20000", request_timeout_ms="5000"
        )
    )
    there = KafkaTools(address(broker, "IN"))
    done = there.run("kafka-topics", "--list", "--command-config", str(config))
    complaint = (done.stdout + done.stderr).decode()
    assert (done.returncode == 0) == ("SaslAuthenticationException" not in complaint), complaint
    return done.returncode == 0


def test_a_user_from_creation_to_deletion(
    broker: BrokerProcess, root: Authority, components: Components
) -> None:
    tools = participating_tools(address(broker, "ADMIN"), components)
    change = ("kafka-configs", "--alter", *ANN)
    password = "SCRAM-SHA-512=[iterations=8192,password=secret]"
    assert tools.lines(*change, "--add-config", password) == [
        "Completed updating config for user ann."
    ]
    assert tools.lines("kafka-configs", "--describe", *USERS) == [
        "SCRAM credential configs for user-principal 'ann' are SCRAM-SHA-512=iterations=8192"
    ]
    for mechanism, word, known in (
        ("SCRAM-SHA-512", "secret", True),
        ("SCRAM-SHA-512", "wrong", False),
        ("PLAIN", "secret", True),
        ("PLAIN", "wrong", False),
        ("SCRAM-SHA-256", "secret", False),
    ):
        login = ClientLogin("ann", word, mechanism)
        assert is_known(broker, root, tools, login) == known, (mechanism, word)
    both = ("SCRAM-SHA-256=[password=other]", "SCRAM-SHA-512=[password=new]")
    assert tools.run(*change, "--add-config", ",".join(both)).returncode == 1  # as with Kafka
    for each in both:
        tools.lines(*change, "--add-config", each)
    assert tools.lines("kafka-configs", "--describe", *ANN) == [
        "SCRAM credential configs for user-principal 'ann' are "
        "SCRAM-SHA-256=iterations=4096, SCRAM-SHA-512=iterations=4096"
    ]
    assert is_known(broker, root, tools, ClientLogin("ann", "new", "SCRAM-SHA-512"))
    assert is_known(broker, root, tools, ClientLogin("ann", "other", "SCRAM-SHA-256"))
    assert not is_known(broker, root, tools, ClientLogin("ann", "secret", "SCRAM-SHA-512"))
    tools.lines(*change, "--delete-config", "SCRAM-SHA-512")
    assert not is_known(broker, root, tools, ClientLogin("ann", "new", "SCRAM-SHA-512"))
    assert is_known(broker, root, tools, ClientLogin("ann", "other", "SCRAM-SHA-256"))
    again = tools.run(*change, "--delete-config", "SCRAM-SHA-512")
    assert again.returncode == 1
    tools.lines(*change, "--delete-config", "SCRAM-SHA-256")
    assert tools.lines("kafka-configs", "--describe", *USERS) == []
    assert "Traceback" not in broker.log.read_text()


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512", "PLAIN"])
def test_java_clients_log_in(
    broker: BrokerProcess, root: Authority, components: Components, mechanism: str
) -> None:
    admin = participating_tools(address(broker, "ADMIN"), components)
    create_topic(address(broker, "ADMIN"), "t", 1)
    stored = "SCRAM-SHA-512" if mechanism == "PLAIN" else mechanism
    password = f"{stored}=[password=a secret]"
    admin.lines("kafka-configs", "--alter", *ANN, "--add-config", password)
    config = root.folder / "client.properties"
    login = ClientLogin("ann", "a secret", mechanism)
    config.write_text(ClientTls(root.file, login=login).java())
    tools, own = KafkaTools(address(broker, "IN")), ("--command-config", str(config))
    lines = [f"line {number}" for number in range(100)]
    text = "\n".join(lines).encode()
    tools.lines("kafka-console-producer", "--topic", "t", *own, stdin=text)
    read = tools.run(
        *("kafka-console-consumer", "--topic", "t", "--from-beginning", *own),
        *("--max-messages", str(len(lines))),
    )
    assert read.stdout.decode().splitlines() == lines


def upsertion(name: str, mechanism: int = SHA_256, **changes: Any) -> dict[str, Any]:
    return {
        "name": name,
        "mechanism": mechanism,
        "iterations": ITERATIONS,
        "salt": b"salt",
        "salted_password": b"p" * 32,
    } | changes


def alter(
    client: WireClient,
    *upsertions: dict[str, Any],
    deletions: tuple[dict[str, Any], ...] = (),
) -> dict[str, ErrorCode]:
    answer = client.call(
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, upsertions=upsertions, deletions=deletions
    )
    return {row.user: ErrorCode(row.error_code) for row in answer.results}


def describe(client: WireClient, *users: str) -> dict[str, tuple[ErrorCode, list[tuple[int, int]]]]:
    """By user: the error, and the mechanisms with their iterations."""
    asked = [{"name": user} for user in users] or None
    answer = client.call(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, users=asked)
    assert answer.error_code == ErrorCode.none
    return {
        row.user: (
            ErrorCode(row.error_code),
            [(info.mechanism, info.iterations) for info in row.credential_infos],
        )
        for row in answer.results
    }


def test_changes_that_are_refused(broker: BrokerProcess) -> None:
    unacceptable = ErrorCode.unacceptable_credential
    with WireClient(address(broker, "ADMIN")) as client:
        assert alter(client, upsertion("ann")) == {"ann": ErrorCode.none}
        for wrong, code in (
            (upsertion(""), unacceptable),
            (upsertion("x" * 21), unacceptable),
            (upsertion("bob", 0), ErrorCode.unsupported_sasl_mechanism),
            (upsertion("bob", 3), ErrorCode.unsupported_sasl_mechanism),
            (upsertion("bob", iterations=4095), unacceptable),
            (upsertion("bob", iterations=16_385), unacceptable),
            (upsertion("bob", iterations=-1), unacceptable),
            (upsertion("bob", salt=b""), unacceptable),
            (upsertion("bob", salt=bytes(513)), unacceptable),
            (upsertion("bob", salted_password=b""), unacceptable),
        ):
            assert alter(client, wrong) == {wrong["name"]: code}, wrong
        gone = {"name": "bob", "mechanism": SHA_256}
        assert alter(client, deletions=(gone,)) == {"bob": ErrorCode.resource_not_found}
        both = {"name": "eve", "mechanism": SHA_512}
        assert alter(client, upsertion("eve"), upsertion("bob"), deletions=(both,)) == {
            "eve": ErrorCode.duplicate_resource,
            "bob": ErrorCode.none,
        }
        many = alter(client, upsertion("c"), upsertion("d"))
        assert sorted(many.values()) == sorted([ErrorCode.none, ErrorCode.policy_violation])
        assert alter(client, upsertion("e")) == {"e": ErrorCode.policy_violation}
        assert describe(client) == {
            name: (ErrorCode.none, [(SHA_256, ITERATIONS)]) for name in ("ann", "bob", "c")
        }


def test_descriptions(broker: BrokerProcess) -> None:
    with WireClient(address(broker, "ADMIN")) as client:
        assert describe(client) == {}
        alter(client, upsertion("ann", SHA_512))
        alter(client, upsertion("ann", SHA_256))
        both = [(SHA_256, ITERATIONS), (SHA_512, ITERATIONS)]
        assert describe(client, "ann", "bob", "bob") == {
            "ann": (ErrorCode.none, both),
            "bob": (ErrorCode.duplicate_resource, []),
        }
        assert describe(client, "bob") == {"bob": (ErrorCode.resource_not_found, [])}


def test_a_full_cluster_can_change_passwords(broker: BrokerProcess) -> None:
    with WireClient(address(broker, "ADMIN")) as client:
        for name in ("ann", "bob", "eve"):
            alter(client, upsertion(name))
        assert alter(client, upsertion("ann", iterations=5000)) == {"ann": ErrorCode.none}
        assert describe(client, "ann") == {"ann": (ErrorCode.none, [(SHA_256, 5000)])}


def test_without_a_key_nothing_changes(start: Start) -> None:
    broker = start().wait_until_ready()
    with WireClient(broker.bootstrap) as client:
        assert alter(client, upsertion("ann")) == {"ann": ErrorCode.security_disabled}
        assert describe(client) == {}
