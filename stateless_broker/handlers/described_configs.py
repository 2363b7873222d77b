"""A config as DescribeConfigs shows it: its value, where the value comes from, its synonyms.

Source: KIP-226; Kafka's ConfigHelper (which synonyms are listed). A topic's config has the broker's
config as its synonym, under the name that the broker's config has in Kafka.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from bucketlog.log_format.wire.messages.describe_configs import DescribeConfigsResourceResult
from bucketlog.metadata.fold import TopicState
from bucketlog.metadata.topic_configs import TOPIC_CONFIGS, TopicConfig
from bucketlog.metadata.topic_defaults import TopicDefaults

SOURCE_TOPIC = 1
SOURCE_ALL_BROKERS = 3
SOURCE_BROKER = 4
SOURCE_DEFAULT = 5


class Synonym(NamedTuple):
    name: str
    value: str
    source: int


def described_topic(
    topic: TopicState, keys: Iterable[str] | None, defaults: TopicDefaults
) -> list[DescribeConfigsResourceResult]:
    """Return the configs of a topic. `keys`: the names of the configs; None for all of them."""
    wanted = None if keys is None else set(keys)
    return [
        described(
            name,
            defaults.effective(topic.configs, name),
            list(_synonyms(definition, topic, defaults)),
            config_type=definition.config_type,
            documentation=definition.documentation,
        )
        for name, definition in sorted(TOPIC_CONFIGS.items())
        if wanted is None or name in wanted
    ]


def _synonyms(config: TopicConfig, topic: TopicState, defaults: TopicDefaults) -> Iterator[Synonym]:
    """Return the synonyms of a config, the effective one first. If there are none, Kafka's default
    is effective, and Kafka lists no synonym for it."""
    if config.name in topic.configs:
        yield Synonym(config.name, defaults.effective(topic.configs, config.name), SOURCE_TOPIC)
    yield from broker_synonyms(config, defaults)


def broker_synonyms(config: TopicConfig, defaults: TopicDefaults) -> Iterator[Synonym]:
    """Return the synonyms under the name of the broker's config. In Kafka, a config with a fallback
    has no default, and the fallback is listed only after a value of the broker."""
    name = config.broker_name
    if name is None:
        return
    layers = (defaults.shared, SOURCE_ALL_BROKERS), (defaults.own, SOURCE_BROKER)
    found = [
        Synonym(name, values[config.name], source)
        for values, source in layers
        if config.name in values
    ]
    yield from found
    if config.fallback is None:
        yield Synonym(name, config.default, SOURCE_DEFAULT)
    elif found:
        yield Synonym(*config.fallback, SOURCE_DEFAULT)


def described(
    name: str,
    value: str,
    synonyms: list[Synonym],
    *,
    read_only: bool = False,
    config_type: int = 2,
    documentation: str | None = None,
    source: int = SOURCE_DEFAULT,
) -> DescribeConfigsResourceResult:
    """Return a config's description. `synonyms`: the effective one comes first. `source`: that of a
    config without synonyms."""
    return {
        "name": name,
        "value": value,
        "read_only": read_only,
        "config_source": synonyms[0].source if synonyms else source,
        "is_sensitive": False,
        "synonyms": [
            {"name": each.name, "value": each.value, "source": each.source} for each in synonyms
        ],
        "config_type": config_type,
        "documentation": documentation,
    }
