"""Consumers of several kinds in one consumer group, and kcat's."""

import subprocess
from itertools import count
from pathlib import Path

import pytest
from confluent_kafka import Producer

from bucketlog.embedded.cluster import EmbeddedCluster
from tests.scenarios.clients import CLIENTS
from tests.scenarios.group_members import (
    MEMBERS,
    Ledger,
    confluent_member,
    consumer_protocol_member,
)
from tests.scenarios.java_member import java_consumer_protocol_member, java_member
from tests.scenarios.mixed_group import mixed_group
from tests.scenarios.round_trip import create_topic
from tests.servers.components import Components
from tests.servers.kafka_tools import KafkaTools

PARTITIONS = 6
RECORDS = 300
"""A step of a test."""
_numbers = count()


@pytest.fixture
def topic(broker: EmbeddedCluster) -> str:
    name = f"groups-{next(_numbers)}"
    create_topic(broker.bootstrap, name, PARTITIONS)
    return name


def produce(broker: EmbeddedCluster, topic: str) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(RECORDS):
        producer.produce(topic, b"record %d" % number, partition=number % PARTITIONS)
    assert producer.flush(30) == 0


def test_every_record_once_in_a_group_of_all_clients(
    broker: EmbeddedCluster, components: Components, tools: KafkaTools
) -> None:
    for name in MEMBERS:
        components.took_part(name, CLIENTS[name].version())
    kinds = MEMBERS | {"java": java_member}
    mixed_group(broker.bootstrap, f"mixed-{next(_numbers)}", kinds, records=RECORDS)


def test_every_record_once_in_a_group_of_both_protocols(
    tmp_path: Path, components: Components, tools: KafkaTools
) -> None:
    """The group changes to the consumer protocol, and back when all but the last have gone."""
    for name in ("confluent-kafka", "java"):
        components.took_part(name, CLIENTS[name].version() if name in CLIENTS else tools.version)
    kinds = {
        "classic": confluent_member,
        "consumer": consumer_protocol_member,
        "java": java_consumer_protocol_member,
        "classic again": confluent_member,
    }
    settings = {"group_consumer_heartbeat_interval_ms": "300"}
    with EmbeddedCluster(tmp_path, settings=settings) as cluster:
        mixed_group(cluster.bootstrap, f"both-{next(_numbers)}", kinds, records=RECORDS)


def test_the_ledger_finds_what_is_planted() -> None:
    def told(*deeds: tuple[str, str, int] | tuple[str, str, int, float]) -> list[str]:
        ledger = Ledger()
        for deed, member, partition, *when in deeds:
            at = when[0] if when else None
            match deed:
                case "owns":
                    ledger.own(member, [partition], at)
                case "gives up":
                    ledger.disown(member, [partition], at)
                case _:
                    ledger.process(member, partition, 0, at)
        return ledger.wrong + [f"{partition} was not given up" for partition in ledger.taken]

    assert not told(("owns", "a", 0), ("reads", "a", 0), ("gives up", "a", 0), ("owns", "b", 0))
    assert told(("owns", "a", 0), ("owns", "b", 0))
    assert told(("owns", "a", 0), ("reads", "b", 0))
    assert told(("owns", "a", 0), ("gives up", "a", 0), ("reads", "a", 0))
    late = ("owns", "java", 0, 1.0), ("owns", "b", 0, 3.0)  # heard of before what came first
    assert not told(*late, ("reads", "java", 0, 1.9), ("gives up", "java", 0, 2.0))
    assert told(*late)
    assert told(*late, ("reads", "java", 0, 3.5), ("gives up", "java", 0, 2.0))
    assert told(*late, ("gives up", "java", 0, 3.5))


def test_kcat_in_a_group_goes_on_where_it_was(
    broker: EmbeddedCluster, components: Components, topic: str
) -> None:
    kcat = components.program("kcat", "apt-get install kcat, or your system's package", ("-V",))
    produce(broker, topic)

    def consume(records: int) -> list[str]:
        done = subprocess.run(
            [
                *(kcat, "-b", broker.bootstrap, "-G", f"kcat of {topic}", "-q"),
                *("-X", "auto.offset.reset=earliest", "-c", str(records), topic),
            ],
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        return done.stdout.splitlines()

    first, second = consume(100), consume(RECORDS - 100)
    assert sorted(first + second) == sorted(f"record {number}" for number in range(RECORDS))
