"""A broker's configs under Kafka's names: where each value comes from, and what can be changed.

Source: KIP-226; Kafka 4.3's AbstractKafkaConfig (names, types) and DynamicBrokerConfig (errors).
Invariant: a config that is not read-only takes effect at all brokers without a restart.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from bucketlog.log_format.errors import ConfigRefusedError, InvalidConfigError
from bucketlog.log_format.wire.messages.describe_configs import DescribeConfigsResourceResult
from bucketlog.metadata.config_definitions import ConfigDefinition, ConfigType, Range
from bucketlog.metadata.topic_configs import TOPIC_CONFIGS, TopicConfig
from bucketlog.metadata.topic_defaults import TopicDefaults
from bucketlog.stateless_broker.handlers.described_configs import (
    SOURCE_ALL_BROKERS,
    SOURCE_BROKER,
    SOURCE_DEFAULT,
    Synonym,
    broker_synonyms,
    described,
)
from bucketlog.stateless_broker.settings.broker import BrokerSettings

BOOLEAN, STRING, INT = ConfigType.BOOLEAN, ConfigType.STRING, ConfigType.INT
SHORT, LONG, LIST = ConfigType.SHORT, ConfigType.LONG, ConfigType.LIST
DOUBLE = ConfigType.DOUBLE
SETTINGS_OF_BROKERS: Mapping[str, tuple[ConfigType, str]] = {
    "auto.create.topics.enable": (BOOLEAN, "auto_create_topics"),
    "broker.rack": (STRING, "zone"),
    "connections.max.idle.ms": (LONG, "connections_idle_ms_max"),
    "fetch.max.bytes": (INT, "fetch_bytes_max"),
    "group.initial.rebalance.delay.ms": (INT, "group_initial_rebalance_delay_ms"),
    "group.max.session.timeout.ms": (INT, "group_session_timeout_ms_max"),
    "group.max.size": (INT, "group_members_max"),
    "group.min.session.timeout.ms": (INT, "group_session_timeout_ms_min"),
    "log.retention.check.interval.ms": (LONG, "log_retention_check_interval_ms"),
    "max.connections": (INT, "connections_max"),
    "max.connections.per.ip": (INT, "connections_per_address_max"),
    "num.partitions": (INT, "num_partitions"),
    "offset.metadata.max.bytes": (INT, "offset_metadata_bytes_max"),
    "offsets.commit.timeout.ms": (INT, "offset_commit_timeout_ms"),
    "offsets.retention.check.interval.ms": (LONG, "offsets_retention_check_interval_ms"),
    "offsets.retention.minutes": (INT, "offsets_retention_minutes"),
    "producer.id.expiration.check.interval.ms": (INT, "producer_id_expiration_check_interval_ms"),
    "producer.id.expiration.ms": (INT, "producer_id_expiration_ms"),
    "socket.listen.backlog.size": (INT, "listen_backlog_size"),
    "socket.request.max.bytes": (INT, "request_bytes_max"),
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": (
        INT,
        "transaction_abort_check_interval_ms",
    ),
    "transaction.max.timeout.ms": (INT, "transaction_timeout_ms_max"),
    "transaction.remove.expired.transaction.cleanup.interval.ms": (
        INT,
        "transactional_id_expiration_check_interval_ms",
    ),
    "transaction.two.phase.commit.enable": (BOOLEAN, "transaction_two_phase_commit"),
    "transactional.id.expiration.ms": (INT, "transactional_id_expiration_ms"),
}
"""Type and setting, by Kafka's name."""
_FIXED: Mapping[str, tuple[ConfigType, str, str]] = {
    "auto.leader.rebalance.enable": (BOOLEAN, "true", "Leaders follow the live brokers."),
    "default.replication.factor": (INT, "1", "Partitions have no replicas."),
    "delete.topic.enable": (BOOLEAN, "true", "Topics can be deleted."),
    "offsets.topic.replication.factor": (SHORT, "1", "Offsets have no replicas."),
    "transaction.state.log.min.isr": (INT, "1", "Transactions have no replicas."),
    "transaction.state.log.replication.factor": (SHORT, "1", "Transactions have no replicas."),
}
_THROTTLE = "No effect: brokers have no replication. kafka-reassign-partitions sets it."
_THROTTLES = tuple(
    ConfigDefinition(name, LONG, str(2**63 - 1), _THROTTLE, Range(0), _THROTTLE)
    for name in (
        "follower.replication.throttled.rate",
        "leader.replication.throttled.rate",
        "replica.alter.log.dirs.io.max.bytes.per.second",
    )
)
_NO_KERBEROS = "No effect: brokers have no logins by Kerberos."
_KERBEROS = (
    ConfigDefinition("sasl.kerberos.kinit.cmd", STRING, "/usr/bin/kinit", _NO_KERBEROS),
    ConfigDefinition("sasl.kerberos.min.time.before.relogin", LONG, "60000", _NO_KERBEROS),
    ConfigDefinition("sasl.kerberos.principal.to.local.rules", LIST, "DEFAULT", _NO_KERBEROS),
    ConfigDefinition("sasl.kerberos.service.name", STRING, "", _NO_KERBEROS),
    ConfigDefinition("sasl.kerberos.ticket.renew.jitter", DOUBLE, "0.05", _NO_KERBEROS),
    ConfigDefinition("sasl.kerberos.ticket.renew.window.factor", DOUBLE, "0.8", _NO_KERBEROS),
)
CONFIGS_WITHOUT_EFFECT: Mapping[str, ConfigDefinition] = {
    each.name: each for each in (*_THROTTLES, *_KERBEROS)
}
"""Configs of single brokers."""


