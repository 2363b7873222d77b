"""A config as DescribeConfigs shows it: its value, where the value comes from, its synonyms.

Source: KIP-226; Kafka's ServerTopicConfigSynonyms (names), ConfigHelper (which synonyms are
listed). A topic's config has the broker's config as its synonym, under the name that the broker's
config has in Kafka.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from bucketlog.log_format.wire.messages.describe_configs import DescribeConfigsResourceResult
from bucketlog.metadata.fold import TopicState
from bucketlog.metadata.topic_configs import (
    DELETE_RETENTION_MS,
    MAX_COMPACTION_LAG_MS,
    MAX_MESSAGE_BYTES,
    MIN_CLEANABLE_DIRTY_RATIO,
    MIN_COMPACTION_LAG_MS,
    RETENTION_MS,
    SEGMENT_MS,
    TOPIC_CONFIGS,
)
from bucketlog.metadata.topic_defaults import TopicDefaults

SOURCE_TOPIC = 1
SOURCE_BROKER = 4
SOURCE_DEFAULT = 5


class Synonym(NamedTuple):
    name: str
    value: str
    source: int


BROKER_CONFIGS: Mapping[str, str] = {
    **{name: f"log.{name}" for name in TOPIC_CONFIGS},
    **{
        name: f"log.cleaner.{name}"
        for name in (DELETE_RETENTION_MS, MAX_COMPACTION_LAG_MS, MIN_COMPACTION_LAG_MS)
    },
    **{name: name for name in ("compression.type", "min.insync.replicas", "record.validation")},
    MAX_MESSAGE_BYTES: "message.max.bytes",
    MIN_CLEANABLE_DIRTY_RATIO: "log.cleaner.min.cleanable.ratio",
    SEGMENT_MS: "log.roll.ms",
}
"""The broker's configs, by the topic's. Kafka has no `record.validation`."""
IN_HOURS: Mapping[str, Synonym] = {
    RETENTION_MS: Synonym("log.retention.hours", "168", SOURCE_DEFAULT),
    SEGMENT_MS: Synonym("log.roll.hours", "168", SOURCE_DEFAULT),
}
"""In Kafka, the broker's config in milliseconds has no default, but that in hours has. The config
in hours is listed only if the broker's config in milliseconds is set."""


def described_topic(
    topic: TopicState, keys: Iterable[str] | None, defaults: TopicDefaults
) -> list[DescribeConfigsResourceResult]:
    """`keys`: the names of the configs; None for all of them."""
    wanted = None if keys is None else set(keys)
    return [
        _described(
            name,
            defaults.effective(topic.configs, name),
            list(_synonyms(name, definition.default, topic, defaults)),
            config_type=definition.config_type,
            documentation=definition.documentation,
        )
        for name, definition in TOPIC_CONFIGS.items()
        if wanted is None or name in wanted
    ]


def _synonyms(
    name: str, default: str, topic: TopicState, defaults: TopicDefaults
) -> Iterator[Synonym]:
    """First the one that counts. None: Kafka's default counts, and Kafka lists none for it."""
    if name in topic.configs:
        yield Synonym(name, defaults.effective(topic.configs, name), SOURCE_TOPIC)
    if name in defaults.own:
        yield Synonym(BROKER_CONFIGS[name], defaults.own[name], SOURCE_BROKER)
    if name not in IN_HOURS:
        yield Synonym(BROKER_CONFIGS[name], default, SOURCE_DEFAULT)
    elif name in defaults.own:
        yield IN_HOURS[name]


def described_broker(name: str, value: str) -> DescribeConfigsResourceResult:
    return _described(name, value, [Synonym(name, value, SOURCE_DEFAULT)], read_only=True)


def _described(
    name: str,
    value: str,
    synonyms: list[Synonym],
    *,
    read_only: bool = False,
    config_type: int = 2,
    documentation: str | None = None,
) -> DescribeConfigsResourceResult:
    """`synonyms`: first the one that counts."""
    return {
        "name": name,
        "value": value,
        "read_only": read_only,
        "config_source": synonyms[0].source if synonyms else SOURCE_DEFAULT,
        "is_sensitive": False,
        "synonyms": [
            {"name": each.name, "value": each.value, "source": each.source} for each in synonyms
        ],
        "config_type": config_type,
        "documentation": documentation,
    }
