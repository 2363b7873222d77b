"""DescribeConfigs, AlterConfigs, IncrementalAlterConfigs.

Source: Kafka's messages of these names; KIP-339 (incremental changes);
ConfigAdminManager and ConfigurationControlManager (which error for what). Topics' configs can be
changed; a broker's are its environment.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Hashable, Iterable, Iterator, Sequence
from enum import IntEnum
from typing import TypeAlias, TypeVar

from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.messages import incremental_alter_configs as incremental
from bucketlog.log_format.wire.messages.alter_configs import (
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
from bucketlog.metadata.fold import TopicState
from bucketlog.metadata.topic_configs import TOPIC_CONFIGS, ConfigType
from bucketlog.metadata.topic_defaults import TopicDefaults
from bucketlog.metadata.view import View
from bucketlog.stateless_broker.authorization.authorizer import Access
from bucketlog.stateless_broker.authorization.needs import (
    CLUSTER_NOT_AUTHORIZED,
    GROUP_NOT_AUTHORIZED,
    TOPIC_NOT_AUTHORIZED,
)
from bucketlog.stateless_broker.handlers.described_configs import described_broker, described_topic
from bucketlog.stateless_broker.handlers.topic_changes import TopicChangeResult, TopicChanges
from bucketlog.stateless_broker.network.apis import Request, WrittenResponse
from bucketlog.stateless_broker.network.messages import write_row, write_rows
from bucketlog.stateless_broker.network.response_rows import COUNTED_ROWS
from bucketlog.stateless_broker.network.turns import Slices, Turns

T = TypeVar("T", bound=Hashable)

TOPIC_RESOURCE = 2
BROKER_RESOURCE = 4
GROUP_RESOURCE = 32
CLUSTER_RESOURCES = (BROKER_RESOURCE, 8, 16)
"""Brokers, their loggers, and metrics of clients: the rights on the cluster count."""
FEW_RESOURCES = 10
RESOURCE_BYTES = 3_000
"""An estimate per resource; the actual size is counted once the response is encoded."""
NAMES_IN_MESSAGE = 10
UNITS_A_RESOURCE = 5
UNITS_A_CONFIG = 5
"""Units of work: see `network.turns`."""


ResourceT = TypeVar("ResourceT", AlterConfigsResource, incremental.AlterConfigsResource)
Change: TypeAlias = Callable[[TopicState, ResourceT, float], Awaitable[TopicChangeResult]]
"""A topic, its resource in the request, and a deadline by the event loop's clock."""


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
        broker_configs: dict[str, str],
        topic_defaults: TopicDefaults,
        change_ms_max: int,
        turns: Turns,
    ) -> None:
        self._view = view
        self._changes = changes
        self._broker_configs = broker_configs
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
        error, text = ErrorCode.none, None
        keys = None if wanted_keys is None else set(wanted_keys)
        configs: list[DescribeConfigsResourceResult] = []
        if resource_type == TOPIC_RESOURCE:
            topic = self._view.topic(name)
            if topic is None:
                error, text = ErrorCode.unknown_topic_or_partition, "No such topic."
            else:
                configs = described_topic(topic, keys, self._topic_defaults)
        elif resource_type == BROKER_RESOURCE:
            configs = [
                described_broker(config, value)
                for config, value in sorted(self._broker_configs.items())
                if keys is None or config in keys
            ]
        else:
            error, text = ErrorCode.invalid_request, f"resource type {resource_type}"
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
        """All of a topic's configs: what is not named takes its default again."""

        async def change(
            topic: TopicState, resource: AlterConfigsResource, deadline: float
        ) -> TopicChangeResult:
            configs = {entry.name: entry.value for entry in resource.configs}
            missing = [name for name, value in configs.items() if value is None]
            if missing:
                text = f"Null value not supported for : {', '.join(missing)}"
                return TopicChangeResult(ErrorCode.invalid_request, text, None)
            return await self._changes.configure(
                topic,
                configs,
                replaces_all=True,
                validate_only=message.validate_only,
                deadline=deadline,
                by=request.author,
            )

        return {"responses": await self._altered(message.resources, change, request.access)}

    async def incremental_alter_configs(
        self, request: Request, message: incremental.IncrementalAlterConfigsRequest
    ) -> incremental.IncrementalAlterConfigsResponse:
        async def change(
            topic: TopicState, resource: incremental.AlterConfigsResource, deadline: float
        ) -> TopicChangeResult:
            found = _changes(topic, resource.configs, self._topic_defaults)
            if isinstance(found, TopicChangeResult):
                return found
            return await self._changes.configure(
                topic,
                found,
                validate_only=message.validate_only,
                deadline=deadline,
                by=request.author,
            )

        return {"responses": await self._altered(message.resources, change, request.access)}

    async def _altered(
        self, resources: Sequence[ResourceT], change: Change[ResourceT], access: Access
    ) -> list[AlterConfigsResourceResponse]:
        deadline = asyncio.get_running_loop().time() + self._change_ms_max / 1000
        twice = named_twice((each.resource_type, each.resource_name) for each in resources)
        responses: list[AlterConfigsResourceResponse] = []
        slices = Slices(self._turns)
        for resource in resources:
            if (resource.resource_type, resource.resource_name) in twice:
                text = "Each resource must appear at most once."
                result = TopicChangeResult(ErrorCode.invalid_request, text, None)
            elif (denied := _denied(AclOperation.ALTER_CONFIGS, resource, access)) is not None:
                result = denied
            else:
                result = await self._alter(resource, change, deadline)
            await slices.spend(UNITS_A_RESOURCE)
            responses.append(
                {
                    "error_code": result.error,
                    "error_message": result.message,
                    "resource_type": resource.resource_type,
                    "resource_name": resource.resource_name,
                }
            )
        return responses

    async def _alter(
        self, resource: ResourceT, change: Change[ResourceT], deadline: float
    ) -> TopicChangeResult:
        if resource.resource_type == BROKER_RESOURCE:
            text = "A broker's configs are its environment: see docs/configuration.md."
            return TopicChangeResult(ErrorCode.invalid_request, text, None)
        if resource.resource_type != TOPIC_RESOURCE:
            text = f"Unknown resource type {resource.resource_type}."
            return TopicChangeResult(ErrorCode.invalid_request, text, None)
        if not resource.resource_name:
            text = "Default topic resources are not allowed."
            return TopicChangeResult(ErrorCode.invalid_request, text, None)
        topic = self._view.topic(resource.resource_name)
        if topic is None:
            text = f"The topic '{resource.resource_name}' does not exist."
            return TopicChangeResult(ErrorCode.unknown_topic_or_partition, text, None)
        twice = named_twice(each.name for each in resource.configs)
        if twice:
            names = ", ".join(sorted(twice)[:NAMES_IN_MESSAGE])
            text = f"Error due to duplicate config keys: {names}"
            return TopicChangeResult(ErrorCode.invalid_request, text, None)
        if len(resource.configs) > len(TOPIC_CONFIGS):  # refuse early: do not check each of them
            name = next(each.name for each in resource.configs if each.name not in TOPIC_CONFIGS)
            text = f"Unknown topic config name: {name}"
            return TopicChangeResult(ErrorCode.invalid_config, text, None)
        return await change(topic, resource, deadline)


