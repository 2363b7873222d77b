"""ShareGroupDescribe: its request and response, versions 1 to 1.

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
class ShareGroupDescribeRequest:
    group_ids: tuple[str, ...]
    include_authorized_operations: bool


class TopicPartitions(TypedDict):
    topic_id: UUID | None
    topic_name: str
    partitions: NotRequired[Sequence[int]]


class Assignment(TypedDict):
    topic_partitions: Sequence[TopicPartitions]


class Member(TypedDict):
    member_id: str
    rack_id: NotRequired[str | None]
    member_epoch: int
    client_id: str
    client_host: str
    subscribed_topic_names: NotRequired[Sequence[str]]
    assignment: Assignment


class DescribedGroup(TypedDict):
    error_code: ErrorCode
    error_message: NotRequired[str | None]
    group_id: str
    group_state: str
    group_epoch: int
    assignment_epoch: int
    assignor_name: str
    members: Sequence[Member]
    authorized_operations: NotRequired[int]


class ShareGroupDescribeResponse(TypedDict):
    throttle_time: NotRequired[timedelta]
    groups: Sequence[DescribedGroup]


SHARE_GROUP_DESCRIBE = ApiMessages(
    ApiKey.SHARE_GROUP_DESCRIBE, ShareGroupDescribeRequest, ShareGroupDescribeResponse
)
