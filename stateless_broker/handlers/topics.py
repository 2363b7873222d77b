"""CreateTopics, DeleteTopics, CreatePartitions.

Source: Kafka's messages of these names; KIP-464 (defaults), KIP-516 (topic ids), KIP-525 (configs
in the answer of CreateTopics), KIP-599 (throttling).
"""

import asyncio
from collections.abc import Iterable
from datetime import timedelta
from typing import TypeVar
from uuid import UUID

from kio.schema.errors import ErrorCode

from bucketlog.log_format.model import TopicId
from bucketlog.log_format.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from bucketlog.log_format.wire.messages.create_topics import (
    CREATE_TOPICS,
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
)
from bucketlog.log_format.wire.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from bucketlog.metadata.acl_bindings import AclOperation
from bucketlog.metadata.fold import TopicState
from bucketlog.metadata.topic_defaults import TopicDefaults
from bucketlog.metadata.view import View
from bucketlog.stateless_broker.authorization.authorizer import Access
from bucketlog.stateless_broker.authorization.needs import TOPIC_NOT_AUTHORIZED
from bucketlog.stateless_broker.handlers.assignments import refused_partitions, refused_topic
from bucketlog.stateless_broker.handlers.configs import named_twice
from bucketlog.stateless_broker.handlers.described_configs import described_topic
from bucketlog.stateless_broker.handlers.topic_changes import (
    ChangeTerms,
    TopicChangeResult,
    TopicChanges,
)
from bucketlog.stateless_broker.membership.membership import Membership
from bucketlog.stateless_broker.network.apis import Request, WrittenResponse
from bucketlog.stateless_broker.network.messages import write_row, write_rows
from bucketlog.stateless_broker.network.response_rows import COUNTED_ROWS
from bucketlog.stateless_broker.network.turns import Slices, Turns

CREATE_CONFIGS_FROM = 5
"""The first version of CreateTopics whose response has the topic's configs (KIP-525)."""
DELETE_BY_ID_FROM = 6
CREATE_STRICT_FROM, DELETE_STRICT_FROM, GROW_STRICT_FROM = 6, 5, 3
"""First versions whose clients know THROTTLING_QUOTA_EXCEEDED (KIP-599)."""
UNITS_A_TOPIC = 10
"""Units of work: see `network.turns`."""

_NamedTopic = TypeVar("_NamedTopic", CreatableTopic, CreatePartitionsTopic)


