"""A topic's configs as DescribeConfigs shows them; the expected values are Kafka 4.3.1's."""

import uuid
from collections.abc import Mapping

import pytest

from bucketlog.log_format.model import TopicId
from bucketlog.metadata.fold import TopicState
from bucketlog.metadata.topic_configs import OWN_CONFIGS, TOPIC_CONFIGS
from bucketlog.metadata.topic_defaults import TopicDefaults
from bucketlog.stateless_broker.handlers.described_configs import described_topic

KAFKAS = {
    "cleanup.policy": "log.cleanup.policy",
    "compression.type": "compression.type",
    "delete.retention.ms": "log.cleaner.delete.retention.ms",
    "max.compaction.lag.ms": "log.cleaner.max.compaction.lag.ms",
    "max.message.bytes": "message.max.bytes",
    "message.timestamp.after.max.ms": "log.message.timestamp.after.max.ms",
    "message.timestamp.before.max.ms": "log.message.timestamp.before.max.ms",
    "message.timestamp.type": "log.message.timestamp.type",
    "min.cleanable.dirty.ratio": "log.cleaner.min.cleanable.ratio",
    "min.compaction.lag.ms": "log.cleaner.min.compaction.lag.ms",
    "min.insync.replicas": "min.insync.replicas",
    "retention.bytes": "log.retention.bytes",
    "retention.ms": None,
    "segment.bytes": "log.segment.bytes",
    "segment.ms": None,
    "segment.jitter.ms": None,
    "flush.ms": None,
    "remote.log.delete.on.disable": None,
    "remote.log.copy.disable": None,
    "remote.storage.enable": None,
    "leader.replication.throttled.replicas": None,
    "follower.replication.throttled.replicas": None,
    "local.retention.ms": "log.local.retention.ms",
    "local.retention.bytes": "log.local.retention.bytes",
    "compression.gzip.level": "compression.gzip.level",
    "compression.lz4.level": "compression.lz4.level",
    "compression.zstd.level": "compression.zstd.level",
    "flush.messages": "log.flush.interval.messages",
    "file.delete.delay.ms": "log.segment.delete.delay.ms",
    "preallocate": "log.preallocate",
    "index.interval.bytes": "log.index.interval.bytes",
    "segment.index.bytes": "log.index.size.max.bytes",
    "unclean.leader.election.enable": "unclean.leader.election.enable",
}
"""The synonym for Kafka's default of each config; None: there is none."""
IN_HOURS = [("log.retention.hours", "168", 5)]


def synonyms(
    name: str, configs: Mapping[str, str], own: Mapping[str, str] | None = None
) -> list[tuple[str, str | None, int]]:
    topic = TopicState(TopicId(uuid.uuid4().bytes), "t", 1, dict(configs))
    (found,) = described_topic(topic, [name], TopicDefaults(own))
    listed = [(each["name"], each["value"], each["source"]) for each in found["synonyms"]]
    assert found["config_source"] == (listed[0][2] if listed else 5)
    nearest = configs.get(name, (own or {}).get(name, TOPIC_CONFIGS[name].default))
    assert found["value"] == nearest
    return listed


@pytest.mark.parametrize("name", sorted(TOPIC_CONFIGS.keys() - OWN_CONFIGS))
def test_defaults(name: str) -> None:
    expected = KAFKAS[name]
    value = TOPIC_CONFIGS[name].default
    listed = [] if expected is None else [(expected, value, 5)]
    assert synonyms(name, {}) == listed
    assert synonyms(name, {name: value}) == [(name, value, 1), *listed]


def test_a_brokers_own_default() -> None:
    brokers = [("log.retention.ms", "7", 4), *IN_HOURS]
    assert synonyms("retention.ms", {}, {"retention.ms": "7"}) == brokers
    both = synonyms("retention.ms", {"retention.ms": "9"}, {"retention.ms": "7"})
    assert both == [("retention.ms", "9", 1), *brokers]
    assert synonyms("max.message.bytes", {}, {"max.message.bytes": "7"}) == [
        ("message.max.bytes", "7", 4),
        ("message.max.bytes", "1048588", 5),
    ]
