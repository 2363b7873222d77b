"""ShareGroupHeartbeat: its request and response, versions 1 to 1.

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
class ShareGroupHeartbeatRequest:
    group_id: str
    member_id: str
    member_epoch: int
    rack_id: str | None
    subscribed_topic_names: tuple[str, ...] | None


class TopicPartitions(TypedDict):
    topic_id: UUID | None
    partitions: NotRequired[Sequence[int]]


class Assignment(TypedDict):
    topic_partitions: Sequence[TopicPartitions]


class ShareGroupHeartbeatResponse(TypedDict):
    throttle_time: NotRequired[timedelta]
    error_code: ErrorCode
    error_message: NotRequired[str | None]
    member_id: NotRequired[str | None]
    member_epoch: int
    heartbeat_interval: NotRequired[timedelta]
    assignment: NotRequired[Assignment | None]


SHARE_GROUP_HEARTBEAT = ApiMessages(
    ApiKey.SHARE_GROUP_HEARTBEAT, ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse
)
