"""kafka_exporter: Prometheus metrics of topics and groups.

The test in its repository only requests the metrics. The tests here compare their values.
"""

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.compat.go_tools.conftest import Metrics, Program


@pytest.fixture
def metrics(program: "Program", port: int) -> "Iterator[Metrics]":
    arguments = (
        f"--kafka.server={os.environ['GIVEN_BROKER']}",
        "--kafka.version=2.8.0",
        f"--web.listen-address=127.0.0.1:{port}",
    )
    with program.serving(port, *arguments) as found:
        yield found


def test_offsets_of_partitions(metrics: "Metrics", topic: str) -> None:
    metrics.wait_for("kafka_topic_partitions", 2, topic=topic)
    metrics.wait_for("kafka_topic_partition_current_offset", 5, partition="0", topic=topic)
    metrics.wait_for("kafka_topic_partition_current_offset", 0, partition="1", topic=topic)
    metrics.wait_for("kafka_topic_partition_oldest_offset", 0, partition="0", topic=topic)


def test_leaders_and_replicas_of_partitions(metrics: "Metrics", topic: str) -> None:
    metrics.wait_for("kafka_topic_partition_leader", 1, partition="0", topic=topic)
    metrics.wait_for("kafka_topic_partition_leader_is_preferred", 1, partition="0", topic=topic)
    metrics.wait_for(
        "kafka_topic_partition_under_replicated_partition", 0, partition="0", topic=topic
    )


def test_brokers(metrics: "Metrics") -> None:
    address = os.environ["GIVEN_BROKER"]
    metrics.wait_for("kafka_brokers", 1)
    metrics.wait_for("kafka_broker_info", 1, address=address, id="1")


def test_lag_of_a_group_without_members(metrics: "Metrics", topic: str, group: str) -> None:
    metrics.wait_for(
        "kafka_consumergroup_current_offset", 2, consumergroup=group, partition="0", topic=topic
    )
    metrics.wait_for("kafka_consumergroup_lag", 3, consumergroup=group, partition="0", topic=topic)
    metrics.wait_for("kafka_consumergroup_members", 0, consumergroup=group)


def test_lag_of_a_group_with_a_member(metrics: "Metrics", topic: str, member: str) -> None:
    metrics.wait_for("kafka_consumergroup_members", 1, consumergroup=member)
    metrics.wait_for("kafka_consumergroup_lag", 0, consumergroup=member, partition="0", topic=topic)
    metrics.wait_for("kafka_consumergroup_lag_sum", 0, consumergroup=member, topic=topic)
