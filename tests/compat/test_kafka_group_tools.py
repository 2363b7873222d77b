"""Apache Kafka's own tools for consumer groups: consumers in a group, kafka-consumer-groups."""

import json
from itertools import count

import pytest
from confluent_kafka import Producer

from bucketlog.embedded.cluster import EmbeddedCluster
from tests.scenarios.round_trip import create_topic
from tests.servers.kafka_tools import KafkaTools

pytestmark = pytest.mark.long

PARTITIONS, RECORDS = 3, 300
_numbers = count()


@pytest.fixture
def topic(broker: EmbeddedCluster) -> str:
    """With records in every partition."""
    name = f"group-tools-{next(_numbers)}"
    create_topic(broker.bootstrap, name, PARTITIONS)
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(RECORDS):
        producer.produce(name, b"%d" % number, partition=number % PARTITIONS)
    assert producer.flush(30) == 0
    return name


def positions(tools: KafkaTools, group: str) -> dict[int, tuple[int, int]]:
    """Committed offset and lag by partition, as `--describe` shows them."""
    rows = [line.split() for line in tools.lines(*_GROUPS, "--describe", "--group", group)]
    return {int(row[2]): (int(row[3]), int(row[5])) for row in rows if row[:1] == [group]}


_GROUPS = ("kafka-consumer-groups",)


def test_a_group_from_its_first_record_to_its_deletion(tools: KafkaTools, topic: str) -> None:
    group, each = f"group of {topic}".replace(" ", "-"), RECORDS // PARTITIONS
    read = tools.lines(
        *("kafka-console-consumer", "--topic", topic, "--group", group, "--from-beginning"),
        *("--max-messages", str(RECORDS), "--timeout-ms", "20000"),
    )
    assert sorted(map(int, read)) == list(range(RECORDS))
    assert positions(tools, group) == dict.fromkeys(range(PARTITIONS), (each, 0))
    listed = [line.split() for line in tools.lines(*_GROUPS, "--list", "--state")]
    assert [group, "Empty"] in listed
    reset = ("--reset-offsets", "--to-offset", "40", "--topic", topic, "--execute")
    tools.lines(*_GROUPS, "--group", group, *reset)
    tools.lines(*_GROUPS, "--group", group, "--delete-offsets", "--topic", f"{topic}:0")
    assert positions(tools, group) == {1: (40, each - 40), 2: (40, each - 40)}
    tools.lines(*_GROUPS, "--delete", "--group", group)
    assert group not in tools.lines(*_GROUPS, "--list")


def test_the_verifiable_consumer(tools: KafkaTools, topic: str) -> None:
    lines = tools.lines(
        *("kafka-verifiable-consumer", "--topic", topic, "--group-id", f"v-{topic}"),
        *("--max-messages", str(RECORDS), "--reset-policy", "earliest"),
    )
    events = [json.loads(line) for line in lines if line.startswith("{")]
    read = sum(each["count"] for each in events if each["name"] == "records_consumed")
    commits = [each["success"] for each in events if each["name"] == "offsets_committed"]
    assert read == RECORDS
    assert commits
    assert all(commits)
