"""The configs of brokers, loggers, groups and subscriptions to clients' metrics.

Invariant: a change is answered once this broker's view shows it. Source: Kafka 4.3's
ConfigAdminManager, ConfigHelper and ControllerConfigurationValidator (which error for what).
"""

import re
from collections.abc import Callable, Iterator, Mapping
from enum import IntEnum
from typing import NamedTuple

from kio.schema.errors import ErrorCode

from bucketlog.log_format.errors import InvalidConfigError
from bucketlog.log_format.model import WallClock
from bucketlog.log_format.wire.error_codes import ApiFamily, kafka_code
from bucketlog.log_format.wire.messages.describe_configs import DescribeConfigsResourceResult
from bucketlog.metadata.config_definitions import ConfigType
from bucketlog.metadata.config_facts import ConfigsAltered, ConfiguredKind
from bucketlog.metadata.group_configs import GROUP_CONFIGS, checked_group_configs
from bucketlog.metadata.resource_configs import ALL_BROKERS, ResourceName
from bucketlog.metadata.subscription_configs import SUBSCRIPTION_CONFIGS, checked_subscription
from bucketlog.metadata.topic_defaults import TopicDefaults
from bucketlog.metadata.view import View
from bucketlog.stateless_broker.handlers.broker_configs import (
    TOPIC_DEFAULTS_OF_BROKERS,
    BrokerConfigs,
    checked_broker_configs,
    described_shared,
)
from bucketlog.stateless_broker.handlers.described_configs import SOURCE_DEFAULT, Synonym, described
from bucketlog.stateless_broker.handlers.log_levels import (
    check_levels,
    described_loggers,
    set_levels,
)
from bucketlog.stateless_broker.handlers.security_changes import DONE, Refusal, SecurityChanges

SOURCE_SUBSCRIPTION, SOURCE_GROUP = 7, 8
UNKNOWN_RESOURCE = (
    "This most likely occurs because of a request being malformed by the client library or the "
    "message was sent to an incompatible broker. See the broker logs for more details."
)
_INTEGER = re.compile(r"[+-]?[0-9]{1,10}")
_INVALID = ErrorCode.invalid_request


