"""The consumer protocol (KIP-848): Apache Kafka's answers to the same requests."""

from pathlib import Path

import pytest

from bucketlog.embedded.cluster import EmbeddedCluster
from bucketlog.log_format.errors import ConfigurationError
from localstack.apache_kafka import running_kafka
from tests.scenarios.consumer_protocol_steps import run_all
from tests.servers.components import Components

pytestmark = pytest.mark.long

DOCUMENTED = {
    "invalid requests: heartbeat to nothing",
    "invalid requests: leave from nothing",
    "one group: again",
    "reconciliation: it does not say what it has",
    "reconciliation: it still has all",
}
"""Where bucketlog lets members join again, and Kafka does not; and where bucketlog shows partitions
that a member has not reported yet (docs/compatibility.md)."""


def test_answers_are_kafkas(tmp_path: Path, components: Components) -> None:
    settings = {"group_consumer_assignment_interval_ms": "1000"}
    with EmbeddedCluster(tmp_path / "bucketlog", settings=settings) as cluster:
        ours = run_all(cluster.bootstrap)
    try:
        with running_kafka(tmp_path / "kafka") as kafka:
            components.took_part("Apache Kafka broker", kafka.version)
            theirs = run_all(kafka.bootstrap)
    except ConfigurationError as error:
        components.missing("Apache Kafka", error.remedy)
    assert ours.keys() == theirs.keys()
    different = {step for step, answer in ours.items() if answer != theirs[step]}
    assert different == DOCUMENTED, {step: (ours[step], theirs[step]) for step in different}
