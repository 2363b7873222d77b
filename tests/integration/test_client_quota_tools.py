"""Client quotas with Apache Kafka's kafka-configs."""

import pytest

from tests.servers.broker_process import Start
from tests.servers.components import Components
from tests.servers.kafka_tools import participating_tools

pytestmark = pytest.mark.long

ENTITIES = [
    (("--entity-type", "users", "--entity-name", "ann"), "producer_byte_rate=1024"),
    (("--entity-type", "clients", "--entity-default"), "consumer_byte_rate=2048"),
    (
        (
            "--entity-type",
            "users",
            "--entity-name",
            "ann",
            "--entity-type",
            "clients",
            "--entity-name",
            "app",
        ),
        "request_percentage=12.5",
    ),
    (("--entity-type", "ips", "--entity-name", "10.0.0.1"), "connection_creation_rate=7"),
]


def test_kafka_configs_sets_and_shows_quotas(start: Start, components: Components) -> None:
    broker = start().wait_until_ready()
    tools = participating_tools(broker.bootstrap, components)
    for entity, quota in ENTITIES:
        tools.lines("kafka-configs", "--alter", *entity, "--add-config", quota)
    for entity, quota in ENTITIES:
        key, value = quota.split("=")
        said = "\n".join(tools.lines("kafka-configs", "--describe", *entity))
        assert f"{key}={float(value)}" in said, said
    user, _ = ENTITIES[0]
    tools.lines("kafka-configs", "--alter", *user, "--delete-config", "producer_byte_rate")
    assert "producer_byte_rate" not in "\n".join(tools.lines("kafka-configs", "--describe", *user))