class ConfigKind(IntEnum):
    """Kinds of resources with configs, numbered as in Kafka (ConfiguredKind.Type)."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ResourceLimits(NamedTuple):
    """Limits of the brokers, groups and subscriptions that have configs."""

    resources_max: int
    name_bytes_max: int


class OtherConfigs:
    """The configs of all resources except topics."""

    def __init__(
        self,
        *,
        view: View,
        changes: SecurityChanges,
        brokers: BrokerConfigs,
        topic_defaults: TopicDefaults,
        limits: ResourceLimits,
        now_ms: WallClock,
    ) -> None:
        self._view = view
        self._changes = changes
        self._brokers = brokers
        self._topic_defaults = topic_defaults
        self._limits = limits
        self._now_ms = now_ms

    def described(self, kind: int, name: str) -> list[DescribeConfigsResourceResult] | Refusal:
        problem = self._problem_of_name(kind, name)
        if problem is not None:
            return Refusal(_INVALID, problem)
        own = self._view.resource_configs.of
        shared = own(ALL_BROKERS)
        match kind:
            case ConfigKind.BROKER if not name:
                found = described_shared(shared)
            case ConfigKind.BROKER:
                this = ResourceName(ConfiguredKind.BROKER, str(self._brokers.node_id))
                found = self._brokers.described(own(this), shared)
            case ConfigKind.BROKER_LOGGER:
                found = described_loggers()
            case ConfigKind.CLIENT_METRICS:
                found = _subscription(own(ResourceName(ConfiguredKind.CLIENT_METRICS, name)))
            case _:
                found = _group(own(ResourceName(ConfiguredKind.GROUP, name)))
        return sorted(found, key=lambda config: config["name"])

    def _problem_of_name(self, kind: int, name: str) -> str | None:
        """Return what is wrong with the name of a resource that is described, or None."""
        node_id = self._brokers.node_id
        match kind:
            case ConfigKind.BROKER | ConfigKind.BROKER_LOGGER:
                is_broker = kind == ConfigKind.BROKER
                if not name:
                    return None if is_broker else "Broker id must not be empty"
                if not _is_int(name):
                    return f"Broker id must be an integer, but it is: {name}"
                if int(name) != node_id:
                    wanted = f"{node_id} or empty string," if is_broker else str(node_id)
                    return f"Unexpected broker id, expected {wanted} but received {name}"
            case ConfigKind.CLIENT_METRICS if not name:
                return "Client metrics subscription name must not be empty"
            case ConfigKind.GROUP if not name:
                return "Group name must not be empty"
            case ConfigKind.CLIENT_METRICS | ConfigKind.GROUP:
                return None
            case _:
                return UNKNOWN_RESOURCE
        return None

    def before(self, kind: int, name: str) -> Callable[[str], str | None]:
        """The value of a config that is a list; None for all other configs. Only of brokers, as in
        Kafka."""

        def value(config: str) -> str | None:
            known = TOPIC_DEFAULTS_OF_BROKERS.get(config) if kind == ConfigKind.BROKER else None
            if known is None or known.config_type is not ConfigType.LIST:
                return None
            return self._topic_defaults.effective({}, known.name)

        return value

    def refusal_of_name(self, kind: int, name: str, *, replaces_all: bool) -> Refusal | None:
        """Return why a change may not name the resource like this, or None."""
        node_id, text = self._brokers.node_id, None
        if kind not in list(ConfigKind) or (kind == ConfigKind.BROKER_LOGGER and replaces_all):
            text = f"Unknown resource type {kind}"
        elif kind in (ConfigKind.BROKER, ConfigKind.BROKER_LOGGER):
            is_broker = kind == ConfigKind.BROKER
            if not name and is_broker:
                return None
            if not _is_int(name):
                text = f"Node id must be an integer, but it is: {name}"
            elif int(name) != node_id and is_broker:
                text = f"Unexpected broker id, expected {node_id}, but received {name}"
            elif int(name) != node_id:
                text = f"Unexpected node id. Expected {node_id}, but received {name}"
        elif not name:
            is_group = kind == ConfigKind.GROUP
            default = "Default group resources are not allowed."
            text = default if is_group else "Subscription name can't be empty"
        return None if text is None else Refusal(_INVALID, text)

    async def alter(
        self,
        kind: int,
        name: str,
        changes: Mapping[str, str | None],
        *,
        replaces_all: bool,
        validate_only: bool,
        by: str,
    ) -> Refusal:
        """Change configs of a resource whose name `refusal_of_name` has accepted. None takes a
        config back to its default."""
        if kind == ConfigKind.BROKER_LOGGER:
            return _set_levels(list(changes.items()), validate_only=validate_only)
        if kind == ConfigKind.BROKER and name:
            name = str(int(name))
        resource = ResourceName(ConfiguredKind(kind), name)
        known = self._view.resource_configs.of(resource)
        try:
            given = self._checked(resource, known, changes, replaces_all=replaces_all)
        except InvalidConfigError as error:
            return Refusal(kafka_code(error, ApiFamily.TOPICS), error.message)
        unset = [each for each in changes if each in known and each not in given]
        if not known and not given:
            return DONE
        problem = self._too_many(resource) if given else None
        if problem is not None or validate_only:
            return problem or DONE
        fact = ConfigsAltered(
            resource_type=resource.kind,
            name=name,
            configs=given | dict.fromkeys(unset),
            replaces_all=replaces_all,
            by=by,
            at_ms=self._now_ms(),
        )
        return await self._changes.commit(fact) or DONE

    def _checked(
        self,
        resource: ResourceName,
        known: Mapping[str, str],
        changes: Mapping[str, str | None],
        *,
        replaces_all: bool,
    ) -> dict[str, str]:
        """The configs to set. Raises `InvalidConfigError`."""
        values = {name: value for name, value in changes.items() if value is not None}
        if resource.kind is ConfiguredKind.GROUP:
            return checked_group_configs(values)
        if resource.kind is ConfiguredKind.CLIENT_METRICS:
            return checked_subscription(values)
        is_all = resource == ALL_BROKERS
        new = {n: v for n, v in changes.items() if v is not None or n not in known}
        found = checked_broker_configs(new, of_one=not is_all)
        if is_all:
            before = {} if replaces_all else known
            after = {name: value for name, value in before.items() if name not in changes}
            self._topic_defaults.check_shared(after | found)
        return found

    def _too_many(self, resource: ResourceName) -> Refusal | None:
        limits, configs = self._limits, self._view.resource_configs
        if len(resource.name.encode()) > limits.name_bytes_max:
            text = (
                f"The name has more than {limits.name_bytes_max} bytes "
                "(BUCKETLOG_CONFIG_RESOURCE_NAME_BYTES_MAX)"
            )
            return Refusal(_INVALID, text)
        if configs.of(resource) or len(configs) < limits.resources_max:
            return None
        text = (
            f"{limits.resources_max} brokers, groups and subscriptions may have configs "
            "(BUCKETLOG_CONFIG_RESOURCES_MAX)"
        )
        return Refusal(ErrorCode.policy_violation, text)


def _set_levels(changes: list[tuple[str, str | None]], *, validate_only: bool) -> Refusal:
    try:
        check_levels(changes)
    except InvalidConfigError as error:
        return Refusal(kafka_code(error, ApiFamily.TOPICS), error.message)
    if not validate_only:
        set_levels(changes)
    return DONE


def _subscription(own: Mapping[str, str]) -> Iterator[DescribeConfigsResourceResult]:
    for name, config in SUBSCRIPTION_CONFIGS.items():
        found = [Synonym(name, own[name], SOURCE_SUBSCRIPTION)] if name in own else []
        yield described(
            name,
            own.get(name, config.default),
            found,
            config_type=config.config_type,
            documentation=config.documentation,
        )


def _group(own: Mapping[str, str]) -> Iterator[DescribeConfigsResourceResult]:
    for name, config in GROUP_CONFIGS.items():
        found = [Synonym(name, own[name], SOURCE_GROUP)] if name in own else []
        found.append(Synonym(config.broker_name, config.default, SOURCE_DEFAULT))
        yield described(
            name,
            found[0].value,
            found,
            config_type=config.config_type,
            documentation=config.documentation,
        )


def _is_int(name: str) -> bool:
    """Return whether Java's Integer.parseInt accepts the text."""
    return _INTEGER.fullmatch(name) is not None and -(2**31) <= int(name) < 2**31
