"""OffsetDelete: its request and response, versions 0 to 0.

Written by `scripts/messages.py` from kio's schemas: do not edit.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import NotRequired, TypedDict

from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.log_format.wire.api_messages import ApiMessages


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetDeleteRequestPartition:
    partition_index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetDeleteRequestTopic:
    name: str
    partitions: tuple[OffsetDeleteRequestPartition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetDeleteRequest:
    group_id: str
    topics: tuple[OffsetDeleteRequestTopic, ...]


class OffsetDeleteResponsePartition(TypedDict):
    partition_index: int
    error_code: ErrorCode


class OffsetDeleteResponseTopic(TypedDict):
    name: str
    partitions: Sequence[OffsetDeleteResponsePartition]


class OffsetDeleteResponse(TypedDict):
    error_code: ErrorCode
    throttle_time: NotRequired[timedelta]
    topics: Sequence[OffsetDeleteResponseTopic]


OFFSET_DELETE = ApiMessages(ApiKey.OFFSET_DELETE, OffsetDeleteRequest, OffsetDeleteResponse)
