"""AlterShareGroupOffsets: its request and response, versions 0 to 0.

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
class AlterShareGroupOffsetsRequestPartition:
    partition_index: int
    start_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterShareGroupOffsetsRequestTopic:
    topic_name: str
    partitions: tuple[AlterShareGroupOffsetsRequestPartition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterShareGroupOffsetsRequest:
    group_id: str
    topics: tuple[AlterShareGroupOffsetsRequestTopic, ...]


class AlterShareGroupOffsetsResponsePartition(TypedDict):
    partition_index: int
    error_code: ErrorCode
    error_message: NotRequired[str | None]


class AlterShareGroupOffsetsResponseTopic(TypedDict):
    topic_name: str
    topic_id: UUID | None
    partitions: Sequence[AlterShareGroupOffsetsResponsePartition]


class AlterShareGroupOffsetsResponse(TypedDict):
    throttle_time: NotRequired[timedelta]
    error_code: ErrorCode
    error_message: NotRequired[str | None]
    responses: Sequence[AlterShareGroupOffsetsResponseTopic]


ALTER_SHARE_GROUP_OFFSETS = ApiMessages(
    ApiKey.ALTER_SHARE_GROUP_OFFSETS, AlterShareGroupOffsetsRequest, AlterShareGroupOffsetsResponse
)
