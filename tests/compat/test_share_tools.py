"""Kafka's own tools for share groups: console and verifiable consumer, kafka-share-groups."""

import json
from itertools import count

import pytest
from confluent_kafka import Producer

from bucketlog.embedded.cluster import EmbeddedCluster
from tests.scenarios.round_trip import create_topic
from tests.servers.kafka_tools import KafkaTools

pytestmark = pytest.mark.long

PARTITIONS, RECORDS = 3, 300
_GROUPS = ("kafka-share-groups",)
_numbers = count()


@pytest.fixture
def topic(broker: EmbeddedCluster) -> str:
    """With records in every partition."""
    name = f"share-tools-{next(_numbers)}"
    create_topic(broker.bootstrap, name, PARTITIONS)
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(RECORDS):
        producer.produce(name, b"%d" % number, partition=number % PARTITIONS)
    assert producer.flush(60) == 0
    return name


def begin(tools: KafkaTools, group: str, topic: str) -> None:
    """Let the group exist, and begin at the start of the topic."""
    read = tools.run(
        *("kafka-console-share-consumer", "--topic", topic, "--group", group),
        *("--timeout-ms", "3000"),
    )
    assert read.stdout == b""
    reset = ("--reset-offsets", "--to-earliest", "--topic", topic, "--execute")
    tools.lines(*_GROUPS, "--group", group, *reset)


def positions(tools: KafkaTools, group: str) -> dict[int, tuple[int, int]]:
    """Start offset and lag by partition, as `--describe` shows them."""
    rows = [line.split() for line in tools.lines(*_GROUPS, "--describe", "--group", group)]
    return {int(row[2]): (int(row[3]), int(row[4])) for row in rows if row[:1] == [group]}


def test_a_share_group_from_its_first_record_to_its_deletion(tools: KafkaTools, topic: str) -> None:
    group, each = f"group-of-{topic}", RECORDS // PARTITIONS
    begin(tools, group, topic)
    assert positions(tools, group) == dict.fromkeys(range(PARTITIONS), (0, each))
    read = tools.lines(
        *("kafka-console-share-consumer", "--topic", topic, "--group", group),
        *("--max-messages", str(RECORDS), "--timeout-ms", "60000"),
    )
    assert sorted(map(int, read)) == list(range(RECORDS))
    assert positions(tools, group) == dict.fromkeys(range(PARTITIONS), (each, 0))
    listed = [line.split() for line in tools.lines(*_GROUPS, "--list", "--state")]
    assert [group, "Empty"] in listed
    tools.lines(*_GROUPS, "--group", group, "--delete-offsets", "--topic", topic)
    assert [group, "Empty"] not in [
        line.split() for line in tools.lines(*_GROUPS, "--list", "--state")
    ]


def test_rejected_records_are_not_delivered_again(tools: KafkaTools, topic: str) -> None:
    group = f"group-of-{topic}"
    begin(tools, group, topic)
    read = tools.lines(
        *("kafka-console-share-consumer", "--topic", topic, "--group", group, "--reject"),
        *("--max-messages", str(RECORDS), "--timeout-ms", "60000"),
    )
    assert sorted(map(int, read)) == list(range(RECORDS))
    assert {lag for _, lag in positions(tools, group).values()} == {0}
    tools.lines(*_GROUPS, "--delete", "--group", group)
    assert group not in tools.lines(*_GROUPS, "--list")


def test_the_verifiable_share_consumer(tools: KafkaTools, topic: str) -> None:
    group = f"group-of-{topic}"
    begin(tools, group, topic)
    lines = tools.lines(
        *("kafka-verifiable-share-consumer", "--topic", topic, "--group-id", group),
        *("--max-messages", str(RECORDS)),
    )
    events = [json.loads(line) for line in lines]
    acknowledged = sum(
        event["count"] for event in events if event["name"] == "offsets_acknowledged"
    )
    assert acknowledged == RECORDS
    assert {lag for _, lag in positions(tools, group).values()} == {0}
