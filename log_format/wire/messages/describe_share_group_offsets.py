"""DescribeShareGroupOffsets: its request and response, versions 0 to 1.

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
class DescribeShareGroupOffsetsRequestTopic:
    topic_name: str
    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeShareGroupOffsetsRequestGroup:
    group_id: str
    topics: tuple[DescribeShareGroupOffsetsRequestTopic, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeShareGroupOffsetsRequest:
    groups: tuple[DescribeShareGroupOffsetsRequestGroup, ...]


class DescribeShareGroupOffsetsResponsePartition(TypedDict):
    partition_index: int
    start_offset: int
    leader_epoch: int
    lag: NotRequired[int]
    error_code: ErrorCode
    error_message: NotRequired[str | None]


class DescribeShareGroupOffsetsResponseTopic(TypedDict):
    topic_name: str
    topic_id: UUID | None
    partitions: Sequence[DescribeShareGroupOffsetsResponsePartition]


class DescribeShareGroupOffsetsResponseGroup(TypedDict):
    group_id: str
    topics: Sequence[DescribeShareGroupOffsetsResponseTopic]
    error_code: ErrorCode
    error_message: NotRequired[str | None]


class DescribeShareGroupOffsetsResponse(TypedDict):
    throttle_time: NotRequired[timedelta]
    groups: Sequence[DescribeShareGroupOffsetsResponseGroup]


DESCRIBE_SHARE_GROUP_OFFSETS = ApiMessages(
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
)
