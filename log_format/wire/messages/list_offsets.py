"""ListOffsets: its request and response, versions 1 to 11.

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
class ListOffsetsPartition:
    partition_index: int
    current_leader_epoch: int = -1
    timestamp: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOffsetsTopic:
    name: str
    partitions: tuple[ListOffsetsPartition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOffsetsRequest:
    replica_id: int
    isolation_level: int = 0
    topics: tuple[ListOffsetsTopic, ...]
    timeout: timedelta = timedelta(milliseconds=0)


class ListOffsetsPartitionResponse(TypedDict):
    partition_index: int
    error_code: ErrorCode
    timestamp: NotRequired[int]
    offset: NotRequired[int]
    leader_epoch: NotRequired[int]


class ListOffsetsTopicResponse(TypedDict):
    name: str
    partitions: Sequence[ListOffsetsPartitionResponse]


class ListOffsetsResponse(TypedDict):
    throttle_time: NotRequired[timedelta]
    topics: Sequence[ListOffsetsTopicResponse]


LIST_OFFSETS = ApiMessages(ApiKey.LIST_OFFSETS, ListOffsetsRequest, ListOffsetsResponse)
