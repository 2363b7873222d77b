"""Administration of transactions by third-party tools: kafka-transactions, kafka-python's admin."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaException, Producer
from kafka.admin import KafkaAdminClient
from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.api_keys import ApiKey
from tests.rigs.patience import PATIENCE_S
from tests.rigs.shell import Shell
from tests.rigs.wire_client import WireClient, transactional_values
from tests.scenarios.round_trip import create_topic
from tests.servers.broker_process import BrokerProcess
from tests.servers.components import Components
from tests.servers.kafka_tools import KafkaTools, participating_tools
from tests.servers.own_valkey import OwnValkey

pytestmark = pytest.mark.long

TOOL = "kafka-transactions"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    place: Path = tmp_path_factory.mktemp("transactions")
    valkey = OwnValkey(place)
    valkey.start()
    started = BrokerProcess(
        place / "broker.log",
        bucket_url=f"file://{place}/bucket",
        redis_url=f"unix://{valkey.path}",
        transactions="true",
        transaction_two_phase_commit="true",
    ).wait_until_ready()
    yield started
    started.kill()
    valkey.stop()


@pytest.fixture
def tools(broker: BrokerProcess, components: Components) -> KafkaTools:
    return participating_tools(broker.bootstrap, components)


def opened(broker: BrokerProcess, name: str) -> Producer:
    """A producer whose transaction has a record at offset 0 of partition 0 of this topic."""
    create_topic(broker.bootstrap, name, 2)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": name})
    producer.init_transactions(PATIENCE_S)
    producer.begin_transaction()
    producer.produce(name, b"value", partition=0)
    assert producer.flush(PATIENCE_S) == 0
    return producer


def table(lines: list[str]) -> list[dict[str, str]]:
    head, *rows = (line.split("\t") for line in lines)
    names = [each.strip() for each in head]
    return [dict(zip(names, (each.strip() for each in row), strict=True)) for row in rows]


def states(tools: KafkaTools) -> dict[str, str]:
    rows = table(tools.lines(TOOL, "list"))
    return {row["TransactionalId"]: row["TransactionState"] for row in rows}


def test_kafkas_tool_finds_and_aborts_a_transaction(
    broker: BrokerProcess, tools: KafkaTools
) -> None:
    producer = opened(broker, "java")
    assert states(tools)["java"] == "Ongoing"
    (described,) = table(tools.lines(TOOL, "describe", "--transactional-id", "java"))
    assert (described["TransactionState"], described["TopicPartitions"]) == ("Ongoing", "java-0")
    place = ("--topic", "java", "--partition", "0")
    (row,) = table(tools.lines(TOOL, "describe-producers", *place))
    assert row["CurrentTransactionStartOffset"] == "0"
    assert row["ProducerId"] == described["ProducerId"]
    tools.lines(TOOL, "abort", *place, "--start-offset", "0")
    assert states(tools)["java"] == "CompleteAbort"
    with pytest.raises(KafkaException) as caught:
        producer.commit_transaction(PATIENCE_S)
    assert caught.value.args[0].txn_requires_abort()
    producer.abort_transaction(PATIENCE_S)
    producer.begin_transaction()
    producer.commit_transaction(PATIENCE_S)


def test_nothing_hangs_that_the_coordinator_knows(broker: BrokerProcess, tools: KafkaTools) -> None:
    producer = opened(broker, "hanging")
    limit = ("--max-transaction-timeout", "0")
    lines = tools.lines(TOOL, "find-hanging", "--topic", "hanging", "--partition", "0", *limit)
    assert table(lines) == []
    producer.abort_transaction(PATIENCE_S)


def test_kafka_pythons_admin(broker: BrokerProcess) -> None:
    producer = opened(broker, "python")
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    try:
        assert "python" in str(admin.list_transactions())
        assert "Ongoing" in str(admin.describe_transactions(["python"])).title()
    finally:
        admin.close()
    producer.abort_transaction(PATIENCE_S)


def test_the_command_line(broker: BrokerProcess) -> None:
    producer, shell = opened(broker, "shell"), Shell(broker.bootstrap)
    rows = json.loads(shell.ok("transaction", "list", "-o", "json"))
    assert "Ongoing" in {row["state"] for row in rows if row["transactional_id"] == "shell"}
    found = json.loads(shell.ok("transaction", "describe", "shell", "-o", "jsonl"))
    assert (found["state"], found["partitions"]) == ("Ongoing", [["shell", 0]])
    assert b"shell[0]" in shell.ok("transaction", "describe", "shell")
    shell.ok("transaction", "abort", "shell", "--yes")
    assert "CompleteAbort" in shell.failing(1, "transaction", "abort", "shell", "-y")
    missing = shell.failing(1, "transaction", "describe", "none")
    assert "bucketlog transaction list" in missing
    with pytest.raises(KafkaException) as caught:
        producer.commit_transaction(PATIENCE_S)
    assert caught.value.args[0].txn_requires_abort()
    producer.abort_transaction(PATIENCE_S)


# Two-phase commit ------------------------------------------------------------------------------


def kept(broker: BrokerProcess, name: str) -> int:
    """Make a transaction without timeout that a second producer keeps. Return the id of the
    producer that began the transaction."""
    create_topic(broker.bootstrap, name, 2)
    with WireClient(broker.bootstrap) as client:
        first = initialise(client, name)
        values = transactional_values(name, first, name, 0, b"value")
        answer = client.call(ApiKey.PRODUCE, 12, **values)
        assert answer.responses[0].partition_responses[0].error_code is ErrorCode.none
        initialise(client, name)
    return first[0]


def initialise(client: WireClient, name: str) -> tuple[int, int]:
    answer = client.call(
        ApiKey.INIT_PRODUCER_ID,
        6,
        transactional_id=name,
        transaction_timeout=1_000,
        enable2_pc=True,
        keep_prepared_txn=True,
    )
    assert answer.error_code is ErrorCode.none
    return answer.producer_id, answer.producer_epoch


def test_kafkas_tool_aborts_a_kept_transaction(broker: BrokerProcess, tools: KafkaTools) -> None:
    producer_id = kept(broker, "kept")
    (described,) = table(tools.lines(TOOL, "describe", "--transactional-id", "kept"))
    assert (described["TransactionState"], described["TopicPartitions"]) == ("Ongoing", "kept-0")
    assert int(described["TransactionTimeoutMs"]) == 2**31 - 1
    assert int(described["ProducerId"]) == producer_id
    place = ("--topic", "kept", "--partition", "0")
    tools.lines(TOOL, "abort", *place, "--start-offset", "0")
    assert states(tools)["kept"] == "CompleteAbort"


def test_kafkas_tool_terminates_a_kept_transaction(
    broker: BrokerProcess, tools: KafkaTools
) -> None:
    """The tool sends InitProducerId version 5, which keeps no transaction."""
    kept(broker, "terminated")
    tools.lines(TOOL, "forceTerminateTransaction", "--transactionalId", "terminated")
    assert states(tools)["terminated"] == "Empty"
    place = ("--topic", "terminated", "--partition", "0")
    (row,) = table(tools.lines(TOOL, "describe-producers", *place))
    assert row["CurrentTransactionStartOffset"] == "None"


def test_the_command_line_aborts_a_kept_transaction(broker: BrokerProcess) -> None:
    kept(broker, "shelved")
    shell = Shell(broker.bootstrap)
    shell.ok("transaction", "abort", "shelved", "--yes")
    assert b"CompleteAbort" in shell.ok("transaction", "describe", "shelved")
