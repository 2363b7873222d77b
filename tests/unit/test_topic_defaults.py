"""A topic's own config, else the broker's default, else Kafka's: the same for all configs."""

import pytest

from bucketlog.log_format.errors import InvalidDataError
from bucketlog.metadata.config_definitions import ConfigType
from bucketlog.metadata.topic_configs import TOPIC_CONFIGS
from bucketlog.metadata.topic_defaults import TopicDefaults
from bucketlog.stateless_broker.settings.broker import TOPIC_DEFAULTS, BrokerSettings

OTHERS = {
    "cleanup.policy": "compact",
    "compression.type": "zstd",
    "encryption.key.id": "local:a",
    "record.validation": "header",
    "segment.bytes": "1048576",
    "segment.index.bytes": "4",
    "max.message.bytes": "77",
    "message.timestamp.type": "LogAppendTime",
    "min.cleanable.dirty.ratio": "0.25",
}
OF_TYPES = {ConfigType.BOOLEAN: "true", ConfigType.LIST: "0:1"}


def settings(**given: int | str) -> BrokerSettings:
    needed = {"bucket_url": "file:///tmp/x", "redis_url": "redis://localhost"}
    return BrokerSettings.model_validate({**needed, **given})


@pytest.mark.parametrize("name", TOPIC_CONFIGS)
def test_the_nearest_value_counts(name: str) -> None:
    config = TOPIC_CONFIGS[name]
    kafkas, brokers = config.default, OTHERS.get(name, OF_TYPES.get(config.config_type, "1"))
    if name == "remote.storage.enable":
        brokers = kafkas
    defaults = TopicDefaults({name: brokers})
    assert TopicDefaults().effective({}, name) == kafkas
    assert defaults.effective({}, name) == brokers
    assert defaults.effective({name: kafkas}, name) == kafkas
    assert defaults.effective({name: "a b"}, name) == brokers, "no broker would store it"
    assert defaults.own == ({} if brokers == kafkas else {name: brokers})


def test_policies() -> None:
    for defaults, configs, policies in (
        ({}, {}, ["delete"]),
        ({"cleanup.policy": "compact, delete"}, {}, ["compact", "delete"]),
        ({"cleanup.policy": "compact"}, {"cleanup.policy": "delete"}, ["delete"]),
        ({"cleanup.policy": "compact"}, {"cleanup.policy": ""}, []),
    ):
        made = TopicDefaults(defaults)
        assert [
            word for word in ("compact", "delete") if made.has_policy(configs, word)
        ] == policies


def test_a_default_that_no_topic_may_have_is_refused() -> None:
    with pytest.raises(InvalidDataError, match=r"retention\.ms"):
        TopicDefaults({"retention.ms": "-2"})


def test_configs_that_do_not_fit_together_are_refused() -> None:
    lags = {"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "9"}
    with pytest.raises(InvalidDataError, match=r"\(10\) > max\.compaction\.lag\.ms \(9\)"):
        TopicDefaults().check(lags)
    with pytest.raises(InvalidDataError, match="conflict"):
        TopicDefaults({"max.compaction.lag.ms": "9"}).check({"min.compaction.lag.ms": "10"})
    with pytest.raises(InvalidDataError, match="Tiered Storage"):
        TopicDefaults().check({"remote.storage.enable": "true"})


def test_settings_have_kafkas_defaults_unless_they_are_changed() -> None:
    assert settings().topic_defaults.own == {}
    for config, name in TOPIC_DEFAULTS.items():
        other = "header" if name == "record_validation" else "12345"
        assert settings(**{name: other}).topic_defaults.own == {config: other}
