"""Metadata: brokers, controller, topics; topics that are asked for may be created.

Source: Kafka's MetadataRequest.json and KafkaApis.handleTopicMetadataRequest: a topic that is being
created automatically is answered LEADER_NOT_AVAILABLE, and clients ask again.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterator
from typing import Any
from uuid import UUID

from kio.schema.errors import ErrorCode

from bucketlog.log_format.batch import LEADER_EPOCH
from bucketlog.log_format.errors import InvalidTopicNameError
from bucketlog.log_format.model import TopicId
from bucketlog.log_format.wire.error_codes import ApiFamily, kafka_code
from bucketlog.log_format.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from bucketlog.metadata.fold import TopicState
from bucketlog.metadata.topic_configs import check_topic_name, colliding_name
from bucketlog.metadata.view import View
from bucketlog.stateless_broker.handlers.topic_changes import TopicChanges
from bucketlog.stateless_broker.membership import Membership, zone_of_client
from bucketlog.stateless_broker.network.dispatch import Request

logger = logging.getLogger(__name__)

ALL_IF_EMPTY_UNTIL = 0
NO_OPERATIONS_KNOWN = -(2**31)
CREATED_AT_ONCE = 100
"""Topics that are being created because they were asked for; whoever wants more asks again."""


class MetadataHandler:
    """`spawn` starts the creation of topics beside the answer."""

    def __init__(
        self,
        *,
        view: View,
        membership: Membership,
        changes: TopicChanges,
        auto_create_topics: bool,
        spawn: Callable[[Coroutine[Any, Any, None], str], asyncio.Task[None]],
    ) -> None:
        self._view = view
        self._membership = membership
        self._changes = changes
        self._auto_create_topics = auto_create_topics
        self._spawn = spawn
        self._creating: dict[str, asyncio.Task[None]] = {}

    async def __call__(self, request: Request, message: MetadataRequest) -> MetadataResponse:
        version = request.header.api_version
        wanted = message.topics
        zone = zone_of_client(request.header.client_id)
        if wanted is None or (version == ALL_IF_EMPTY_UNTIL and not wanted):
            topics = [self._describe(topic, zone) for topic in self._view.topics()]
        else:
            may_create = self._auto_create_topics and message.allow_auto_topic_creation
            tries = iter(range(CREATED_AT_ONCE)) if may_create else None
            topics = [self._answer(entry, tries, zone) for entry in wanted]
        return {
            "brokers": [
                {
                    "node_id": member.node_id,
                    "host": member.address.host,
                    "port": member.address.port,
                    "rack": member.address.zone or None,
                }
                for member in self._membership.serving
            ],
            "cluster_id": self._membership.cluster_id,
            "controller_id": self._membership.controller.node_id,
            "topics": topics,
            "cluster_authorized_operations": NO_OPERATIONS_KNOWN,
        }

    def _answer(
        self, entry: MetadataRequestTopic, tries: Iterator[int] | None, zone: str
    ) -> MetadataResponseTopic:
        """`tries`: so many topics may be created for the request; None: no topic may."""
        topic_id, name = entry.topic_id, entry.name
        if name is None or topic_id is not None:
            found = self._view.topic_by_id(TopicId(topic_id.bytes)) if topic_id else None
            if found is None:
                return _failed(name, topic_id, ErrorCode.unknown_topic_id)
            return self._describe(found, zone)
        topic = self._view.topic(name)
        if topic is not None:
            return self._describe(topic, zone)
        if tries is None:
            return _failed(name, None, self._why_missing(name))
        return _failed(name, None, self._create(name, tries))

    @staticmethod
    def _why_missing(name: str) -> ErrorCode:
        try:
            check_topic_name(name)
        except InvalidTopicNameError as error:
            return kafka_code(error, ApiFamily.TOPICS)
        return ErrorCode.unknown_topic_or_partition

    def _create(self, name: str, tries: Iterator[int]) -> ErrorCode:
        try:
            check_topic_name(name)
        except InvalidTopicNameError as error:
            return kafka_code(error, ApiFamily.TOPICS)
        if len(self._creating) >= CREATED_AT_ONCE or next(tries, None) is None:
            return ErrorCode.leader_not_available
        if colliding_name(name, {topic.name: topic for topic in self._view.topics()}):
            return ErrorCode.invalid_topic_exception
        if name not in self._creating:
            task = self._spawn(self._create_now(name), f"creating topic {name}")
            self._creating[name] = task
            task.add_done_callback(lambda _: self._creating.pop(name, None))
        return ErrorCode.leader_not_available

    async def _create_now(self, name: str) -> None:
        result = await self._changes.create(name)
        if result.error not in (ErrorCode.none, ErrorCode.topic_already_exists):
            logger.warning("automatic creation of %r is refused: %s", name, result.message)

    def _describe(self, topic: TopicState, zone: str) -> MetadataResponseTopic:
        leaders = [
            self._membership.leader(topic.topic_id, partition, zone).node_id
            for partition in range(topic.partitions)
        ]
        return {
            "error_code": ErrorCode.none,
            "name": topic.name,
            "topic_id": UUID(bytes=topic.topic_id),
            "is_internal": False,
            "partitions": [
                {
                    "error_code": ErrorCode.none,
                    "partition_index": partition,
                    "leader_id": leader,
                    "leader_epoch": LEADER_EPOCH,
                    "replica_nodes": (leader,),
                    "isr_nodes": (leader,),
                    "offline_replicas": (),
                }
                for partition, leader in enumerate(leaders)
            ],
            "topic_authorized_operations": NO_OPERATIONS_KNOWN,
        }


def _failed(name: str | None, topic_id: UUID | None, error: ErrorCode) -> MetadataResponseTopic:
    return {
        "error_code": error,
        "name": name,
        "topic_id": topic_id,
        "is_internal": False,
        "partitions": [],
        "topic_authorized_operations": NO_OPERATIONS_KNOWN,
    }
