"""CreateTopics, DeleteTopics, CreatePartitions.

Source: Kafka's messages of these names; KIP-464 (defaults), KIP-516 (topic ids), KIP-525 (configs
in the answer of CreateTopics).
"""

import asyncio
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from kio.schema.errors import ErrorCode

from bucketlog.model import TopicId
from metadata.view import View
from stateless_broker.handlers.configs import named_twice, topic_configs
from stateless_broker.network.dispatch import Request
from stateless_broker.network.messages import Values
from stateless_broker.topic_changes import Result, TopicChanges

NO_OPERATIONS_KNOWN = -(2**31)
DELETE_BY_ID_FROM = 6


class TopicsHandler:
    def __init__(
        self, *, view: View, changes: TopicChanges, topic_defaults: Mapping[str, str]
    ) -> None:
        self._view = view
        self._changes = changes
        self._topic_defaults = topic_defaults

    async def create_topics(self, request: Request, message: Any) -> Values:
        deadline = _deadline(message)
        twice = named_twice(topic.name for topic in message.topics)
        topics = []
        for wanted in message.topics:
            if wanted.name in twice:
                result = Result(ErrorCode.invalid_request, "Duplicate topic name.", None)
            else:
                result = await self._create(wanted, message.validate_only, deadline)
            topics.append(self._created(wanted.name, result))
        return {"topics": topics}

    async def _create(self, wanted: Any, validate_only: bool, deadline: float) -> Result:
        partitions, replicas = wanted.num_partitions, wanted.replication_factor
        if wanted.assignments:
            if partitions != -1 or replicas != -1:
                return Result(
                    ErrorCode.invalid_request,
                    "A manual partition assignment was specified, but numPartitions or "
                    "replicationFactor was not set to -1.",
                    None,
                )
            indexes = sorted(entry.partition_index for entry in wanted.assignments)
            if indexes != list(range(len(indexes))):
                return Result(
                    ErrorCode.invalid_replica_assignment,
                    "partitions should be a consecutive 0-based integer sequence",
                    None,
                )
            partitions = len(indexes)
        return await self._changes.create(
            wanted.name,
            partitions=partitions,
            replication_factor=replicas,
            configs={entry.name: entry.value for entry in wanted.configs},
            validate_only=validate_only,
            deadline=deadline,
        )

    def _created(self, name: str, result: Result) -> Values:
        topic = result.topic
        ok = result.error is ErrorCode.none and topic is not None
        return {
            "name": name,
            "topic_id": UUID(bytes=topic.topic_id) if ok and topic else None,
            "error_code": result.error,
            "error_message": result.message,
            "num_partitions": topic.partitions if ok and topic else -1,
            "replication_factor": 1 if ok else -1,
            "configs": topic_configs(topic, None, self._topic_defaults) if ok and topic else [],
        }

    async def delete_topics(self, request: Request, message: Any) -> Values:
        if request.header.api_version >= DELETE_BY_ID_FROM:
            wanted = [(entry.name, entry.topic_id) for entry in message.topics]
        else:
            wanted = [(name, None) for name in message.topic_names]
        deadline = _deadline(message)
        responses = []
        for name, topic_id in wanted:
            by_id = name is None and topic_id is not None
            topic = (
                self._view.topic_by_id(TopicId(topic_id.bytes)) if by_id else self._view.topic(name)
            )
            if topic is None:
                error = (
                    ErrorCode.unknown_topic_id if by_id else ErrorCode.unknown_topic_or_partition
                )
                result = Result(error, "This server does not host this topic.", None)
            else:
                result = await self._changes.delete(topic, deadline=deadline)
            responses.append(
                {
                    "name": topic.name if topic else name,
                    "topic_id": UUID(bytes=topic.topic_id) if topic else topic_id,
                    "error_code": result.error,
                    "error_message": result.message,
                }
            )
        return {"responses": responses}

    async def create_partitions(self, request: Request, message: Any) -> Values:
        deadline = _deadline(message)
        twice = named_twice(topic.name for topic in message.topics)
        results = []
        for wanted in message.topics:
            if wanted.name in twice:
                result = Result(ErrorCode.invalid_request, "Duplicate topic name.", None)
            else:
                result = await self._changes.grow(
                    wanted.name,
                    wanted.count,
                    validate_only=message.validate_only,
                    deadline=deadline,
                )
            results.append(
                {
                    "name": wanted.name,
                    "error_code": result.error,
                    "error_message": result.message,
                }
            )
        return {"results": results}


def _deadline(message: Any) -> float:
    """One for all topics of a request, on the event loop's clock."""
    return asyncio.get_running_loop().time() + max(float(message.timeout.total_seconds()), 0.0)
