"""DescribeTopicPartitions: topics with their partitions, page by page, in the order of names.

Source: KIP-966; Kafka's DescribeTopicPartitionsRequestHandler.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from uuid import UUID

from kio.schema.errors import ErrorCode

from bucketlog.log_format.batch import LEADER_EPOCH
from bucketlog.log_format.wire.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
    ResponseCursor,
)
from bucketlog.metadata.acl_bindings import AclOperation, ResourceType
from bucketlog.metadata.fold import TopicState
from bucketlog.metadata.view import View
from bucketlog.stateless_broker.authorization.authorizer import Access
from bucketlog.stateless_broker.handlers.topic_changes import why_missing
from bucketlog.stateless_broker.membership.membership import Membership
from bucketlog.stateless_broker.network.apis import Request
from bucketlog.stateless_broker.network.turns import Turns

PARTITIONS_MAX = 2_000
"""Limit of the partitions in a response: Kafka's max.request.partition.size.limit."""


@dataclass(slots=True)
class _Page:
    """The topics of a response, and room for this number of partitions."""

    room: int
    topics: list[DescribeTopicPartitionsResponseTopic] = field(default_factory=list)
    next_cursor: ResponseCursor | None = None


class TopicPartitionsHandler:
    def __init__(self, *, view: View, membership: Membership, turns: Turns) -> None:
        self._view = view
        self._membership = membership
        self._turns = turns

    async def __call__(
        self, request: Request, message: DescribeTopicPartitionsRequest
    ) -> DescribeTopicPartitionsResponse:
        cursor = message.cursor
        asked = {topic.name for topic in message.topics}
        first = "" if cursor is None else cursor.topic_name
        is_misplaced = bool(asked) and first not in asked
        if cursor is not None and (cursor.partition_index < 0 or is_misplaced):
            return _refused(message)
        page = _Page(max(1, min(PARTITIONS_MAX, message.response_partition_limit)))
        start = 0 if cursor is None else cursor.partition_index
        listener = request.connection.listener
        names = asked or {topic.name for topic in self._view.topics()}

        def steps() -> Iterator[int]:
            denied: list[DescribeTopicPartitionsResponseTopic] = []
            access = request.access if asked else request.access.quiet
            yield 1 + len(names)
            for name in sorted(names):
                if name < first:
                    continue
                yield 1
                if not access.may_topic(AclOperation.DESCRIBE, name):
                    if asked:
                        error = ErrorCode.topic_authorization_failed
                        denied.append(_without_partitions(error, name))
                    continue
                if page.next_cursor is not None:
                    continue
                if not page.room:
                    page.next_cursor = {"topic_name": name, "partition_index": 0}
                    continue
                topic = self._view.topic(name)
                if topic is not None:
                    at = start if name == first else 0
                    yield from self._add(page, topic, at, listener, request.access)
                elif asked:
                    page.topics.append(_missing(name, request.access))
            page.topics += denied

        await self._turns.work(steps())
        return {"topics": page.topics, "next_cursor": page.next_cursor}

    def _add(
        self, page: _Page, topic: TopicState, start: int, listener: str, access: Access
    ) -> Iterator[int]:
        """Add the topic with its partitions from `start` on, up to the page's room."""
        leaders = yield from self._membership.leaders(
            topic.topic_id, topic.partitions, "", listener
        )
        end = min(start + page.room, topic.partitions)
        rows = [
            _partition(number, leader.node_id)
            for number, leader in enumerate(islice(leaders, start, end), start)
        ]
        yield 1 + len(rows)
        page.room -= len(rows)
        page.topics.append(
            {
                "error_code": ErrorCode.none,
                "name": topic.name,
                "topic_id": UUID(bytes=topic.topic_id),
                "partitions": rows,
                "topic_authorized_operations": access.operations(ResourceType.TOPIC, topic.name),
            }
        )
        if end < topic.partitions and start < topic.partitions:
            page.next_cursor = {"topic_name": topic.name, "partition_index": end}


def _partition(number: int, leader: int) -> DescribeTopicPartitionsResponsePartition:
    return {
        "error_code": ErrorCode.none,
        "partition_index": number,
        "leader_id": leader,
        "leader_epoch": LEADER_EPOCH,
        "replica_nodes": (leader,),
        "isr_nodes": (leader,),
        "eligible_leader_replicas": (),
        "last_known_elr": (),
        "offline_replicas": (),
    }


def _missing(name: str, access: Access) -> DescribeTopicPartitionsResponseTopic:
    row = _without_partitions(why_missing(name), name)
    row["topic_authorized_operations"] = access.operations(ResourceType.TOPIC, name)
    return row


def _without_partitions(error: ErrorCode, name: str) -> DescribeTopicPartitionsResponseTopic:
    return {"error_code": error, "name": name, "topic_id": None, "partitions": []}


def _refused(message: DescribeTopicPartitionsRequest) -> DescribeTopicPartitionsResponse:
    """A cursor that is not among the topics, or a negative partition."""
    error = ErrorCode.invalid_request
    return {
        "topics": [_without_partitions(error, topic.name) for topic in message.topics],
        "next_cursor": None,
    }
