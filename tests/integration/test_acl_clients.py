"""ACLs with Apache Kafka's kafka-acls and librdkafka: what they add is what clients may do."""

from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.rigs.patience import PATIENCE_S, Deadline
from tests.rigs.users import PASSWORD, add_user, write_key_file
from tests.servers.broker_process import BrokerProcess, Start
from tests.servers.components import Components
from tests.servers.kafka_tools import KafkaTools, participating_tools

pytestmark = pytest.mark.long

MECHANISM = "SCRAM-SHA-256"
ADMIN = "ADMIN"


@pytest.fixture
def broker(start: Start, tmp_path: Path) -> BrokerProcess:
    """The user `bob` has no rights; everyone on the listener `ADMIN` is a super user."""
    found = start(
        listeners="IN:SASL_PLAINTEXT://127.0.0.1:0,ADMIN:PLAINTEXT://127.0.0.1:0",
        credentials_key_file=str(write_key_file(tmp_path / "keys")),
        authorization="true",
        super_users="User:ANONYMOUS",
        transactions="true",
    ).wait_until_ready()
    add_user(admin_address(found), "bob", MECHANISM)
    client = AdminClient({"bootstrap.servers": admin_address(found)})
    for future in client.create_topics([NewTopic("t", 1, 1), NewTopic("pre-1", 1, 1)]).values():
        future.result(PATIENCE_S)
    return found


@pytest.fixture
def acls(broker: BrokerProcess, components: Components) -> "KafkaAcls":
    return KafkaAcls(participating_tools(admin_address(broker), components))


def admin_address(broker: BrokerProcess) -> str:
    return str(broker.ready["listeners"][ADMIN])


class KafkaAcls:
    """kafka-acls, as a super user."""

    def __init__(self, tools: KafkaTools) -> None:
        self._tools = tools

    def __call__(self, *arguments: str) -> list[str]:
        return self._tools.lines("kafka-acls", *arguments)

    def add(self, *arguments: str) -> None:
        self("--add", *arguments)

    def remove(self, *arguments: str) -> None:
        self("--remove", "--force", *arguments)

    def rules(self, *arguments: str) -> list[str]:
        return sorted(line.strip() for line in self("--list", *arguments) if "principal=" in line)


def bob(broker: BrokerProcess) -> dict[str, str]:
    return {
        "bootstrap.servers": broker.bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": MECHANISM,
        "sasl.username": "bob",
        "sasl.password": PASSWORD,
    }


def produced(broker: BrokerProcess, topic: str, **config: str) -> KafkaError | None:
    """The error of a record that bob produces; None if it was acknowledged."""
    outcomes: list[KafkaError | None] = []
    producer = Producer(bob(broker) | {"message.timeout.ms": "20000"} | config)
    try:
        producer.produce(topic, b"v", on_delivery=lambda error, _: outcomes.append(error))
    except KafkaException as error:
        return error.args[0]  # type: ignore[no-any-return]  # a KafkaError
    producer.flush(PATIENCE_S)
    return outcomes[0]