class TopicsHandler:
    """Refuses a topic that a request names twice, with one row, as Kafka's ControllerApis do."""

    def __init__(
        self,
        *,
        view: View,
        changes: TopicChanges,
        membership: Membership,
        topic_defaults: TopicDefaults,
        turns: Turns,
    ) -> None:
        self._view = view
        self._membership = membership
        self._changes = changes
        self._turns = turns
        self._topic_defaults = topic_defaults

    async def create_topics(
        self, request: Request, message: CreateTopicsRequest
    ) -> WrittenResponse:
        """Encodes each result at once: the values of all results, with the configs of each topic,
        take many times the memory of the response."""
        deadline = _deadline(message.timeout)
        version = request.header.api_version
        terms = ChangeTerms(version >= CREATE_STRICT_FROM, request.limits)
        twice = named_twice(topic.name for topic in message.topics)
        throttle_s = 0.0
        rows: list[bytes] = []
        errors: list[ErrorCode] = []
        outcomes: dict[str, ErrorCode] = {}
        slices, access = Slices(self._turns), request.access
        may_create_all = access.quiet.may_on_cluster(AclOperation.CREATE)
        for wanted in _each_once(message.topics):
            if wanted.name in twice:
                result = TopicChangeResult(ErrorCode.invalid_request, "Duplicate topic name.", None)
            elif not may_create_all and not access.may_topic(AclOperation.CREATE, wanted.name):
                text = "Authorization failed."
                result = TopicChangeResult(ErrorCode.topic_authorization_failed, text, None)
            else:
                result = await self._create(
                    wanted, message.validate_only, deadline, terms, request.author
                )
            throttle_s = max(throttle_s, result.throttle_s)
            outcomes[wanted.name] = result.error
            row = self._created(wanted.name, result, access, version)
            rows.append(write_row(CREATE_TOPICS, version, "topics", row))
            if result.error is not ErrorCode.none and len(errors) < COUNTED_ROWS:
                errors.append(result.error)
            await slices.spend(UNITS_A_TOPIC)
        _mute(request)
        body = write_rows(
            CREATE_TOPICS, version, "topics", rows, throttle_ms=round(throttle_s * 1000)
        )
        return WrittenResponse(body, errors, outcomes)

    def _brokers(self) -> set[int]:
        return {member.node_id for member in self._membership.members}

    async def _create(
        self,
        wanted: CreatableTopic,
        validate_only: bool,
        deadline: float,
        terms: ChangeTerms,
        by: str | None,
    ) -> TopicChangeResult:
        refused = refused_topic(wanted, self._brokers())
        if refused is not None:
            return self._changes.problem(wanted.name) or refused
        return await self._changes.create(
            wanted.name,
            partitions=len(wanted.assignments) or wanted.num_partitions,
            replication_factor=wanted.replication_factor,
            configs={entry.name: entry.value for entry in wanted.configs},
            validate_only=validate_only,
            deadline=deadline,
            terms=terms,
            by=by,
        )

    def _created(
        self, name: str, result: TopicChangeResult, access: Access, version: int
    ) -> CreatableTopicResult:
        created = result.topic if result.error is ErrorCode.none else None
        may_describe = access.quiet.may_topic(AclOperation.DESCRIBE_CONFIGS, name)
        topic = created if may_describe else None
        config_error = ErrorCode.none
        if created is not None and not may_describe:
            config_error = ErrorCode.topic_authorization_failed
        return {
            "name": name,
            "topic_id": UUID(bytes=created.topic_id) if created else None,
            "error_code": result.error,
            "error_message": result.message,
            "topic_config_error_code": config_error,
            "num_partitions": topic.partitions if topic else -1,
            "replication_factor": 1 if topic else -1,
            "configs": self._configs(topic) if topic and version >= CREATE_CONFIGS_FROM else [],
        }

    def _configs(self, topic: TopicState) -> list[CreatableTopicConfigs]:
        return [
            {
                "name": config["name"],
                "value": config["value"],
                "read_only": config["read_only"],
                "config_source": config["config_source"],
                "is_sensitive": config["is_sensitive"],
            }
            for config in described_topic(topic, None, self._topic_defaults)
        ]

    async def delete_topics(
        self, request: Request, message: DeleteTopicsRequest
    ) -> DeleteTopicsResponse:
        wanted: list[tuple[str | None, UUID | None]]
        if request.header.api_version >= DELETE_BY_ID_FROM:
            wanted = [(entry.name, entry.topic_id) for entry in message.topics]
        else:
            wanted = [(name, None) for name in message.topic_names]
        deadline = _deadline(message.timeout)
        terms = ChangeTerms(request.header.api_version >= DELETE_STRICT_FROM, request.limits)
        twice = named_twice(wanted)
        responses: list[DeletableTopicResult] = []
        throttle_s = 0.0
        slices = Slices(self._turns)
        for name, topic_id in dict.fromkeys(wanted):
            error = ErrorCode.unknown_topic_or_partition
            if name is not None:
                topic = self._view.topic(name)
            elif topic_id is not None:
                topic = self._view.topic_by_id(TopicId(topic_id.bytes))
                error = ErrorCode.unknown_topic_id
            else:
                topic = None
            denied = _denied_deletion(name, topic_id, topic, request.access)
            if denied is not None and (name, topic_id) not in twice:
                responses.append(denied)
                await slices.spend(UNITS_A_TOPIC)
                continue
            if (name, topic_id) in twice:
                topic = None
                text = f"Duplicate topic {'id' if name is None else 'name'}."
                result = TopicChangeResult(ErrorCode.invalid_request, text, None)
            elif topic is None:
                result = TopicChangeResult(error, "This server does not host this topic.", None)
            else:
                result = await self._changes.delete(
                    topic, deadline=deadline, terms=terms, by=request.author
                )
                throttle_s = max(throttle_s, result.throttle_s)
            await slices.spend(UNITS_A_TOPIC)
            responses.append(
                {
                    "name": topic.name if topic else name,
                    "topic_id": UUID(bytes=topic.topic_id) if topic else topic_id,
                    "error_code": result.error,
                    "error_message": result.message,
                }
            )
        _mute(request)
        return {"throttle_time": timedelta(seconds=throttle_s), "responses": responses}

    async def create_partitions(
        self, request: Request, message: CreatePartitionsRequest
    ) -> CreatePartitionsResponse:
        deadline = _deadline(message.timeout)
        terms = ChangeTerms(request.header.api_version >= GROW_STRICT_FROM, request.limits)
        twice = named_twice(topic.name for topic in message.topics)
        results: list[CreatePartitionsTopicResult] = []
        throttle_s = 0.0
        slices = Slices(self._turns)
        for wanted in _each_once(message.topics):
            if wanted.name in twice:
                result = TopicChangeResult(ErrorCode.invalid_request, "Duplicate topic name.", None)
            elif not request.access.may_topic(AclOperation.ALTER, wanted.name):
                result = TopicChangeResult(ErrorCode.topic_authorization_failed, None, None)
            else:
                topic = self._view.topic(wanted.name)
                partitions = wanted.count if topic is None else topic.partitions
                result = await self._changes.grow(
                    wanted.name,
                    wanted.count,
                    refused=refused_partitions(wanted, partitions, self._brokers()),
                    validate_only=message.validate_only,
                    deadline=deadline,
                    terms=terms,
                    by=request.author,
                )
                throttle_s = max(throttle_s, result.throttle_s)
            results.append(
                {
                    "name": wanted.name,
                    "error_code": result.error,
                    "error_message": result.message,
                }
            )
            await slices.spend(UNITS_A_TOPIC)
        _mute(request)
        return {"throttle_time": timedelta(seconds=throttle_s), "results": results}