class KnownConfig(NamedTuple):
    """A config of this broker. The value is fixed when the broker starts."""

    name: str
    config_type: ConfigType
    value: str
    default: str
    is_set: bool
    documentation: str


class BrokerConfigs:
    """`listeners`: the addresses for clients, by the name of the listener."""

    def __init__(
        self,
        settings: BrokerSettings,
        *,
        node_id: int,
        listeners: Callable[[], Sequence[str]],
        topic_defaults: TopicDefaults,
    ) -> None:
        self.node_id = node_id
        self._listeners = listeners
        self._topic_defaults = topic_defaults
        self._known = {each.name: each for each in _known(settings, node_id)}

    def described(
        self, own: Mapping[str, str], shared: Mapping[str, str]
    ) -> Iterator[DescribeConfigsResourceResult]:
        """Return all configs of this broker. `own` was set for this broker, `shared` for all."""
        for known in self._known.values():
            yield described(
                known.name,
                known.value,
                _synonyms(known),
                read_only=True,
                config_type=known.config_type,
                documentation=known.documentation,
            )
        addresses = ",".join(self._listeners())
        yield described(
            "advertised.listeners",
            addresses,
            [Synonym("advertised.listeners", addresses, SOURCE_BROKER)],
            read_only=True,
            config_type=LIST,
            documentation="The addresses that clients get.",
        )
        for default in TOPIC_DEFAULTS_OF_BROKERS.values():
            yield self._topic_default(default)
        for config in CONFIGS_WITHOUT_EFFECT.values():
            yield from _without_effect(config, own, shared)

    def _topic_default(self, config: TopicConfig) -> DescribeConfigsResourceResult:
        assert config.broker_name is not None
        return described(
            config.broker_name,
            self._topic_defaults.effective({}, config.name),
            list(broker_synonyms(config, self._topic_defaults)),
            read_only=bool(config.no_effect),
            config_type=config.config_type,
            documentation=config.documentation,
        )


TOPIC_DEFAULTS_OF_BROKERS: Mapping[str, TopicConfig] = {
    config.broker_name: config
    for config in TOPIC_CONFIGS.values()
    if config.broker_name is not None
}
"""Configs of topics, by the names of brokers' defaults."""


