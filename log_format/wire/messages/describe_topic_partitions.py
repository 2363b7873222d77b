"""DescribeTopicPartitions: its request and response, versions 0 to 0.

Written by `scripts/messages.py` from kio's schemas: do not edit.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import NotRequired, TypedDict
from uuid import UUID

from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.log_format.wire.api_messages import ApiMessages


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRequest:
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    topic_name: str
    partition_index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeTopicPartitionsRequest:
    topics: tuple[TopicRequest, ...]
    response_partition_limit: int
    cursor: Cursor | None


class DescribeTopicPartitionsResponsePartition(TypedDict):
    error_code: ErrorCode
    partition_index: int
    leader_id: int
    leader_epoch: NotRequired[int]
    replica_nodes: NotRequired[Sequence[int]]
    isr_nodes: NotRequired[Sequence[int]]
    eligible_leader_replicas: NotRequired[Sequence[int] | None]
    last_known_elr: NotRequired[Sequence[int] | None]
    offline_replicas: NotRequired[Sequence[int]]


class DescribeTopicPartitionsResponseTopic(TypedDict):
    error_code: ErrorCode
    name: str | None
    topic_id: UUID | None
    is_internal: NotRequired[bool]
    partitions: Sequence[DescribeTopicPartitionsResponsePartition]
    topic_authorized_operations: NotRequired[int]


class ResponseCursor(TypedDict):
    topic_name: str
    partition_index: int


class DescribeTopicPartitionsResponse(TypedDict):
    throttle_time: NotRequired[timedelta]
    topics: Sequence[DescribeTopicPartitionsResponseTopic]
    next_cursor: NotRequired[ResponseCursor | None]


DESCRIBE_TOPIC_PARTITIONS = ApiMessages(
    ApiKey.DESCRIBE_TOPIC_PARTITIONS,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
)