def _denied(
    operation: AclOperation, resource: ResourceT, access: Access
) -> TopicChangeResult | None:
    return _denied_by(operation, resource.resource_type, resource.resource_name, access)


def _denied_by(
    operation: AclOperation, resource_type: int, name: str, access: Access
) -> TopicChangeResult | None:
    """The answer for a resource without the right; None: the operation is allowed, or there are no
    rules for resources of this type."""
    if resource_type == TOPIC_RESOURCE and not access.may_topic(operation, name):
        error, text = ErrorCode.topic_authorization_failed, TOPIC_NOT_AUTHORIZED
    elif resource_type == GROUP_RESOURCE and not access.may_group(operation, name):
        error, text = ErrorCode.group_authorization_failed, GROUP_NOT_AUTHORIZED
    elif resource_type in CLUSTER_RESOURCES and not access.may_on_cluster(operation):
        error, text = ErrorCode.cluster_authorization_failed, CLUSTER_NOT_AUTHORIZED
    else:
        return None
    return TopicChangeResult(error, text, None)


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


def named_twice(names: Iterable[T]) -> set[T]:
    return {name for name, count in Counter(names).items() if count > 1}


def _changes(
    topic: TopicState, entries: Iterable[incremental.AlterableConfig], defaults: TopicDefaults
) -> dict[str, str | None] | TopicChangeResult:
    """What incremental operations come to, or why they are refused."""
    found: dict[str, str | None] = {}
    for entry in entries:
        name, value = entry.name, entry.value
        try:
            operation = Operation(entry.config_operation)
        except ValueError:
            text = f"Unknown operation type {entry.config_operation} for config {name}"
            return TopicChangeResult(ErrorCode.invalid_request, text, None)
        if operation is Operation.DELETE:
            found[name] = None
        elif value is None:
            text = f"Null value not supported for : {name}"
            return TopicChangeResult(ErrorCode.invalid_request, text, None)
        elif operation is Operation.SET:
            found[name] = value
        else:
            definition = TOPIC_CONFIGS.get(name)
            if definition is not None and definition.config_type is not ConfigType.LIST:
                text = (
                    f"Config value {operation.name.lower()} is not allowed for config key: {name}"
                )
                return TopicChangeResult(ErrorCode.invalid_config, text, None)
            found[name] = (
                _list_after(defaults.effective(topic.configs, name), operation, value)
                if name in TOPIC_CONFIGS
                else value
            )
    return found


def _list_after(before: str, operation: Operation, value: str) -> str:
    words = _words(before)
    given = _words(value)
    if operation is Operation.APPEND:
        words += [word for word in given if word not in words]
    else:
        words = [word for word in words if word not in given]
    return ",".join(words)


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]