def described_shared(shared: Mapping[str, str]) -> Iterator[DescribeConfigsResourceResult]:
    """Return the configs that are set for all brokers."""
    for name, value in shared.items():
        known = TOPIC_DEFAULTS_OF_BROKERS.get(name) or CONFIGS_WITHOUT_EFFECT.get(name)
        if known is not None:
            yield described(
                name,
                value,
                [Synonym(name, value, SOURCE_ALL_BROKERS)],
                config_type=known.config_type,
                documentation=known.documentation,
            )


def checked_broker_configs(configs: Mapping[str, str | None], *, of_one: bool) -> dict[str, str]:
    """The configs with values, in canonical form. `of_one`: of one broker, not of all. Raises
    `ConfigRefusedError`."""
    fixed = [name for name in configs if not _is_dynamic(name)]
    if fixed:
        raise ConfigRefusedError(f"Cannot update these configs dynamically: [{', '.join(fixed)}]")
    of_all = [name for name in configs if of_one and name not in CONFIGS_WITHOUT_EFFECT]
    if of_all:
        raise ConfigRefusedError(
            "Each broker serves all partitions. Update these configs at the default cluster "
            f"level, without a broker id: [{', '.join(of_all)}]"
        )
    return {name: _canonical(name, value) for name, value in configs.items() if value is not None}


def _is_dynamic(name: str) -> bool:
    config = TOPIC_DEFAULTS_OF_BROKERS.get(name)
    return name in CONFIGS_WITHOUT_EFFECT or (config is not None and not config.no_effect)


def _canonical(name: str, value: str) -> str:
    known = CONFIGS_WITHOUT_EFFECT.get(name) or TOPIC_DEFAULTS_OF_BROKERS[name].under_broker_name()
    try:
        return known.canonical(value)
    except InvalidConfigError as error:
        raise ConfigRefusedError(error.message, remedy=error.remedy) from None


def _known(settings: BrokerSettings, node_id: int) -> Iterator[KnownConfig]:
    fields = type(settings).model_fields
    for name, (config_type, setting) in SETTINGS_OF_BROKERS.items():
        field = fields[setting]
        yield KnownConfig(
            name,
            config_type,
            _text(getattr(settings, setting)),
            _text(field.default),
            setting in settings.model_fields_set,
            field.description or "",
        )
    for name, (config_type, value, documentation) in _FIXED.items():
        yield KnownConfig(name, config_type, value, value, False, documentation)
    for name in ("broker.id", "node.id"):
        text = "The number of this broker."
        is_set = settings.node_id is not None
        yield KnownConfig(name, INT, str(node_id), "-1", is_set, text)
    text = "Where the log is."
    yield KnownConfig("log.dirs", LIST, settings.bucket_url, "", True, text)


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _synonyms(known: KnownConfig) -> list[Synonym]:
    default = Synonym(known.name, known.default, SOURCE_DEFAULT)
    if known.is_set:
        return [Synonym(known.name, known.value, SOURCE_BROKER), default]
    return [default._replace(value=known.value)]


def _without_effect(
    config: ConfigDefinition, own: Mapping[str, str], shared: Mapping[str, str]
) -> Iterator[DescribeConfigsResourceResult]:
    found = [
        Synonym(config.name, configs[config.name], source)
        for configs, source in ((own, SOURCE_ONE_BROKER), (shared, SOURCE_ALL_BROKERS))
        if config.name in configs
    ]
    if config in _KERBEROS:  # Kafka knows no default of throttles
        found.append(Synonym(config.name, config.default, SOURCE_DEFAULT))
    if found:
        yield described(
            config.name,
            found[0].value,
            found,
            config_type=config.config_type,
            documentation=config.documentation,
        )


SOURCE_ONE_BROKER = 2
