"""ConsumerGroupHeartbeat: its request and response, versions 0 to 1.

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
class TopicPartitions:
    topic_id: UUID | None
    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupHeartbeatRequest:
    group_id: str
    member_id: str
    member_epoch: int
    instance_id: str | None
    rack_id: str | None
    rebalance_timeout: timedelta
    subscribed_topic_names: tuple[str, ...] | None
    subscribed_topic_regex: str | None = None
    server_assignor: str | None
    topic_partitions: tuple[TopicPartitions, ...] | None


class ResponseTopicPartitions(TypedDict):
    topic_id: UUID | None
    partitions: NotRequired[Sequence[int]]


class Assignment(TypedDict):
    topic_partitions: Sequence[ResponseTopicPartitions]


class ConsumerGroupHeartbeatResponse(TypedDict):
    throttle_time: NotRequired[timedelta]
    error_code: ErrorCode
    error_message: NotRequired[str | None]
    member_id: NotRequired[str | None]
    member_epoch: int
    heartbeat_interval: NotRequired[timedelta]
    assignment: NotRequired[Assignment | None]


CONSUMER_GROUP_HEARTBEAT = ApiMessages(
    ApiKey.CONSUMER_GROUP_HEARTBEAT, ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
)