def _mute(request: Request) -> None:
    """Take no request of a client that is over its quota of changes. The throttle time is added to
    the response."""
    if request.limits is not None:
        request.connection.mute(request.limits.throttled_changes())


def _denied_deletion(
    name: str | None, topic_id: UUID | None, topic: TopicState | None, access: Access
) -> DeletableTopicResult | None:
    """The answer for a topic that the requester may not delete. It has neither the id of a topic
    that was named, nor the name of a topic that the requester may not describe."""
    real_name = name if topic is None else topic.name
    if real_name is None or access.quiet.may_on_cluster(AclOperation.DELETE):
        return None
    may_describe = access.may_topic(AclOperation.DESCRIBE, real_name)
    may_delete = access.may_topic(AclOperation.DELETE, real_name)
    if name is not None:
        may_delete = may_describe and (may_delete or topic is None)
    if may_delete:
        return None
    shown = real_name if may_describe else None
    return {
        "name": shown if name is None else name,
        "topic_id": topic_id,
        "error_code": ErrorCode.topic_authorization_failed,
        "error_message": TOPIC_NOT_AUTHORIZED,
    }


def _each_once(topics: Iterable[_NamedTopic]) -> Iterable[_NamedTopic]:
    return {topic.name: topic for topic in topics}.values()


def _deadline(timeout: timedelta) -> float:
    """Return the deadline for all topics of a request, on the event loop's clock."""
    return asyncio.get_running_loop().time() + max(timeout.total_seconds(), 0.0)
