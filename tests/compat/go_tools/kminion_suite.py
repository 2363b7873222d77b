"""KMinion: Prometheus metrics of a cluster, and end-to-end monitoring.

Its repository has no tests with a broker.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.compat.go_tools.conftest import Metrics, Program


@pytest.fixture
def metrics(program: "Program", port: int, request: pytest.FixtureRequest) -> "Iterator[Metrics]":
    variables = {
        "KAFKA_BROKERS": os.environ["GIVEN_BROKER"],
        "EXPORTER_HOST": "127.0.0.1",
        "EXPORTER_PORT": str(port),
        **getattr(request, "param", {}),
    }
    with replace(program, variables=variables).serving(port) as found:
        yield found


def test_watermarks(metrics: "Metrics", topic: str) -> None:
    metrics.wait_for(
        "kminion_kafka_topic_partition_low_water_mark", 0, partition_id="0", topic_name=topic
    )
    metrics.wait_for(
        "kminion_kafka_topic_partition_high_water_mark", 5, partition_id="0", topic_name=topic
    )
    metrics.wait_for("kminion_kafka_topic_high_water_mark_sum", 5, topic_name=topic)


def test_info_of_topics(metrics: "Metrics", topic: str) -> None:
    metrics.wait_for(
        "kminion_kafka_topic_info",
        1,
        cleanup_policy="delete",
        partition_count="2",
        replication_factor="1",
        topic_name=topic,
    )


def test_bytes_of_topics(metrics: "Metrics", topic: str) -> None:
    sample = re.compile(
        rf'^kminion_kafka_topic_log_dir_size_total_bytes{{topic_name="{topic}"}} [1-9]',
        re.MULTILINE,
    )
    metrics.wait_until(lambda text: bool(sample.search(text)))


def test_brokers(metrics: "Metrics") -> None:
    host, port = os.environ["GIVEN_BROKER"].split(":")
    sample = re.compile(
        rf'^kminion_kafka_broker_info{{address="{host}",broker_id="1",is_controller="true",port="{port}"',
        re.MULTILINE,
    )
    metrics.wait_until(lambda text: bool(sample.search(text)))


def test_lag_of_a_group(metrics: "Metrics", topic: str, group: str) -> None:
    labels = {"group_id": group, "topic_name": topic}
    metrics.wait_for("kminion_kafka_consumer_group_topic_offset_sum", 2, **labels)
    metrics.wait_for("kminion_kafka_consumer_group_topic_lag", 3, **labels)


def test_members_of_a_group(metrics: "Metrics", topic: str, member: str) -> None:
    metrics.wait_for("kminion_kafka_consumer_group_members", 1, group_id=member)
    metrics.wait_for(
        "kminion_kafka_consumer_group_topic_assigned_partitions",
        2,
        group_id=member,
        topic_name=topic,
    )
    metrics.wait_for("kminion_kafka_consumer_group_topic_lag", 0, group_id=member, topic_name=topic)


@pytest.mark.parametrize(
    "metrics",
    [{"MINION_ENDTOEND_ENABLED": "true", "MINION_ENDTOEND_PROBEINTERVAL": "100ms"}],
    indirect=True,
)
def test_records_from_end_to_end(metrics: "Metrics") -> None:
    """KMinion creates a topic, produces to it, and consumes in a group."""
    found = [
        re.compile(rf"^kminion_end_to_end_{name}[^ ]* [1-9]\d", re.MULTILINE)
        for name in ("messages_produced_total", "messages_received_total", "offset_commits_total")
    ]
    metrics.wait_until(lambda text: all(sample.search(text) for sample in found))
