"""What a request sees of the change before it on the same connection: Apache Kafka's answers."""

from pathlib import Path

import pytest

from bucketlog.embedded.cluster import EmbeddedCluster
from bucketlog.log_format.errors import ConfigurationError
from localstack.apache_kafka import running_kafka
from tests.scenarios.pipelined_pairs import PAIRS, times_seen
from tests.servers.components import Components

pytestmark = pytest.mark.long

TRIES = 10


def test_a_request_sees_at_least_what_kafka_shows(
    broker: EmbeddedCluster, tmp_path: Path, components: Components
) -> None:
    kafkas: dict[str, int] = {}
    ours: dict[str, int] = {}
    try:
        with running_kafka(tmp_path / "kafka") as kafka:
            components.took_part("Apache Kafka broker", kafka.version)
            for number, (name, pair) in enumerate(PAIRS.items()):
                kafkas[name] = times_seen(kafka.bootstrap, pair, f"order-{number}", TRIES)
                ours[name] = times_seen(broker.bootstrap, pair, f"order-{number}", TRIES)
    except ConfigurationError as error:
        components.missing("Apache Kafka", error.remedy)
    assert ours == dict.fromkeys(PAIRS, TRIES)
    in_order = {name for name, pair in PAIRS.items() if not pair.kafka_is_late}
    assert {name: kafkas[name] for name in in_order} == dict.fromkeys(in_order, TRIES), kafkas