def consumed(broker: BrokerProcess, topic: str, group: str = "g") -> KafkaError | bytes:
    """The first record that bob consumes as a member of the group, or the error."""
    consumer = Consumer(bob(broker) | {"group.id": group, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    deadline = Deadline(f"neither a record of {topic} nor an error")
    try:
        while True:
            message = consumer.poll(0.5)
            if message is not None:
                return message.error() or message.value() or b""
            deadline.check()
    finally:
        consumer.close()


def is_denied(outcome: KafkaError | bytes | None, code: int) -> bool:
    return isinstance(outcome, KafkaError) and outcome.code() == code


TOPIC_DENIED = KafkaError.TOPIC_AUTHORIZATION_FAILED
GROUP_DENIED = KafkaError.GROUP_AUTHORIZATION_FAILED


def test_rights_come_and_go(broker: BrokerProcess, acls: KafkaAcls) -> None:
    assert is_denied(produced(broker, "t"), TOPIC_DENIED)
    acls.add("--allow-principal", "User:bob", "--producer", "--topic", "t")
    assert produced(broker, "t") is None
    assert is_denied(produced(broker, "pre-1"), TOPIC_DENIED)
    assert is_denied(consumed(broker, "t"), GROUP_DENIED)
    acls.add("--allow-principal", "User:bob", "--consumer", "--topic", "t", "--group", "g")
    assert consumed(broker, "t") == b"v"
    assert is_denied(consumed(broker, "t", "other"), GROUP_DENIED)
    rules = acls.rules("--topic", "t")
    assert rules == sorted(
        f"(principal=User:bob, host=*, operation={operation}, permissionType=ALLOW)"
        for operation in ("CREATE", "DESCRIBE", "READ", "WRITE")
    )
    acls.remove("--allow-principal", "User:bob", "--producer", "--topic", "t")
    assert is_denied(produced(broker, "t"), TOPIC_DENIED)
    assert "operation=WRITE" not in "".join(acls.rules("--topic", "t"))


def test_prefixed_rules_and_rules_that_deny(broker: BrokerProcess, acls: KafkaAcls) -> None:
    prefixed = ("--topic", "pre-", "--resource-pattern-type", "prefixed")
    acls.add("--allow-principal", "User:*", "--operation", "Write", *prefixed)
    assert produced(broker, "pre-1") is None
    assert is_denied(produced(broker, "t"), TOPIC_DENIED)
    acls.add("--allow-principal", "User:bob", "--operation", "All", "--topic", "*")
    assert produced(broker, "t") is None
    acls.add("--deny-principal", "User:bob", "--operation", "Write", "--topic", "t")
    assert is_denied(produced(broker, "t"), TOPIC_DENIED)
    assert produced(broker, "pre-1") is None
    match = ("--topic", "t", "--resource-pattern-type", "match")
    assert len(acls.rules(*match)) == 2
    elsewhere = ("--deny-principal", "User:bob", "--deny-host", "10.9.9.9")
    acls.add(*elsewhere, "--operation", "Write", *prefixed)
    assert produced(broker, "pre-1") is None
    acls.add("--deny-principal", "User:bob", "--deny-host", "127.0.0.1", *prefixed)
    assert is_denied(produced(broker, "pre-1"), TOPIC_DENIED)


@pytest.fixture
def as_bob(broker: BrokerProcess) -> AdminClient:
    return AdminClient({**bob(broker)})


def error_of(call: Callable[[], object]) -> int:
    with pytest.raises(KafkaException) as raised:
        call()
    return int(raised.value.args[0].code())


def test_transactions(broker: BrokerProcess, acls: KafkaAcls) -> None:
    producer = Producer(bob(broker) | {"transactional.id": "x"})
    denied = KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert error_of(lambda: producer.init_transactions(PATIENCE_S)) == denied
    acls.add("--allow-principal", "User:bob", "--operation", "Write", "--transactional-id", "x")
    writer = Producer(bob(broker) | {"transactional.id": "x"})
    writer.init_transactions(PATIENCE_S)
    writer.begin_transaction()
    outcomes: list[KafkaError | None] = []
    writer.produce("t", b"v", on_delivery=lambda error, _: outcomes.append(error))
    writer.flush(PATIENCE_S)
    assert is_denied(outcomes[0], TOPIC_DENIED)
    acls.add("--allow-principal", "User:bob", "--operation", "Write", "--topic", "t")
    again = Producer(bob(broker) | {"transactional.id": "x"})
    again.init_transactions(PATIENCE_S)
    again.begin_transaction()
    again.produce("t", b"v")
    group = Consumer(bob(broker) | {"group.id": "g"})
    offsets = [TopicPartition("t", 0, 1)]
    metadata = group.consumer_group_metadata()
    sending = lambda: again.send_offsets_to_transaction(offsets, metadata, PATIENCE_S)  # noqa: E731  # read once
    assert error_of(sending) == GROUP_DENIED
    group.close()


def test_administration(broker: BrokerProcess, acls: KafkaAcls, as_bob: AdminClient) -> None:
    new = NewTopic("pre-new", 1, 1)

    def create() -> object:
        return as_bob.create_topics([new])["pre-new"].result(PATIENCE_S)

    def delete() -> object:
        return as_bob.delete_topics(["pre-new"])["pre-new"].result(PATIENCE_S)

    assert error_of(create) == TOPIC_DENIED
    assert as_bob.list_topics(timeout=PATIENCE_S).topics.keys() == set()
    prefixed = ("--topic", "pre-", "--resource-pattern-type", "prefixed")
    acls.add("--allow-principal", "User:bob", "--operation", "Create", *prefixed)
    create()
    assert as_bob.list_topics(timeout=PATIENCE_S).topics.keys() == set()
    assert error_of(delete) == TOPIC_DENIED
    acls.add("--allow-principal", "User:bob", "--operation", "Delete", *prefixed)
    assert as_bob.list_topics(timeout=PATIENCE_S).topics.keys() == {"pre-1", "pre-new"}
    delete()
    described = as_bob.describe_cluster(request_timeout=PATIENCE_S).result(PATIENCE_S)
    assert described.nodes
