"""MirrorMaker 2 between Apache Kafka and a broker, both ways, with settings of topics."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from bucketlog.log_format.errors import ConfigurationError
from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.stateless_broker.handlers.described_configs import SOURCE_TOPIC
from localstack.apache_kafka import running_kafka
from tests.rigs.patience import PATIENCE_S, eventually
from tests.rigs.wire_client import WireClient
from tests.servers.components import Components
from tests.servers.kafka_applications import application, properties
from tests.servers.kafka_tools import KafkaTools
from tests.servers.lone_broker import lone_broker

pytestmark = pytest.mark.long

SETTINGS: Mapping[str, Mapping[str, str]] = {
    "gzip": {"compression.type": "gzip"},
    "flushed": {"flush.ms": "1000", "segment.bytes": "2000000"},
    "compacted": {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.1"},
}
CHANGE = ("segment.ms", "86400000")
RECORDS = 20
_INTERNAL = (
    *("replication.factor", "checkpoints.topic.replication.factor"),
    *("heartbeats.topic.replication.factor", "offset-syncs.topic.replication.factor"),
    *("offset.storage.replication.factor", "status.storage.replication.factor"),
    "config.storage.replication.factor",
)


@contextmanager
def mirror_maker(kafka: str, here: str, folder: Path) -> Iterator[Path]:
    """Copies topics both ways. Gives the file of its log."""
    said = folder / "mirror.log"
    config = properties(
        folder / "mirror.properties",
        {
            "clusters": "kafka,here",
            "kafka.bootstrap.servers": kafka,
            "here.bootstrap.servers": here,
            "kafka->here.enabled": "true",
            "here->kafka.enabled": "true",
            "topics": "(gzip|flushed|compacted)-.*",
            **dict.fromkeys(_INTERNAL, 1),
            "refresh.topics.interval.seconds": 1,
            "sync.topic.configs.interval.seconds": 1,
            "sync.topic.acls.enabled": "false",
        },
    )
    with application(KafkaTools(here), "mirror-maker", config, said):
        yield said


def own_settings(bootstrap: str, topic: str) -> dict[str, str]:
    """What is set for the topic; nothing if it does not exist."""
    resource = {"resource_type": 2, "resource_name": topic, "configuration_keys": None}
    with WireClient(bootstrap) as client:
        answer = client.call(ApiKey.DESCRIBE_CONFIGS, 4, resources=[resource])
    return {
        each.name: each.value
        for each in answer.results[0].configs
        if each.config_source == SOURCE_TOPIC
    }


def is_set(bootstrap: str, topic: str) -> bool:
    return CHANGE in own_settings(bootstrap, topic).items()


def records_in(bootstrap: str, topic: str) -> int | None:
    """Return the number of records; None if the broker does not lead the new topic yet."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "counts"})
    try:
        _, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), PATIENCE_S)
        return int(end)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.NOT_LEADER_FOR_PARTITION:
            raise
        return None
    finally:
        consumer.close()


def write_topics(bootstrap: str, origin: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    topics = [
        NewTopic(f"{kind}-{origin}", 1, 1, config=dict(settings))
        for kind, settings in SETTINGS.items()
    ]
    for future in admin.create_topics(topics).values():
        future.result(PATIENCE_S)
    producer = Producer({"bootstrap.servers": bootstrap})
    for kind in SETTINGS:
        for number in range(RECORDS):
            producer.produce(f"{kind}-{origin}", b"value", str(number).encode())
    assert producer.flush(PATIENCE_S) == 0


def wait_until_mirrored(source: str, target: str, origin: str, said: Path) -> None:
    """`origin`: the name of the source's cluster."""
    for kind, settings in SETTINGS.items():
        name, copy = f"{kind}-{origin}", f"{origin}.{kind}-{origin}"

        def is_the_same(name: str = name, copy: str = copy) -> bool:
            return own_settings(target, copy) == own_settings(source, name)

        assert own_settings(source, name).items() >= settings.items()
        eventually(is_the_same, lambda: said.read_text()[-4000:], pause_s=0.5)

        def has_all(copy: str = copy) -> bool:
            return records_in(target, copy) == RECORDS

        eventually(has_all, lambda: said.read_text()[-4000:], pause_s=0.5)


def test_topics_with_their_settings_go_both_ways(tmp_path: Path, components: Components) -> None:
    try:
        with (
            running_kafka(tmp_path / "kafka") as kafka,
            lone_broker(tmp_path, log_retention_check_interval_ms="0") as broker,
        ):
            components.took_part("Apache Kafka broker and MirrorMaker", kafka.version)
            places = {"kafka": kafka.bootstrap, "here": broker.bootstrap}
            for origin, bootstrap in places.items():
                write_topics(bootstrap, origin)
            with mirror_maker(kafka.bootstrap, broker.bootstrap, tmp_path) as said:
                ways = (("kafka", "here"), ("here", "kafka"))
                for origin, target in ways:
                    wait_until_mirrored(places[origin], places[target], origin, said)
                for origin, bootstrap in places.items():
                    name, value = CHANGE
                    change = (f"--topic=gzip-{origin}", "--add-config", f"{name}={value}")
                    KafkaTools(bootstrap).lines("kafka-configs", "--alter", *change)
                    eventually(partial(is_set, bootstrap, f"gzip-{origin}"), "it is not set")
                for origin, target in ways:
                    wait_until_mirrored(places[origin], places[target], origin, said)
    except ConfigurationError as error:
        components.missing("Apache Kafka", error.remedy)
