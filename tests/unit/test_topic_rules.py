"""When a topic stores a batch unchanged: the topic's configs, the batch's size and timestamps."""

import pytest

from bucketlog.log_format.batch import read_header
from bucketlog.log_format.model import TopicId
from bucketlog.log_format.wire.plain_produce import PlainProduce
from bucketlog.metadata.fold import TopicState
from bucketlog.metadata.topic_defaults import TopicDefaults
from bucketlog.stateless_broker.handlers.topic_rules import TopicRules
from tests.models.produced_batches import NOW_MS, batch, record

HOUR_MS = 3_600_000


def produced(*, max_timestamp: int = NOW_MS) -> PlainProduce:
    data = memoryview(batch(record(0), 1, max_timestamp=max_timestamp))
    return PlainProduce("client", -1, 1000, "t", 0, data, read_header(data))


def rules(**configs: str) -> TopicRules:
    named = {name.replace("_", "."): text for name, text in configs.items()}
    return TopicRules(TopicState(TopicId(bytes(16)), "t", 1, named), TopicDefaults(), 1 << 20)


def test_a_topic_without_configs_takes_it() -> None:
    assert rules().are_kept_by(produced(), NOW_MS)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("cleanup.policy", "compact"),
        ("cleanup.policy", "compact,delete"),
        ("message.timestamp.type", "LogAppendTime"),
        ("compression.type", "zstd"),
        ("encryption.key.id", "local:key"),
        ("mirror.source", "cluster.topic"),
    ],
)
def test_a_config_that_needs_more_checks(name: str, text: str) -> None:
    topic = TopicState(TopicId(bytes(16)), "t", 1, {name: text})
    assert not TopicRules(topic, TopicDefaults(), 1 << 20).are_kept_by(produced(), NOW_MS)


def test_a_default_of_the_brokers_counts() -> None:
    topic = TopicState(TopicId(bytes(16)), "t", 1, {})
    defaults = TopicDefaults({"message.timestamp.type": "LogAppendTime"})
    assert not TopicRules(topic, defaults, 1 << 20).are_kept_by(produced(), NOW_MS)


def test_the_size_of_the_batch() -> None:
    size = len(produced().records)
    assert rules(max_message_bytes=str(size)).are_kept_by(produced(), NOW_MS)
    assert not rules(max_message_bytes=str(size - 1)).are_kept_by(produced(), NOW_MS)


def test_timestamps_in_the_future() -> None:
    found = rules(message_timestamp_after_max_ms=str(HOUR_MS))
    assert found.are_kept_by(produced(max_timestamp=NOW_MS + HOUR_MS), NOW_MS)
    assert not found.are_kept_by(produced(max_timestamp=NOW_MS + HOUR_MS + 1), NOW_MS)
    assert found.are_kept_by(produced(max_timestamp=-1), NOW_MS)


def test_a_limit_of_timestamps_in_the_past() -> None:
    assert rules(message_timestamp_before_max_ms=str(NOW_MS)).are_kept_by(produced(), NOW_MS)
    found = rules(message_timestamp_before_max_ms=str(NOW_MS - 1))
    assert not found.are_kept_by(produced(), NOW_MS)


def test_a_topic_that_checks_headers_alone() -> None:
    assert rules(record_validation="header").are_kept_by(produced(), NOW_MS)
