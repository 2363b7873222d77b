"""DescribeConfigs, AlterConfigs, IncrementalAlterConfigs.

Source: Kafka's messages of these names; KIP-339 (incremental changes);
ConfigAdminManager and ConfigurationControlManager (which error for what). `OtherConfigs` has the
configs of all resources but topics.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple, TypeAlias, TypeVar

from kio.schema.errors import ErrorCode

from bucketlog.log_format.errors import InvalidTopicNameError
from bucketlog.log_format.model import TopicId
from bucketlog.log_format.wire.error_codes import ApiFamily, kafka_code
from bucketlog.log_format.wire.messages import incremental_alter_configs as incremental
from bucketlog.log_format.wire.messages.alter_configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)
from bucketlog.log_format.wire.messages.describe_configs import (
    DESCRIBE_CONFIGS,
    DescribeConfigsRequest,
    DescribeConfigsResourceResult,
    DescribeConfigsResult,
)
from bucketlog.metadata.acl_bindings import AclOperation
from bucketlog.metadata.config_definitions import ConfigType
from bucketlog.metadata.fold import TopicState
from bucketlog.metadata.topic_checks import check_topic_name
from bucketlog.metadata.topic_configs import TOPIC_CONFIGS
from bucketlog.metadata.topic_defaults import TopicDefaults
from bucketlog.metadata.view import View
from bucketlog.stateless_broker.authorization.authorizer import Access
from bucketlog.stateless_broker.authorization.needs import (
    CLUSTER_NOT_AUTHORIZED,
    GROUP_NOT_AUTHORIZED,
    TOPIC_NOT_AUTHORIZED,
)
from bucketlog.stateless_broker.handlers.described_configs import described_topic
from bucketlog.stateless_broker.handlers.other_configs import ConfigKind, OtherConfigs
from bucketlog.stateless_broker.handlers.security_changes import Refusal
from bucketlog.stateless_broker.handlers.topic_changes import TopicChanges
from bucketlog.stateless_broker.network.apis import Request, WrittenResponse
from bucketlog.stateless_broker.network.messages import write_row, write_rows
from bucketlog.stateless_broker.network.response_rows import COUNTED_ROWS
from bucketlog.stateless_broker.network.turns import Slices, Turns

T = TypeVar("T", bound=Hashable)

CLUSTER_RESOURCES = (ConfigKind.BROKER, ConfigKind.BROKER_LOGGER, ConfigKind.CLIENT_METRICS)
"""Brokers, their loggers, and metrics of clients: the rights on the cluster count."""
FEW_RESOURCES = 10
CONFIGS_MAX = 1_000
RESOURCE_BYTES = 3_000
"""An estimate per resource; the actual size is counted once the response is encoded."""
UNITS_A_RESOURCE = 5
UNITS_A_CONFIG = 5
"""Units of work: see `network.turns`."""


ResourceT = TypeVar("ResourceT", AlterConfigsResource, incremental.AlterConfigsResource)
Changes: TypeAlias = dict[str, str | None] | Refusal
"""Values by config name; None for a config that takes its default again."""
Before: TypeAlias = Callable[[str], str | None]
"""The value of a config that is a list; None for all other configs."""
_DESCRIBED = Refusal(ErrorCode.none, "")
NO_TOPIC = TopicState(TopicId(bytes(16)), "", 0, {})


class Alteration(NamedTuple):
    """The parts of a request that apply to all its resources."""

    request: Request
    replaces_all: bool
    validate_only: bool
    deadline: float


class Operation(IntEnum):
    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class ConfigsHandler:
    """`change_ms_max`: how long a change may take to be visible; its requests name no time."""

    def __init__(
        self,
        *,
        view: View,
        changes: TopicChanges,
        others: OtherConfigs,
        topic_defaults: TopicDefaults,
        change_ms_max: int,
        turns: Turns,
    ) -> None:
        self._view = view
        self._changes = changes
        self._others = others
        self._topic_defaults = topic_defaults
        self._change_ms_max = change_ms_max
        self._turns = turns

    async def describe_configs(
        self, request: Request, message: DescribeConfigsRequest
    ) -> WrittenResponse:
        """Answers a resource that is named twice with the same keys once."""
        version = request.header.api_version
        wanted = dict.fromkeys(
            (each.resource_type, each.resource_name, each.configuration_keys)
            for each in message.resources
        )
        rows: list[bytes] = []
        errors: list[ErrorCode] = []
        access = request.access

        def steps() -> Iterator[int]:
            for resource_type, name, keys in wanted:
                row = _not_described(resource_type, name, access)
                if row is None:
                    row = self._describe(resource_type, name, keys, message.include_synonyms)
                    if not message.include_documentation:
                        for config in row["configs"]:
                            config["documentation"] = None
                rows.append(write_row(DESCRIBE_CONFIGS, version, "results", row))
                error = row["error_code"]
                if error is not ErrorCode.none and len(errors) < COUNTED_ROWS:
                    errors.append(error)
                yield UNITS_A_RESOURCE + UNITS_A_CONFIG * len(row["configs"])

        if len(wanted) > FEW_RESOURCES:
            await request.memory.acquire(len(wanted) * RESOURCE_BYTES)
        await self._turns.work(steps())
        return WrittenResponse(write_rows(DESCRIBE_CONFIGS, version, "results", rows), errors)

    def _describe(
        self,
        resource_type: int,
        name: str,
        wanted_keys: tuple[str, ...] | None,
        with_synonyms: bool,
    ) -> DescribeConfigsResult:
        error, text = _DESCRIBED
        keys = set(wanted_keys) if wanted_keys else None
        configs: list[DescribeConfigsResourceResult] = []
        if resource_type == ConfigKind.TOPIC:
            topic = self._view.topic(name)
            if topic is not None:
                configs = described_topic(topic, keys, self._topic_defaults)
            else:
                error, text = _missing_topic(name)
        else:
            found = self._others.described(resource_type, name)
            if isinstance(found, Refusal):
                error, text = found
            else:
                configs = [each for each in found if keys is None or each["name"] in keys]
        if not with_synonyms:
            for config in configs:
                config["synonyms"] = []
        return {
            "error_code": error,
            "error_message": text,
            "resource_type": resource_type,
            "resource_name": name,
            "configs": configs,
        }

    async def alter_configs(
        self, request: Request, message: AlterConfigsRequest
    ) -> AlterConfigsResponse:
        """Set all configs of a resource. A config that is not named takes its default again."""
        wanted = self._alteration(request, message.validate_only, replaces_all=True)

        def changes(resource: AlterConfigsResource, before: Before) -> Changes:
            return {entry.name: entry.value for entry in resource.configs}

        return {"responses": await self._altered(message.resources, changes, wanted)}

    async def incremental_alter_configs(
        self, request: Request, message: incremental.IncrementalAlterConfigsRequest
    ) -> incremental.IncrementalAlterConfigsResponse:
        wanted = self._alteration(request, message.validate_only, replaces_all=False)

        def changes(resource: incremental.AlterConfigsResource, before: Before) -> Changes:
            return incremental_changes(resource.resource_type, resource.configs, before)

        return {"responses": await self._altered(message.resources, changes, wanted)}

    def _alteration(
        self, request: Request, validate_only: bool, *, replaces_all: bool
    ) -> Alteration:
        deadline = asyncio.get_running_loop().time() + self._change_ms_max / 1000
        return Alteration(request, replaces_all, validate_only, deadline)

    async def _altered(
        self,
        resources: Sequence[ResourceT],
        changes: Callable[[ResourceT, Before], Changes],
        wanted: Alteration,
    ) -> list[AlterConfigsResourceResponse]:
        twice = named_twice((each.resource_type, each.resource_name) for each in resources)
        responses: list[AlterConfigsResourceResponse] = []
        slices, access = Slices(self._turns), wanted.request.access
        for resource in resources:
            kind, name = resource.resource_type, resource.resource_name
            if (kind, name) in twice:
                result = Refusal(
                    ErrorCode.invalid_request, "Each resource must appear at most once."
                )
            else:
                denied = _denied_by(AclOperation.ALTER_CONFIGS, kind, name, access)
                result = denied or await self._alter(resource, changes, wanted)
            await slices.spend(UNITS_A_RESOURCE)
            responses.append(
                {
                    "error_code": result.error,
                    "error_message": result.message,
                    "resource_type": kind,
                    "resource_name": name,
                }
            )
        return responses

    async def _alter(
        self,
        resource: ResourceT,
        changes: Callable[[ResourceT, Before], Changes],
        wanted: Alteration,
    ) -> Refusal:
        kind, name = resource.resource_type, resource.resource_name
        if kind == ConfigKind.TOPIC:
            topic = self._view.topic(name)
            before = self._lists_of(topic or NO_TOPIC)
        else:
            topic, before = None, self._others.before(kind, name)
        names = [each.name for each in resource.configs]
        if named_twice(names):
            return Refusal(ErrorCode.invalid_request, "Error due to duplicate config keys")
        if len(names) > CONFIGS_MAX:  # refuse early: do not check each of them
            text = f"More than {CONFIGS_MAX} configs of a resource"
            return Refusal(ErrorCode.invalid_config, text)
        missing = _names_without_values(resource.configs)
        if missing is not None:
            return missing
        if kind != ConfigKind.TOPIC:
            refused = self._others.refusal_of_name(kind, name, replaces_all=wanted.replaces_all)
            if refused is not None:
                return refused
        elif not name:
            return Refusal(ErrorCode.invalid_request, "Default topic resources are not allowed.")
        found = changes(resource, before)
        if isinstance(found, Refusal):
            return found
        if kind != ConfigKind.TOPIC:
            return await self._others.alter(
                kind,
                name,
                found,
                replaces_all=wanted.replaces_all,
                validate_only=wanted.validate_only,
                by=wanted.request.principal,
            )
        return await self._alter_topic(name, topic, found, wanted)

    async def _alter_topic(
        self,
        name: str,
        topic: TopicState | None,
        changes: Mapping[str, str | None],
        wanted: Alteration,
    ) -> Refusal:
        result = await self._changes.configure(
            topic or NO_TOPIC,
            changes,
            replaces_all=wanted.replaces_all,
            validate_only=wanted.validate_only or topic is None,
            deadline=wanted.deadline,
            by=wanted.request.author,
        )
        if topic is not None or result.error is not ErrorCode.none:
            return Refusal(result.error, result.message)
        error, problem = _missing_topic(name)
        return Refusal(error, problem or f"The topic '{name}' does not exist.")

    def _lists_of(self, topic: TopicState) -> Before:
        def value(name: str) -> str | None:
            known = TOPIC_CONFIGS.get(name)
            if known is None or known.config_type is not ConfigType.LIST:
                return None
            return self._topic_defaults.effective(topic.configs, name)

        return value


def _denied_by(
    operation: AclOperation, resource_type: int, name: str, access: Access
) -> Refusal | None:
    """The answer for a resource without the right; None: the operation is allowed, or there are no
    rules for resources of this type."""
    if resource_type == ConfigKind.TOPIC and not access.may_topic(operation, name):
        error, text = ErrorCode.topic_authorization_failed, TOPIC_NOT_AUTHORIZED
    elif resource_type == ConfigKind.GROUP and not access.may_group(operation, name):
        error, text = ErrorCode.group_authorization_failed, GROUP_NOT_AUTHORIZED
    elif resource_type in CLUSTER_RESOURCES and not access.may_on_cluster(operation):
        error, text = ErrorCode.cluster_authorization_failed, CLUSTER_NOT_AUTHORIZED
    else:
        return None
    return Refusal(error, text)


def _not_described(resource_type: int, name: str, access: Access) -> DescribeConfigsResult | None:
    denied = _denied_by(AclOperation.DESCRIBE_CONFIGS, resource_type, name, access)
    if denied is None:
        return None
    return {
        "error_code": denied.error,
        "error_message": denied.message,
        "resource_type": resource_type,
        "resource_name": name,
        "configs": [],
    }


def _missing_topic(name: str) -> tuple[ErrorCode, str | None]:
    try:
        check_topic_name(name)
    except InvalidTopicNameError as error:
        return kafka_code(error, ApiFamily.TOPICS), str(error)
    return ErrorCode.unknown_topic_or_partition, ""


def named_twice(names: Iterable[T]) -> set[T]:
    return {name for name, count in Counter(names).items() if count > 1}


def incremental_changes(
    kind: int, entries: Sequence[incremental.AlterableConfig], before: Before
) -> Changes:
    """Return the changes that incremental operations make to a resource, or a refusal."""
    found: dict[str, str | None] = {}
    for entry in entries:
        name, value = entry.name, entry.value
        try:
            operation = Operation(entry.config_operation)
        except ValueError:
            text = f"Unknown operation type {entry.config_operation} for config {name}"
            return Refusal(ErrorCode.invalid_request, text)
        if operation is Operation.DELETE:
            found[name] = None
        elif operation is Operation.SET:
            found[name] = value
        elif kind == ConfigKind.BROKER_LOGGER:
            text = f"{operation.name} operation is not allowed for the BROKER_LOGGER resource"
            return Refusal(ErrorCode.invalid_request, text)
        elif (list_before := before(name)) is not None:
            found[name] = _list_after(list_before, operation, value or "")
        elif kind == ConfigKind.BROKER:
            word = operation.name.lower()
            text = f"Config value {word} is not allowed for config key: {name}"
            return Refusal(ErrorCode.invalid_config, text)
        else:
            text = f"Can't {operation.name} to key {name} because its type is not LIST."
            return Refusal(ErrorCode.invalid_config, text)
    return found


def _list_after(before: str, operation: Operation, value: str) -> str:
    """Return the list after the operation, as Kafka's ConfigurationControlManager does."""
    words = before.split(",") if before else []
    given = value.split(",")
    if operation is Operation.APPEND:
        words += [word for word in given if word not in words]
    else:
        words = [word for word in words if word not in given]
    return ",".join(words)


def _names_without_values(
    entries: Iterable[AlterableConfig | incremental.AlterableConfig],
) -> Refusal | None:
    """The refusal of configs without a value; None: all have values."""
    missing = [
        each.name
        for each in entries
        if each.value is None and getattr(each, "config_operation", None) != Operation.DELETE
    ]
    if not missing:
        return None
    text = f"Null value not supported for : {', '.join(missing)}"
    return Refusal(ErrorCode.invalid_request, text)
